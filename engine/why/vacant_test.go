package why_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/engine/why"
	"github.com/tasq-dev/tasq/workflow"
)

// A task whose Items returns none waits for an item: the answer names the task, and what can be done.
func TestATaskWithoutItemsIsNamed(t *testing.T) {
	none := func(context.Context, *activities.Activation) ([]any, error) { return nil, nil }
	child := desk(t, "child", builder.Work[any, any]{})
	b := builder.New[any]("parent")
	b.Path(b.Start(), builder.Composite(b, "parts", child, builder.Cases[any]{Items: none}), b.End())
	parent := b.MustBuild()
	for _, c := range []struct {
		w    *builder.Workflow[any]
		task string
		says string
	}{
		{desk(t, "desk", builder.Work[any, any]{Items: none}), "check",
			"task check is enabled and has no work items, so it cannot start (workflow.AddItem adds one), and nothing else is under way: there are tokens in start"},
		{parent, "parts",
			"composite task parts is enabled and has no child cases, so it cannot start, and nothing else is under way: there are tokens in start"},
	} {
		t.Run(c.task, func(t *testing.T) {
			e := enginetest.New(t, c.w)
			id := start(t, e, c.w)
			w := only(t, ask(t, e, id))
			require.Equal(t, why.Stuck, w.Kind)
			require.Equal(t, c.task, w.Task)
			require.Equal(t, c.says+"; move one to where the case can continue, or cancel the case", w.Text)
			require.Equal(t, []string{"tasq case move " + id.String() + " FROM TO", "tasq case cancel " + id.String()}, w.Commands)
			e.Advance(time.Minute)
			var reasons []string
			for s, err := range why.Stranded(t.Context(), e, why.Search{Here: e.Here(), Now: e.Now()}) {
				require.NoError(t, err)
				reasons = append(reasons, s.Reason)
			}
			require.Equal(t, []string{c.says}, reasons)
			if c.task == "check" {
				require.NoError(t, enginetest.Do(t.Context(), e, workflow.AddItem(id, "check", nil)), "what the text names")
				require.Equal(t, why.Person, only(t, ask(t, e, id)).Kind)
			}
		})
	}
}
