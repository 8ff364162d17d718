package postgres_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/internal/pgtest"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/postgres"
	"github.com/tasq-dev/tasq/store/storetest"
)

// prepared are databases whose tables are there, for tests of what happens in them.
var prepared = pgtest.Pool{Schema: postgres.DefaultSchema, Make: func(dsn string) error {
	s, err := postgres.Open(dsn).Open(context.Background(), store.Options{})
	if err != nil {
		return err
	}
	return s.Close()
}}

func TestStore(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T) store.Opener { return postgres.Open(prepared.Database(t)) })
}

func TestWhatEndedEarlierIsCounted(t *testing.T) {
	t.Parallel()
	ctx, dsn := t.Context(), prepared.Database(t)
	storetest.EndedEarlier(t, postgres.Open(dsn), "tasq.", ", root", ", ID", "DELETE FROM tasq.schema_migrations WHERE version >= 4", func(sql string) {
		c, err := pgx.Connect(ctx, dsn)
		require.NoError(t, err)
		defer c.Close(context.Background())
		_, err = c.Exec(ctx, sql)
		require.NoError(t, err)
	})
}

func TestFleet(t *testing.T) {
	t.Parallel()
	storetest.RunFleet(t, func(t *testing.T) store.Opener {
		dsn := prepared.Database(t)
		return fenced{postgres.Open(dsn), dsn}
	})
}

// fenced is an Opener by which a test has another process declare all engines dead.
type fenced struct {
	store.Opener
	dsn string
}

// Fence declares all engines dead, as another one would.
func (f fenced) Fence(ctx context.Context) error {
	c, err := pgx.Connect(ctx, f.dsn)
	if err != nil {
		return err
	}
	_, err = c.Exec(ctx, "UPDATE tasq.processes SET state = 'dead'")
	return errors.Join(err, c.Close(ctx))
}

// Leave lets another process leave a command.
func (f fenced) Leave(ctx context.Context, command json.RawMessage) error {
	return postgres.Leave(ctx, f.dsn, command)
}
