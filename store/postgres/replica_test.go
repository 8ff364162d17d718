package postgres_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/internal/pgtest"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/postgres"
	"github.com/tasq-dev/tasq/store/storetest"
	"github.com/tasq-dev/tasq/workitem"
)

// A standby that lacks the last commits gives the numbers of their transactions again. An engine that still knows what was lost finds that it
// is stale nevertheless: no entry has the position of a lost one.
func TestPositionsAfterAPromotionAreNew(t *testing.T) {
	t.Parallel()
	pair := pgtest.Replicated(t, false)
	a := storetest.NewWorld(t, sharedOpener{postgres.Open(pair.DSN)}, 1)
	b := storetest.NewWorld(t, sharedOpener{postgres.Open(pair.DSN)}, 2)
	var id workitem.CaseID
	a.Update(func(b *storetest.Batch) { id = b.Start(`1`) })
	require.Eventually(t, func() bool {
		return number(t, pair.Standby, "SELECT count(*) FROM pg_tables WHERE schemaname = 'tasq'") > 0 &&
			number(t, pair.Standby, "SELECT count(*) FROM tasq.journal") == 1
	}, time.Minute, 10*time.Millisecond)
	_, err := sharedOpener{postgres.Open(pair.Standby)}.Open(t.Context(), store.Options{})
	require.ErrorIs(t, err, store.ErrReadOnly)
	require.ErrorContains(t, err, "if the server is a standby, name the primary")
	require.NoError(t, pair.Detach())
	for range 30 { // are acknowledged, and lost
		require.NoError(t, step(a, id, false))
	}
	lost := a.Acknowledged[len(a.Acknowledged)-1].Seq
	require.NoError(t, pair.Kill())
	require.NoError(t, pair.Promote())
	awake(t, b)
	b.Resume()
	for last := int64(0); last < lost; { // each of its transactions has the next number
		require.NoError(t, step(b, id, false))
		last = b.Acknowledged[len(b.Acknowledged)-1].Seq
	}
	awake(t, a)
	var stale *store.StaleError
	require.ErrorAs(t, step(a, id, false), &stale)
	require.Equal(t, []workitem.CaseID{id}, stale.Roots)
	b.Check()
	a.Resume()
	a.Check()
}

// awake waits until a store has connections to a server that can be written.
func awake(t *testing.T, w *storetest.World) {
	t.Helper()
	require.Eventually(t, func() bool {
		return w.TryUpdate(func(b *storetest.Batch) error {
			_, err := b.Tx.DB().ExecContext(t.Context(), "SELECT 1")
			return err
		}) == nil && w.Store.View(t.Context(), func(store.Reader) error { return nil }) == nil
	}, time.Minute, 10*time.Millisecond)
}
