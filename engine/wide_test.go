package engine_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/store/sqlite"
	"github.com/tasq-dev/tasq/store/state"

	"github.com/tasq-dev/tasq/internal/testsize"
)

// A composite task may begin with tens of thousands of child cases in one command, whatever tasks they have: with six automatic
// ones each, as the nightly form has it for 20,000 child cases, they take more steps than anything else may.
func TestAWideCompositeIsNoRunaway(t *testing.T) {
	n, tasks := testsize.Pick(12_000, 12_000, 20_000), testsize.Pick(1, 1, 6) // beyond the bound on the activations of a task
	if testing.Short() {
		n = 2_000 // within the bound, for the race detector alone
	}
	quiet := func(context.Context, *activities.Change) error { return nil }
	hook := func(context.Context, *activities.Activation) error { return nil }
	b := builder.New[int]("child")
	path := []builder.Node{b.Start()}
	for i := range tasks {
		path = append(path, builder.Task(b, fmt.Sprintf("t%d", i), builder.Work[struct{}, struct{}]{
			Auto: true, OnWorkItemStateChanged: quiet, OnEnabled: hook, OnStarted: hook, OnCompleted: hook,
		}))
	}
	b.Path(append(path, b.End())...)
	p := builder.New[struct{}]("parent")
	p.Path(p.Start(), builder.Composite(p, "many", b.MustBuild(), builder.Cases[int]{
		Items: func(context.Context, *activities.Activation) ([]int, error) { return make([]int, n), nil },
	}), p.End())
	parent := p.MustBuild()
	e, err := engine.Open(t.Context(), sqlite.Memory(), parent)
	require.NoError(t, err)
	defer e.Close()
	id, err := parent.Start(t.Context(), e, struct{}{})
	require.NoError(t, err)
	c, err := e.Case(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, state.CaseCompleted, c.State)
}
