package engine_test

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/store/sqlite"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// witness notes who each callback sees: the actor of the command, and who acted on the item before.
type witness struct {
	*builder.Workflow[any]
	task *builder.TaskRef[any, any]
	seen []string
}

func newWitness(t *testing.T) *witness {
	t.Helper()
	w := new(witness)
	note := func(what string, actor string) { w.seen = append(w.seen, what+" "+actor) }
	item := func(what string) func(context.Context, *activities.Item) error {
		return func(_ context.Context, it *activities.Item) error {
			note(what, fmt.Sprintf("by %q after %q", it.Actor(), it.By))
			return nil
		}
	}
	failing := func(what string) func(context.Context, *activities.Item, *workitem.Failure) error {
		return func(ctx context.Context, it *activities.Item, _ *workitem.Failure) error { return item(what)(ctx, it) }
	}
	payload := func(what string) func(context.Context, *activities.Item, any) error {
		return func(ctx context.Context, it *activities.Item, _ any) error { return item(what)(ctx, it) }
	}
	b := builder.New[any]("witness")
	b.OnCompleted(func(_ context.Context, c *activities.Case) error {
		note("case", fmt.Sprintf("by %q", c.Actor()))
		return nil
	})
	w.task = builder.Task(b, "t", builder.Work[any, any]{
		Initialize: payload("initialize"), Start: item("start"), Complete: payload("complete"), Fail: failing("fail"),
		Cancel: failing("cancel"), Reset: item("reset"), Item: activities.ItemHooks{OnStarted: item("onStarted")},
		OnEnabled: func(_ context.Context, a *activities.Activation) error {
			note("onEnabled", fmt.Sprintf("by %q", a.Actor()))
			return nil
		},
		OnWorkItemStateChanged: func(_ context.Context, c *activities.Change) error {
			note("change", fmt.Sprintf("to %s by %q, item by %q", c.To, c.Actor(), c.Item.By))
			return nil
		},
		Policy: workitem.ContinueOnFailure(),
		Timers: []activities.Timer{activities.Escalate("look", time.Hour, item("timer"))},
	})
	b.Path(b.Start(), w.task, b.End())
	var err error
	w.Workflow, err = b.Build()
	require.NoError(t, err)
	return w
}

func (w *witness) saw(t *testing.T, want ...string) {
	t.Helper()
	require.Equal(t, want, w.seen)
	w.seen = nil
}

func TestCallbacksSeeWhoAsks(t *testing.T) {
	w := newWitness(t)
	e := enginetest.New(t, w)
	id, err := w.Start(t.Context(), e, nil, workflow.By("ann"))
	require.NoError(t, err)
	w.saw(t, `onEnabled by "ann"`, `initialize by "ann" after ""`)
	it := live(t, e, id, "t")
	require.Empty(t, it.By, "a fresh item has no actor")

	require.NoError(t, w.task.Start(t.Context(), e, it.ID, workflow.By("bob")))
	w.saw(t, `start by "bob" after ""`, `onStarted by "bob" after "bob"`, `change to started by "bob", item by "bob"`)
	require.NoError(t, w.task.Reset(t.Context(), e, it.ID, workflow.By("cid")))
	w.saw(t, `reset by "cid" after "bob"`, `change to initialized by "cid", item by "cid"`)
	require.NoError(t, w.task.Start(t.Context(), e, it.ID))
	w.saw(t, `start by "" after "cid"`, `onStarted by "" after ""`, `change to started by "", item by ""`)
	err = e.Update(t.Context(), func(tx *engine.Tx) error {
		return w.task.Fail(t.Context(), tx, it.ID, nil, workflow.By("dan"))
	})
	require.NoError(t, err)
	w.saw(t, `fail by "dan" after ""`, `change to failed by "dan", item by "dan"`, `case by "dan"`)
}

func TestATimerHasNoActor(t *testing.T) {
	w := newWitness(t)
	e := enginetest.New(t, w)
	id, err := w.Start(t.Context(), e, nil, workflow.By("ann"))
	require.NoError(t, err)
	it := live(t, e, id, "t")
	require.NoError(t, w.task.Start(t.Context(), e, it.ID, workflow.By("bob")))
	w.seen = nil
	e.Advance(time.Hour)
	w.saw(t, `timer by "" after "bob"`)
	require.NoError(t, w.task.Cancel(t.Context(), e, it.ID, nil, workflow.By("cid")))
	w.saw(t, `cancel by "cid" after "bob"`, `change to canceled by "cid", item by "cid"`, `case by "cid"`)
}

func TestAnItemThatIsAddedSeesWhoAddsIt(t *testing.T) {
	w := newWitness(t)
	e := enginetest.New(t, w)
	id, err := w.Start(t.Context(), e, nil)
	require.NoError(t, err)
	w.seen = nil
	added, err := e.Do(t.Context(), workflow.AddItem(id, "t", nil, workflow.By("eve")))
	require.NoError(t, err)
	w.saw(t, `initialize by "eve" after ""`)
	row, err := e.Engine.Item(t.Context(), added.Item)
	require.NoError(t, err)
	require.Empty(t, row.By)
}

func TestCallbacksSeeActorOfRemoteCommand(t *testing.T) {
	t.Parallel()
	w := newWitness(t)
	path := filepath.Join(t.TempDir(), "witness.db")
	e := enginetest.Open(t, sqlite.File(path), engine.Config{}, w)
	started, err := post(t, path, workflow.Command{Kind: workflow.KindStart, Workflow: "witness", Actor: "ann"})
	require.NoError(t, err)
	w.saw(t, `onEnabled by "ann"`, `initialize by "ann" after ""`)
	it := live(t, e, started.Case, "t").ID
	for _, action := range []workitem.Action{workitem.Start, workitem.Complete} {
		_, err = post(t, path, workflow.Command{Kind: workflow.KindAct, Item: it, Action: action, Actor: action.String() + "er"})
		require.NoError(t, err)
	}
	w.saw(t, `start by "starter" after ""`, `onStarted by "starter" after "starter"`,
		`change to started by "starter", item by "starter"`, `complete by "completeer" after "starter"`,
		`change to completed by "completeer", item by "completeer"`, `case by "completeer"`)
}
