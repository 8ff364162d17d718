package postgres

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/internal/pgtest"
)

// newPipeline is a pipeline in a transaction that has begun, and another connection.
func newPipeline(t *testing.T) (x *pipeline, queue func(queries ...string) *batch, other *pgx.Conn) {
	t.Helper()
	dsn := pgtest.Database(t)
	other, err := pgx.Connect(t.Context(), dsn)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, other.Close(context.Background())) })
	db, err := Open(dsn).(opener).database()
	require.NoError(t, err)
	c, err := db.connectFor(t.Context(), time.Minute) // longer than any answer takes
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.close()) })
	require.NoError(t, c.exec(t.Context(), "BEGIN"))
	return &pipeline{c: c}, func(queries ...string) *batch {
		b := &batch{sql: db.sql}
		for _, query := range queries {
			b.queue(query)
		}
		return b
	}, other
}

// The server runs what it has of a commit before it has the rest, and its answer does not wait for what comes behind it.
func TestAPipelineIsRunAsItIsSent(t *testing.T) {
	t.Parallel()
	x, queue, other := newPipeline(t)
	_, err := other.Exec(t.Context(), "SELECT pg_advisory_lock(2)")
	require.NoError(t, err)
	x.send(queue("SELECT pg_advisory_xact_lock(1)"))
	require.Eventually(t, func() (runs bool) {
		require.NoError(t, other.QueryRow(t.Context(), "SELECT NOT pg_try_advisory_xact_lock(1)").Scan(&runs))
		return runs
	}, time.Minute, time.Millisecond)
	done, err := x.finish(queue("SELECT 7::bigint"), queue())
	require.NoError(t, err)
	require.Equal(t, 2, done.n)
	require.EqualValues(t, 7, done.number())

	done, err = x.finish(queue("COMMIT"), queue("BEGIN", "SELECT pg_advisory_xact_lock(2)", currentXact))
	require.NoError(t, err)
	require.Equal(t, 3, done.n)
	_, err = other.Exec(t.Context(), "SELECT pg_advisory_unlock(2)")
	require.NoError(t, err)
	c := x.c
	require.NoError(t, c.exec(t.Context(), "SELECT 1"), "the answers to what is behind are read first")
	require.NotZero(t, c.begun)
	require.Equal(t, byte('T'), c.pg.PgConn().TxStatus())
	require.NoError(t, c.exec(t.Context(), "COMMIT"))
}

// After an error, nothing of what was sent counts, and the connection can be used.
func TestAPipelineFails(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func(x *pipeline, queue func(...string) *batch) (*answers, error){
		"in what was sent first": func(x *pipeline, queue func(...string) *batch) (*answers, error) {
			x.send(queue("SELECT 1", "SELECT 1 / 0"))
			return x.finish(queue("SELECT 2", "COMMIT"), queue("BEGIN", currentXact))
		},
		"at the end": func(x *pipeline, queue func(...string) *batch) (*answers, error) {
			x.send(queue("SELECT 1"))
			return x.finish(queue("SELECT 1 / 0", "COMMIT"), queue("BEGIN", currentXact))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x, queue, _ := newPipeline(t)
			done, err := fail(x, queue)
			require.Equal(t, divisionByZero, code(err))
			require.Equal(t, 1, done.n)
			require.Nil(t, x.c.behind)
			require.Equal(t, byte('E'), x.c.pg.PgConn().TxStatus())
			require.NoError(t, x.c.exec(t.Context(), "ROLLBACK"))
		})
	}
}

// What was begun behind a commit and failed leaves the connection without a transaction.
func TestFailedBeginAfterCommitLeavesNoTransaction(t *testing.T) {
	t.Parallel()
	x, queue, _ := newPipeline(t)
	_, err := x.finish(queue("COMMIT"), queue("BEGIN", "SELECT 1 / 0"))
	require.NoError(t, err)
	x.c.catchUp()
	require.Zero(t, x.c.begun)
	require.Equal(t, byte('I'), x.c.pg.PgConn().TxStatus())
}
