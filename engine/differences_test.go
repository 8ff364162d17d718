package engine_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// What changes in a child case, and in one of that, differs in each case above, whose own state is the same.
func TestDifferencesInsideAChildCase(t *testing.T) {
	t.Parallel()
	inner := builder.New[any]("inner")
	first := builder.Task(inner, "first", builder.Work[any, any]{})
	inner.Path(inner.Start(), first, builder.Task(inner, "second", builder.Work[any, any]{}), inner.End())
	middle := builder.New[any]("middle")
	middle.Path(middle.Start(), builder.Composite(middle, "do", inner.MustBuild(), builder.Cases[any]{}), middle.End())
	outer := builder.New[any]("outer")
	outer.Path(outer.Start(), builder.Composite(outer, "part", middle.MustBuild(), builder.Cases[any]{}), outer.End())
	w := outer.MustBuild()
	e := enginetest.New(t, w)
	id, err := w.Start(t.Context(), e, nil)
	require.NoError(t, err)
	child := caseOf(t, e, id).Children[0]
	grandchild := caseOf(t, e, child).Children[0]
	it := e.StartItem(grandchild, "first.1.1")
	before := slices.Max(positions(t, e, id))
	require.NoError(t, enginetest.Do(t.Context(), e, workflow.Act(it.ID, workitem.Complete, nil)))

	from := func(of workitem.CaseID) []store.Difference {
		all, err := store.Differences(t.Context(), e, of, store.Moment{Seq: before}, store.Moment{})
		require.NoError(t, err)
		return all
	}
	require.Len(t, from(grandchild), 5, "a token, the tasks and their items")
	require.Equal(t, []store.Difference{{What: "child case", Name: grandchild.String(), From: "started", To: "started, with 5 differences inside"}}, from(child))
	require.Equal(t, []store.Difference{{What: "child case", Name: child.String(), From: "started", To: "started, with 1 difference inside"}}, from(id))
	before = slices.Max(positions(t, e, id))
	require.Empty(t, from(id))
}
