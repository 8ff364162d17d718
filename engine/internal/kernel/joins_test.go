package kernel

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// elements returns what is in a set.
func elements(b net.Bits) (list []int) {
	b.Each(func(i int) { list = append(list, i) })
	return list
}

// What a completion has taken and what was touched since are one set, and are taken once.
func TestJoinsAreTakenOnce(t *testing.T) {
	c := plainCase(t)
	var j joins
	require.Nil(t, j.take(c.ID))
	require.Nil(t, j.takeWith(nil, c.ID))
	j.touch(c, 0)
	before := j.take(c.ID)
	require.Nil(t, j.take(c.ID))
	j.touch(c, 1)
	j.touchBusy(c, 0)
	j.retry(c, 0)
	all := j.takeWith(before, c.ID)
	require.Equal(t, []int{0, 1}, elements(all.conditions))
	require.Equal(t, []int{0}, elements(all.busy))
	require.Equal(t, []int{0}, elements(all.retry))
	require.Same(t, all, j.takeWith(all, c.ID), "nothing was touched since")
	require.Equal(t, []int{0}, elements(all.affected(c.Net)), "what a region canceled is tried again")
}

// The cases of a tree are swept in its order, and those that have ended once more and not again.
func TestJoinsOfEndedCasesAreDropped(t *testing.T) {
	r, root := openRecord(t)
	child := *root
	child.ID, child.Parent, child.ParentTask = workitem.CaseID{2}, root.ID, "a"
	require.NoError(t, r.emit(&state.CaseOpened{Case: &child}))
	var j joins
	require.Empty(t, j.pending(r.tree))
	j.touch(&child, 0)
	j.touch(root, 0)
	require.NoError(t, r.emit(&state.CaseEnded{Case: child.ID, State: state.CaseCanceled, At: r.now}))
	pending := j.pending(r.tree)
	require.Len(t, pending, 2)
	require.Equal(t, root.ID, pending[0].ID)
	require.Len(t, j.pending(r.tree), 1)
	j.drop(root.ID)
	require.Empty(t, j.pending(r.tree))
}

// The sets of a net that is larger than a word have their own memory.
func TestTouchedOfALargeNet(t *testing.T) {
	what := newTouched(65, 3)
	what.conditions.Add(64)
	what.busy.Add(2)
	require.Equal(t, []int{64}, elements(what.conditions))
	require.Equal(t, []int{2}, elements(what.busy))
	require.Empty(t, elements(what.retry))
}
