package postgres_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/internal/pgtest"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/postgres"
	"github.com/tasq-dev/tasq/store/storetest"
	"github.com/tasq-dev/tasq/workitem"
)

// The table of labels has those of cases that were there before it, and none of a case that is removed.
func TestTheTableOfLabelsFollowsTheCases(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Database(t) // it makes a table again
	w := storetest.NewWorld(t, postgres.Open(dsn), 1)
	labeled := func() (labels int) {
		w.View(func(ctx context.Context, r store.Reader) {
			cases, err := r.Cases(ctx, store.CaseFilter{Labels: map[string]string{"customer": "ada"}})
			require.NoError(t, err)
			for _, c := range cases {
				labels += len(c.Labels)
			}
		})
		return labels
	}
	exec := func(sql string) {
		c, err := pgx.Connect(t.Context(), dsn)
		require.NoError(t, err)
		defer c.Close(context.Background())
		_, err = c.Exec(t.Context(), sql)
		require.NoError(t, err)
	}
	var roots []workitem.CaseID
	w.Update(func(b *storetest.Batch) {
		for range 6 {
			root := b.Start(`1`)
			b.Cancel(root, root, &workitem.Failure{Code: "stopped"})
			roots = append(roots, root)
		}
	})
	before := labeled()
	require.NotZero(t, before)

	exec("DROP TABLE tasq.case_labels; DELETE FROM tasq.schema_migrations WHERE version >= 7")
	w.Reopen()
	require.Equal(t, before, labeled())

	rows := func() (n int) {
		c, err := pgx.Connect(t.Context(), dsn)
		require.NoError(t, err)
		defer c.Close(context.Background())
		require.NoError(t, c.QueryRow(t.Context(), "SELECT count(*) FROM tasq.case_labels").Scan(&n))
		return n
	}
	require.Equal(t, before, rows())
	w.Update(func(b *storetest.Batch) {
		for _, root := range roots {
			b.Remove(root)
		}
	})
	require.Zero(t, rows())
	w.Check()
}
