package engine_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// diary records the calls of activities, in order.
type diary struct{ lines []string }

func (d *diary) take() []string {
	lines := d.lines
	d.lines = nil
	return lines
}

func (d *diary) note(format string, args ...any) {
	d.lines = append(d.lines, fmt.Sprintf(format, args...))
}

func (d *diary) task(what string) func(context.Context, *activities.Activation) error {
	return func(_ context.Context, a *activities.Activation) error {
		d.note("%s.%s", a.Task(), what)
		return nil
	}
}

func (d *diary) item(what string) func(context.Context, *activities.Item) error {
	return func(_ context.Context, it *activities.Item) error {
		d.note("%s.%s", it.Label(), what)
		return nil
	}
}

func (d *diary) change(_ context.Context, c *activities.Change) error {
	what := "child"
	if c.Item != nil {
		what = c.Item.Label()
	}
	d.note("%s told %s %s->%s", c.Task(), what, c.From, c.To)
	return nil
}

// work is a task all of whose activities write into the diary.
func (d *diary) work(items int) builder.Work[any, any] {
	return builder.Work[any, any]{
		Items:     func(context.Context, *activities.Activation) ([]any, error) { return make([]any, items), nil },
		OnEnabled: d.task("onEnabled"), OnStarted: d.task("onStarted"), OnCompleted: d.task("onCompleted"),
		OnFailed: d.task("onFailed"), OnCanceled: d.task("onCanceled"), OnDisabled: d.task("onDisabled"),
		OnWorkItemStateChanged: d.change,
		Item: activities.ItemHooks{
			OnInitialized: d.item("onInitialized"), OnStarted: d.item("onStarted"), OnCompleted: d.item("onCompleted"),
			OnFailed: d.item("onFailed"), OnCanceled: d.item("onCanceled"), OnReset: d.item("onReset"),
		},
	}
}

func (d *diary) hooks(b *builder.Builder[any], name string) {
	hook := func(what string) func(context.Context, *activities.Case) error {
		return func(context.Context, *activities.Case) error {
			d.note("%s.%s", name, what)
			return nil
		}
	}
	b.OnInitialized(hook("onInitialized"))
	b.OnStarted(hook("onStarted"))
	b.OnCompleted(hook("onCompleted"))
	b.OnFailed(hook("onFailed"))
	b.OnCanceled(hook("onCanceled"))
}

// nested is the net of the reference's event orders: a routing task, then a composite task beside a plain one, then a
// join.
func nested(t *testing.T, d *diary) *builder.Workflow[any] {
	t.Helper()
	c := builder.New[any]("child")
	d.hooks(c, "child")
	ct := builder.Task(c, "ct", d.work(2))
	c.Path(c.Start(), ct, c.End())
	child, err := c.Build()
	require.NoError(t, err)

	b := builder.New[any]("root")
	d.hooks(b, "root")
	fork := b.Routing("fork", builder.Routing{Split: builder.And})
	comp := builder.Composite(b, "comp", child, builder.Cases[any]{
		OnEnabled: d.task("onEnabled"), OnStarted: d.task("onStarted"), OnCompleted: d.task("onCompleted"),
		OnFailed: d.task("onFailed"), OnCanceled: d.task("onCanceled"), OnDisabled: d.task("onDisabled"),
		OnWorkItemStateChanged: d.change,
	})
	p := builder.Task(b, "p", d.work(1))
	w := d.work(1)
	w.Join = builder.And
	n := builder.Task(b, "n", w)
	b.Path(b.Start(), fork, comp, n, b.End())
	b.Path(fork, p, n)
	root, err := b.Build()
	require.NoError(t, err)
	return root
}

func do(t *testing.T, e *enginetest.Engine, label string, actions ...workitem.Action) {
	t.Helper()
	for _, a := range actions {
		found := false
		for row, err := range store.AllItems(t.Context(), e, store.ItemFilter{}) {
			require.NoError(t, err)
			if row.Label() == label {
				found = true
				require.NoError(t, enginetest.Do(t.Context(), e, workflow.Act(row.ID, a, nil)))
			}
		}
		require.True(t, found, "no item %s", label)
	}
}

func TestCallbacksAreCalledInTheOrderOfEvents(t *testing.T) {
	var d diary
	root := nested(t, &d)
	e := enginetest.New(t, root)
	_, err := root.Start(t.Context(), e, nil)
	require.NoError(t, err)
	require.Equal(t, []string{
		"root.onInitialized", "root.onStarted",
		"comp.onEnabled", "child.onInitialized", "ct.onEnabled", "ct.1.1.onInitialized", "ct.1.2.onInitialized",
		"p.onEnabled", "p.1.1.onInitialized",
	}, d.take(), "a case's own onInitialized comes before its first tasks")

	do(t, e, "ct.1.1", workitem.Start)
	require.Equal(t, []string{
		"comp.onStarted", "child.onStarted", "comp told child initialized->started",
		"ct.onStarted", "ct.1.1.onStarted", "ct told ct.1.1 initialized->started",
	}, d.take(), "from the top down")

	do(t, e, "ct.1.1", workitem.Complete)
	require.Equal(t, []string{"ct.1.1.onCompleted", "ct told ct.1.1 started->completed"}, d.take())

	do(t, e, "ct.1.2", workitem.Start, workitem.Complete)
	require.Equal(t, []string{
		"ct.1.2.onStarted", "ct told ct.1.2 initialized->started", "ct.1.2.onCompleted", "ct told ct.1.2 started->completed",
		"ct.onCompleted", "child.onCompleted", "comp told child started->completed", "comp.onCompleted",
	}, d.take(), "and from the bottom up")

	do(t, e, "p.1.1", workitem.Start, workitem.Complete)
	require.Equal(t, []string{
		"p.onStarted", "p.1.1.onStarted", "p told p.1.1 initialized->started",
		"p.1.1.onCompleted", "p told p.1.1 started->completed", "p.onCompleted", "n.onEnabled", "n.1.1.onInitialized",
	}, d.take())

	do(t, e, "n.1.1", workitem.Start, workitem.Reset, workitem.Start, workitem.Complete)
	require.Equal(t, []string{
		"n.onStarted", "n.1.1.onStarted", "n told n.1.1 initialized->started",
		"n.1.1.onReset", "n told n.1.1 started->initialized",
		"n.1.1.onStarted", "n told n.1.1 initialized->started",
		"n.1.1.onCompleted", "n told n.1.1 started->completed", "n.onCompleted", "root.onCompleted",
	}, d.take())
}

func TestFailureCallsHandlersFromTheItemUpToTheRoot(t *testing.T) {
	var d diary
	root := nested(t, &d)
	e := enginetest.New(t, root)
	_, err := root.Start(t.Context(), e, nil)
	require.NoError(t, err)
	do(t, e, "ct.1.1", workitem.Start)
	d.take()
	do(t, e, "ct.1.1", workitem.Fail)
	require.Equal(t, []string{
		"ct.1.1.onFailed", "ct told ct.1.1 started->failed",
		"ct.1.2.onCanceled", "ct told ct.1.2 initialized->canceled", "ct.onFailed",
		"child.onFailed", "comp told child started->failed", "comp.onFailed",
		"p.1.1.onCanceled", "p told p.1.1 initialized->canceled", "p.onDisabled", "root.onFailed",
	}, d.take())
}

func TestCancellationCallsHandlersFromTheLeavesUp(t *testing.T) {
	var d diary
	root := nested(t, &d)
	e := enginetest.New(t, root)
	id, err := root.Start(t.Context(), e, nil)
	require.NoError(t, err)
	do(t, e, "ct.1.1", workitem.Start)
	d.take()
	require.NoError(t, enginetest.Do(t.Context(), e, workflow.Cancel(id, nil)))
	require.Equal(t, []string{
		"ct.1.1.onCanceled", "ct told ct.1.1 started->canceled", "ct.1.2.onCanceled", "ct told ct.1.2 initialized->canceled",
		"ct.onCanceled", "child.onCanceled", "comp told child started->canceled", "comp.onCanceled",
		"p.1.1.onCanceled", "p told p.1.1 initialized->canceled", "p.onDisabled", "root.onCanceled",
	}, d.take())
}

func TestAutomaticItemsAreProcessedInTheOrderOfTheirEvents(t *testing.T) {
	var d diary
	b := builder.New[any]("w")
	d.hooks(b, "w")
	w := d.work(2)
	w.Auto = true
	a := builder.Task(b, "a", w)
	next := builder.Task(b, "b", d.work(1))
	b.Path(b.Start(), a, next, b.End())
	workflow, err := b.Build()
	require.NoError(t, err)
	e := enginetest.New(t, workflow)
	_, err = workflow.Start(t.Context(), e, nil)
	require.NoError(t, err)
	require.Equal(t, []string{
		"w.onInitialized", "a.onEnabled", "a.1.1.onInitialized", "a.1.2.onInitialized",
		"w.onStarted", "a.onStarted", "a.1.1.onStarted", "a told a.1.1 initialized->started",
		"a.1.1.onCompleted", "a told a.1.1 started->completed",
		"a.1.2.onStarted", "a told a.1.2 initialized->started", "a.1.2.onCompleted", "a told a.1.2 started->completed",
		"a.onCompleted", "b.onEnabled", "b.1.1.onInitialized",
	}, d.take(), "an event is told before its consequences")
}

func TestItemsMadeWhileAnswering(t *testing.T) {
	completed, made := 0, 0
	b := builder.New[any]("more")
	task := builder.Task(b, "t", builder.Work[any, any]{
		Auto:        true,
		OnCompleted: func(context.Context, *activities.Activation) error { completed++; return nil },
		OnWorkItemStateChanged: func(ctx context.Context, c *activities.Change) error {
			if c.To != workitem.Completed || made == 2 {
				return nil
			}
			made++
			_, err := c.NewItem(ctx, activities.NewItem{})
			return err
		},
	})
	b.Path(b.Start(), task, b.End())
	w, err := b.Build()
	require.NoError(t, err)
	e := enginetest.New(t, w)
	id, err := w.Start(t.Context(), e, nil)
	require.NoError(t, err)
	require.Equal(t, 1, completed, "a task completes once")
	require.Equal(t, []string{"t.1.1 completed 1", "t.1.2 completed 1", "t.1.3 completed 1"}, items(t, e, id))
}

func TestAPolicyThatFailsAtTheStartFailsTheCase(t *testing.T) {
	b := builder.New[any]("strict")
	task := builder.Task(b, "t", builder.Work[any, any]{
		Policy: workitem.NewPolicy("never", func(o workitem.Outcome) (workitem.Verdict, error) { return workitem.FailTask, nil }),
	})
	b.Path(b.Start(), task, b.End())
	w, err := b.Build()
	require.NoError(t, err)
	e := enginetest.New(t, w)
	id, err := w.Start(t.Context(), e, nil)
	require.NoError(t, err)
	do(t, e, "t.1.1", workitem.Start)
	c, err := e.Case(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, state.CaseFailed, c.State)
	require.Equal(t, []string{"t.1.1 canceled 1 case-failed"}, items(t, e, id))
}
