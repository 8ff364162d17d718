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
