package postgres_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/internal/pgtest"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/postgres"
)

// Changes of counts are added up in rows, which say the same before and after. What is left with nothing is gone, also for what ended.
func TestCountsAreFolded(t *testing.T) {
	t.Parallel()
	ctx, dsn := t.Context(), pgtest.Database(t)
	s, err := postgres.Open(dsn).Open(ctx, store.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	c, err := pgx.Connect(ctx, dsn)
	require.NoError(t, err)
	defer c.Close(context.Background())
	number := func(query string) (n int) {
		t.Helper()
		require.NoError(t, c.QueryRow(ctx, query).Scan(&n), query)
		return n
	}
	for round := 1; round <= 3; round++ {
		_, err = c.Exec(ctx, `INSERT INTO tasq.count_deltas VALUES ('item', 'article', 'draft', 'completed', 2), ('item', 'article', 'draft', 'completed', 3),
			('item', 'article', 'draft', 'started', 1), ('item', 'article', 'draft', 'started', -1)`)
		require.NoError(t, err)
		_, err = c.Exec(ctx, `INSERT INTO tasq.ended_deltas VALUES (7, 'article', 'draft', 'completed', 9, 2), (7, 'article', 'draft', 'completed', 9, 3),
			(7, 'article', 'draft', 'failed', 0, $1)`, []int{4, -4, 1}[round-1]) // removed in the second round
		require.NoError(t, err)
		for range 2 { // before and after
			require.NoError(t, s.View(ctx, func(r store.Reader) error {
				counts, err := r.Counts(ctx)
				require.NoError(t, err)
				require.Equal(t, []store.Count{{What: "item", Workflow: "article", Task: "draft", State: "completed", N: int64(5 * round)}}, counts)
				ended, err := r.Ended(ctx, store.RateFilter{})
				require.NoError(t, err)
				require.Len(t, ended, 1+round%2)
				return nil
			}))
			postgres.Fold(s)
			require.NoError(t, s.Idle(ctx))
		}
		require.Zero(t, number("SELECT (SELECT count(*) FROM tasq.count_deltas) + (SELECT count(*) FROM tasq.ended_deltas)"))
		require.Equal(t, 5*round, number("SELECT n FROM tasq.counts WHERE state = 'completed'"))
		require.Equal(t, 5*round, number("SELECT n FROM tasq.ended WHERE state = 'completed'"))
		require.Equal(t, 1+round%2, number("SELECT count(*) FROM tasq.ended"))
	}
}
