package postgres_test

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/internal/pgtest"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/postgres"
)

func TestServersThatAreTooOld(t *testing.T) {
	for version, enough := range map[string]bool{
		"14.22": false, "9.6.24": false, "14beta1": false, "14.2 (Debian 14.2-1)": false, "15.0": true, "15.4 (Debian 15.4-1)": true, "18beta1": true, "": true, "devel": true,
	} {
		err := postgres.CheckServer(map[string]string{"server_version": version})
		require.Equal(t, enough, err == nil, version)
		if !enough {
			require.EqualError(t, err, "PostgreSQL database a: the store is unavailable: the server is PostgreSQL "+version+", and Tasq needs version 15 or newer")
		}
	}
}

// A database that cannot store every text is refused when it is opened, and gets no tables.
func TestDatabasesOfAnotherEncoding(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Database(t)
	c, err := pgx.Connect(t.Context(), dsn)
	require.NoError(t, err)
	defer c.Close(context.Background())
	latin := c.Config().Database + "_l"
	_, err = c.Exec(t.Context(), "CREATE DATABASE "+latin+" TEMPLATE template0 ENCODING 'LATIN1' LOCALE 'C' LOCALE_PROVIDER libc")
	require.NoError(t, err)
	defer func() {
		_, err := c.Exec(context.Background(), "DROP DATABASE "+latin)
		require.NoError(t, err)
	}()
	_, err = postgres.Open(strings.Replace(dsn, c.Config().Database, latin, 1)).Open(t.Context(), store.Options{})
	require.ErrorIs(t, err, store.ErrUnavailable)
	require.ErrorContains(t, err, "the encoding of the database is LATIN1, which does not have every character; make one with CREATE DATABASE name ENCODING 'UTF8'")
}

// The timeouts and limits of the role or the database are named as the cause, with what to do.
func TestLimitsOfTheRoleAreNamed(t *testing.T) {
	t.Parallel()
	for code, says := range map[string]string{
		"55P03": "the statement waited too long for a lock of another transaction: ",
		"57014": "unless the connection string has another one (statement_timeout=10min): ",
		"53400": "if it is temp_file_limit, raise that or work_mem for the role: ",
	} {
		err := postgres.Explain(&pgconn.PgError{Severity: "ERROR", Message: "it failed", Code: code})
		require.ErrorIs(t, err, store.ErrUnavailable)
		require.ErrorContains(t, err, says+"ERROR: it failed (SQLSTATE "+code+")")
	}
	dsn := prepared.Database(t)
	for setting, works := range map[string]bool{"50ms": false, "10min": true} {
		s, err := postgres.Open(dsn+"&statement_timeout="+setting).Open(t.Context(), store.Options{ReadOnly: true})
		require.NoError(t, err)
		err = s.View(t.Context(), func(r store.Reader) error {
			_, err := r.DB().ExecContext(t.Context(), "SELECT pg_sleep(0.2)")
			return err
		})
		require.Equal(t, works, err == nil, "%s: %v", setting, err)
		require.NoError(t, s.Close())
	}
}
