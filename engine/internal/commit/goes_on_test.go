package commit_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/engine/internal/commit"
	"github.com/tasq-dev/tasq/engine/internal/kernel"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// only has one definition, whatever is asked for.
type only struct{ d *workflow.Definition }

func (o only) Definition(string) *workflow.Definition { return o.d }
func (o only) Named(string) *workflow.Definition      { return o.d }

// observing notes what a writer says of a case while its observers learn of a commit.
type observing struct {
	w    *commit.Writer
	seen []bool
}

// Committed implements commit.Observer.
func (o *observing) Committed(tree *state.Tree, _ []state.Change) {
	o.seen = append(o.seen, o.w.IsLive(tree.Root))
}

// changes makes a request that runs a command on a tree.
func changes(root workitem.CaseID, f func(*kernel.Machine) error) *commit.Request {
	return &commit.Request{Run: func(tx *commit.Tx) error {
		u, err := tx.Open(root)
		if err != nil {
			return err
		}
		return tx.Internal(u, "change", f)
	}}
}

// A case goes on from a commit that leaves it live and in memory, until one that ends it, or its leaving memory. It
// does not go on any more when the observers learn of its end: a caller that asks later, and gets the answer that the
// case continues, is notified of an end that is still to come.
func TestACaseGoesOn(t *testing.T) {
	suspend := func(root workitem.CaseID) *commit.Request {
		return changes(root, func(m *kernel.Machine) error { return m.Repairs().SuspendCase(root, "") })
	}
	end := changes(one, func(m *kernel.Machine) error { return m.Cancel(one, nil) })
	d := only{&workflow.Definition{Net: onlyNet, Tasks: make([]workflow.Task, 1)}}
	w := writerOf(t, &fleetStore{newest: map[workitem.CaseID]int64{}}, new(int), d, false)
	o := &observing{w: w}
	w.Observe(o)
	w.Start()
	require.NoError(t, w.Submit(t.Context(), looks(one, new([]int64))))
	require.False(t, w.IsLive(one), "it is in memory, and nothing was committed")
	require.NoError(t, w.Submit(t.Context(), suspend(one)))
	require.True(t, w.IsLive(one))
	require.NoError(t, w.Submit(t.Context(), end))
	require.False(t, w.IsLive(one))
	require.Equal(t, []bool{true, false}, o.seen)

	require.NoError(t, w.Submit(t.Context(), suspend(two)))
	require.True(t, w.IsLive(two))
	require.NoError(t, w.Submit(t.Context(), suspend(one)))
	require.NoError(t, w.Submit(t.Context(), looks(one, new([]int64))))
	require.False(t, w.IsLive(one) && w.IsLive(two), "one case is kept in memory")

	shared := writerOf(t, &fleetStore{newest: map[workitem.CaseID]int64{}}, new(int), d, true)
	shared.Start()
	require.NoError(t, shared.Submit(t.Context(), suspend(one)))
	require.True(t, shared.IsLive(one))
	shared.Forget([]workitem.CaseID{one})
	require.NoError(t, shared.Submit(t.Context(), looks(two, new([]int64))))
	require.False(t, shared.IsLive(one), "another engine has changed it")
}
