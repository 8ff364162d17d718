package postgres_test

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
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
