package database_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/cmd/tasq/internal/database"
	"github.com/tasq-dev/tasq/internal/pgtest"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/postgres"
)

func TestOf(t *testing.T) {
	for _, c := range []struct{ word, name, file, beside, query string }{
		{"a.db", "a.db", "a.db", "a.db.calls", `sqlite3 a.db "SELECT 1"`},
		{"my cases.db", "my cases.db", "my cases.db", "my cases.db.calls", `sqlite3 'my cases.db' "SELECT 1"`},
		{"postgres://ada:secret@db.example/shop", "postgres://ada:xxxxx@db.example/shop", "", "shop.calls",
			`PGOPTIONS='-c search_path=tasq' psql postgres://ada:xxxxx@db.example/shop -c "SELECT 1"`},
		{"postgres://db.example/a?x=1&y=2", "postgres://db.example/a?x=1&y=2", "", "a.calls",
			`PGOPTIONS='-c search_path=tasq' psql 'postgres://db.example/a?x=1&y=2' -c "SELECT 1"`},
		{"postgres://db.example/a?tasq_schema=x&b=1&tasq_poll=1s", "postgres://db.example/a?tasq_schema=x&b=1&tasq_poll=1s", "", "a.calls",
			`PGOPTIONS='-c search_path=x' psql 'postgres://db.example/a?b=1' -c "SELECT 1"`},
		{"postgres://db.example/a?user=ada&password=secret&sslpassword=secret", "postgres://db.example/a?password=xxxxx&sslpassword=xxxxx&user=ada", "", "a.calls",
			`PGOPTIONS='-c search_path=tasq' psql 'postgres://db.example/a?password=xxxxx&sslpassword=xxxxx&user=ada' -c "SELECT 1"`},
		{"postgresql://db.example", "postgresql://db.example", "", "tasq.calls",
			`PGOPTIONS='-c search_path=tasq' psql postgresql://db.example -c "SELECT 1"`},
		{"host=db password=secret", "the database", "host=db password=secret", "host=db password=secret.calls", `sqlite3 'host=db password=secret' "SELECT 1"`},
		{"postgres://%zz", "the database", "", "tasq.calls", `PGOPTIONS='-c search_path=tasq' psql 'the database' -c "SELECT 1"`},
	} {
		d := database.Of(c.word)
		require.Equal(t, c.name, d.Name(), "a password is not shown")
		require.Equal(t, c.file, d.File())
		require.Equal(t, c.beside, d.Beside(".calls"))
		require.Equal(t, c.query, d.Query("SELECT 1"), "psql refuses the parameters that are Tasq's")
	}
}

func TestFresh(t *testing.T) {
	ctx := t.Context()
	for name, word := range map[string]string{"file": filepath.Join(t.TempDir(), "a.db"), "server": ""} {
		t.Run(name, func(t *testing.T) {
			if name == "server" {
				word = pgtest.Database(t)
			}
			d := database.Of(word)
			require.True(t, d.Fresh(ctx))
			s, err := d.Opener().Open(ctx, store.Options{})
			require.NoError(t, err)
			require.NoError(t, s.Close())
			require.False(t, d.Fresh(ctx))
		})
	}
}

// A scratch database of a server is a schema of its own; nothing of it stays.
func TestScratch(t *testing.T) {
	ctx := t.Context()
	dsn := pgtest.Database(t)
	one, dropOne := database.Of(dsn).Scratch()
	two, dropTwo := database.Of(dsn).Scratch()
	for _, o := range []store.Opener{one, two} {
		s, err := o.Open(ctx, store.Options{})
		require.NoError(t, err)
		require.NoError(t, s.Close())
	}
	require.NoError(t, dropOne(ctx))
	_, err := one.Open(ctx, store.Options{ReadOnly: true})
	require.Error(t, err, "it is gone")
	s, err := two.Open(ctx, store.Options{ReadOnly: true})
	require.NoError(t, err, "the other one is there")
	require.NoError(t, s.Close())
	require.NoError(t, dropTwo(ctx))
	require.NoError(t, dropTwo(ctx), "once more changes nothing")
	require.True(t, database.Of(dsn).Fresh(ctx), "the database's own schema was never made")

	_, drop := database.Of("a.db").Scratch()
	require.NoError(t, drop(context.Background()), "memory needs no removal")
	require.ErrorIs(t, postgres.Drop(ctx, "postgres://127.0.0.1:1/x?connect_timeout=1"), store.ErrUnavailable)
}
