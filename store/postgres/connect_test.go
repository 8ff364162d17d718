package postgres_test

import (
	"crypto/rand"
	"net"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/internal/pgtest"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/postgres"
)

// The error of a connection is one line that says what to do, whatever the driver has tried.
func TestTheErrorOfAConnectionIsOneLine(t *testing.T) {
	t.Parallel()
	there, err := url.Parse(pgtest.Database(t))
	require.NoError(t, err)
	free, err := net.Listen("tcp", "127.0.0.1:0") // an address that refuses connections once it is closed
	require.NoError(t, err)
	require.NoError(t, free.Close())
	other := *there
	other.Path = "/no_such_database"
	limited := *there
	role := "tasq_limited_" + strings.ToLower(rand.Text())
	limited.User = url.UserPassword(role, "none")
	execOn(t, there.String(), "CREATE ROLE "+role+" LOGIN PASSWORD 'none' CONNECTION LIMIT 0")
	t.Cleanup(func() { execOn(t, there.String(), "DROP ROLE "+role) })
	for dsn, says := range map[string]string{
		"postgres://tasq@" + free.Addr().String() + "/orders": "the server cannot be reached; check that it runs, and its host and port: ",
		other.String():   "create the database, or name another one",
		limited.String(): "end sessions that are not needed, or raise max_connections, or the limit of the role or the database: ",
	} {
		_, err := postgres.Open(dsn).Open(t.Context(), store.Options{})
		require.ErrorIs(t, err, store.ErrUnavailable)
		text := err.Error()
		require.NotContains(t, text, "\n")
		require.Contains(t, text, says)
		require.NotContains(t, text, "tls error")
		require.Equal(t, 1, strings.Count(text, "127.0.0.1)")+strings.Count(text, "socket"), text)
	}
}

// The parameters of a connection string that name the schema. A program that names one gets it, whatever the connection string says.
func TestTheConnectionStringNamesTheSchema(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Database(t)
	open := func(dsn string, o ...postgres.Option) error {
		s, err := postgres.Open(dsn, o...).Open(t.Context(), store.Options{})
		if err == nil {
			err = s.Close()
		}
		return err
	}
	require.NoError(t, open(dsn+"&tasq_schema=shop"))
	require.NoError(t, open(dsn+"&tasq_schema=shop", postgres.Schema("scratch")))
	require.EqualValues(t, 2, number(t, dsn, "SELECT count(*) FROM pg_namespace WHERE nspname IN ('shop', 'scratch', 'tasq')"))
	for parameter, says := range map[string]string{
		"tasq_schema=Shop": `"Shop" cannot name the schema: use small letters`,
		"tasq_schema=":     "tasq_schema is empty: name the schema",
		"schema=shop":      `schema="shop" is no parameter: write tasq_schema=shop, or use postgres.Schema in a program`,
		"tasq_pol=1s":      "the connection string has a parameter that the server does not know; those of Tasq are tasq_schema, tasq_poll and tasq_window",
	} {
		err := open(dsn + "&" + parameter)
		require.ErrorContains(t, err, says)
		require.NotContains(t, err.Error(), "\n")
	}
}

// Transactions are read only on a standby, and where a setting makes them so.
func TestTransactionsAreReadOnly(t *testing.T) {
	t.Parallel()
	for _, made := range []bool{false, true} {
		dsn := pgtest.Database(t)
		if made {
			s, err := postgres.Open(dsn).Open(t.Context(), store.Options{})
			require.NoError(t, err)
			require.NoError(t, s.Close())
		}
		execOn(t, dsn, "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET default_transaction_read_only = on', current_database()); END $$")
		_, err := postgres.Open(dsn).Open(t.Context(), store.Options{})
		require.ErrorIs(t, err, store.ErrReadOnly)
		require.ErrorContains(t, err, "otherwise default_transaction_read_only is on, for the server, the database or the role: set it to off there")
	}
}
