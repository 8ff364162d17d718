package postgres_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/internal/pgtest"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/postgres"
	"github.com/tasq-dev/tasq/store/storetest"
)

// The transactions of an engine are READ COMMITTED, also if those of the database are not: in a snapshot that was taken before
// its commands, an engine would not see that a tree is stale.
func TestTransactionsDoNotHaveTheIsolationOfTheDatabase(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(dsn string) store.Opener{
		"direct": func(dsn string) store.Opener { return postgres.Open(dsn) },
		"pooler": func(dsn string) store.Opener { return sharedOpener{postgres.Open(dsn, postgres.Poll(time.Second))} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dsn := pgtest.Database(t) // with a setting of its own
			c, err := pgx.Connect(t.Context(), dsn)
			require.NoError(t, err)
			defer c.Close(context.Background())
			_, err = c.Exec(t.Context(), "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET default_transaction_isolation = serializable', current_database()); END $$")
			require.NoError(t, err)

			w := storetest.NewWorld(t, open(dsn), 1)
			for range 3 { // later transactions begin before their commands
				w.Update(func(b *storetest.Batch) {
					var level string
					require.NoError(t, b.Tx.DB().QueryRowContext(t.Context(), "SHOW transaction_isolation").Scan(&level))
					require.Equal(t, "read committed", level)
					b.Start(`1`)
				})
			}
			w.Check()
		})
	}
}
