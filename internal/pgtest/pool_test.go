package pgtest_test

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/internal/pgtest"
)

// What one test leaves in a database of a pool, the next one that has it does not meet: rows, numbers, tables, sequences, functions, and a connection
// that is about to write.
func TestADatabaseOfAPoolIsEmptiedAndReused(t *testing.T) {
	pgtest.Database(t) // skips without a server
	made := 0
	pool := pgtest.Pool{Schema: "app", Make: func(dsn string) error {
		made++
		c, err := pgx.Connect(t.Context(), dsn)
		if err != nil {
			return err
		}
		_, err = c.Exec(t.Context(), "CREATE SCHEMA app; CREATE TABLE app.rows (id bigint GENERATED ALWAYS AS IDENTITY, name text)")
		_ = c.Close(t.Context())
		return err
	}}
	var first, second string
	for _, dsn := range []*string{&first, &second} {
		t.Run("test", func(t *testing.T) {
			*dsn = pool.Database(t)
			c := connect(t, *dsn)
			id := 0
			require.NoError(t, c.QueryRow(t.Context(), "INSERT INTO app.rows (name) VALUES ('x') RETURNING id").Scan(&id))
			require.Equal(t, 1, id, "the numbers begin anew")
			rows := 0
			require.NoError(t, c.QueryRow(t.Context(), "SELECT count(*) FROM app.rows").Scan(&rows))
			require.Equal(t, 1, rows)
			_, err := c.Exec(t.Context(), "CREATE TABLE mine (id int PRIMARY KEY); CREATE TABLE app.mine (id int REFERENCES mine); "+
				"CREATE TABLE numbered (id bigserial); CREATE SEQUENCE counter; CREATE FUNCTION one() RETURNS int LANGUAGE sql AS 'SELECT 1'")
			require.NoError(t, err)
			left, err := pgx.Connect(t.Context(), *dsn)
			require.NoError(t, err)
			_, err = left.Exec(t.Context(), "BEGIN; INSERT INTO app.rows (name) VALUES ('late')")
			require.NoError(t, err)
		})
	}
	require.Equal(t, first, second)
	require.Equal(t, 1, made)
	var other string
	t.Run("two", func(t *testing.T) { first, other = pool.Database(t), pool.Database(t) })
	require.NotEqual(t, first, other, "each test has one of its own")
}
