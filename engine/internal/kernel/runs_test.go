package kernel_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/engine/internal/kernel"
	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// startAt starts the first definition at a time.
func (w *world) startAt(due time.Time) (string, error) {
	id := w.host.NewCaseID(w.now)
	w.tree.Root = id
	return w.command(func(m *kernel.Machine) error {
		return m.Start(&state.Case{ID: id, Priority: 3}, w.host.defs[0], json.RawMessage(`1`), due, nil)
	})
}

// A case that is to start later is there, with its onInitialized called, and enables its tasks when its time has come.
// One whose time has come already starts at once.
func TestACaseStartsLater(t *testing.T) {
	var log []string
	d := define(t, "w", "i>a a>e", net.Task{Name: "a"})
	d.Hooks.OnInitialized = func(context.Context, *activities.Case) error { log = append(log, "initialized"); return nil }
	w := newWorld(t, d)
	w.jobs = true
	did, err := w.startAt(w.now.Add(time.Hour))
	require.NoError(t, err)
	require.Equal(t, "+start", did)
	require.Equal(t, []string{"initialized"}, log)
	require.Equal(t, w.now.Add(time.Hour), w.live()[0].Due)
	require.Equal(t, 3, w.live()[0].Priority)
	did, err = w.fire(state.JobStart)
	require.NoError(t, err)
	require.Equal(t, "start=done a+1 a.1.1=initialized", did)
	require.Equal(t, 3, w.root().Items.Slice()[0].Priority, "that of the case, where the task has none")

	w = newWorld(t, d)
	did, err = w.startAt(w.now)
	require.NoError(t, err)
	require.Equal(t, "a+1 a.1.1=initialized", did)
}

// A start that can't be done is given up in the end, and fails its case: nothing else would ever happen to it.
func TestAStartIsGivenUp(t *testing.T) {
	w := newWorld(t, define(t, "w", "i>a a>e", net.Task{Name: "a"}))
	_, err := w.startAt(w.now.Add(time.Hour))
	require.NoError(t, err)
	did, err := w.putOff(1, kernel.EndNothing)
	require.NoError(t, err)
	require.Equal(t, "note:incident case=failed", did)
	require.Equal(t, "refused", w.root().Failure.Code)
	require.Equal(t, net.TaskID(-1), w.last[1].(*state.Noted).Task, "it is about the case")
	require.Contains(t, w.last[1].(*state.Noted).Text, "(start) was given up")
}

// A case decodes its input. What refuses it is the caller's error.
func TestTheInputOfACase(t *testing.T) {
	d := define(t, "w", "i>a a>e", net.Task{Name: "a"})
	d.Version = "2"
	refuse := errors.New("no number")
	d.Accept = func(json.RawMessage) (json.RawMessage, error) { return json.RawMessage(`{"n":1}`), nil }
	w := newWorld(t, d)
	w.must("start")
	require.JSONEq(t, `{"n":1}`, string(w.root().Input))
	d.Accept = func(json.RawMessage) (json.RawMessage, error) { return nil, refuse }
	_, err := newWorld(t, d).do("start")
	require.ErrorIs(t, err, refuse)
	require.ErrorContains(t, err, "start workflow w version 2: no number")
}

// A case whose definition the program does not have is left alone.
func TestADefinitionThatIsNotLoaded(t *testing.T) {
	d := define(t, "w", "i>a a>e", net.Task{Name: "a"})
	w := newWorld(t, d)
	w.must("start")
	w.host.defs = nil
	for _, text := range []string{"begin a.1.1", "drop a.1.1", "cancel"} {
		_, err := w.do(text)
		require.ErrorIs(t, err, kernel.ErrUnknown, text)
		require.ErrorContains(t, err, "runs on workflow w, which the engine was not opened with")
	}
}

// A handler is called by a job that outlives the case: in a worker if it is a function, otherwise in a transaction. One
// that was tried once, and failed, waits.
func TestHandlersAreCalledByJobs(t *testing.T) {
	d := calls(define(t, "w", "i>a a>e", net.Task{Name: "a"}), "work")
	d.Handlers = map[string]*workflow.Handler{"work": {}, "tx": {Run: func(context.Context, activities.CaseInfo, json.RawMessage) error { return nil }}}
	tell := func(name string, failure *workitem.Failure) *state.Job {
		w := newWorld(t, d)
		w.must("start")
		w.must("cancel")
		_, err := w.command(func(m *kernel.Machine) error {
			return m.OpenHandlerCall(workflow.HandlerCall{Handler: name, Value: json.RawMessage(`4`)}, failure, time.Second)
		})
		require.NoError(t, err)
		j := *w.live()[0]
		require.Equal(t, w.now.Add(time.Second), j.Due)
		require.True(t, j.Detached)
		require.JSONEq(t, `4`, string(j.Input))
		require.Equal(t, name, j.Name)
		require.Equal(t, failure, j.Failure)
		return &j
	}
	j := tell("work", nil)
	require.Equal(t, []any{state.JobCall, "q-work", 0}, []any{j.Kind, j.Queue, j.Attempt})
	j = tell("tx", workitem.Failf("bad", "it is"))
	require.Equal(t, []any{state.JobHandler, "", 1}, []any{j.Kind, j.Queue, j.Attempt})
	require.Equal(t, state.JobHandler, tell("unknown", nil).Kind)
}

// A case that has ended can be removed, when the jobs that it left are done.
func TestACaseIsRemoved(t *testing.T) {
	d := calls(define(t, "w", "i>a a>e", net.Task{Name: "a"}), "f")
	d.Sweep, d.Keep = true, time.Hour
	d.Hooks.OnCanceled = func(_ context.Context, c *activities.Case) error {
		_, err := c.Schedule(activities.NewJob{Name: "f"})
		return err
	}
	w := newWorld(t, d)
	w.must("start")
	remove := func() error {
		_, err := w.command(func(m *kernel.Machine) error { return m.Remove() })
		return err
	}
	require.ErrorIs(t, remove(), kernel.ErrUnfinished)
	require.ErrorContains(t, remove(), "it is started")
	w.must("cancel")
	require.Equal(t, w.now.Add(time.Hour), w.root().KeepUntil)
	require.ErrorIs(t, remove(), kernel.ErrUnfinished)
	require.ErrorContains(t, remove(), "(call f) has not ended; it is pending")
	work, _ := w.claim()
	_, err := w.settle(work, nil)
	require.NoError(t, err)
	require.NoError(t, remove())
	require.True(t, w.tree.Removed())
}

// A case that is kept has no time at which it may be removed, and neither has a child case.
func TestACaseIsKept(t *testing.T) {
	child := define(t, "child", "i>c c>e", net.Task{Name: "c"})
	child.Sweep = true
	parent := with(define(t, "w", "i>a a>e", net.Task{Name: "a", Kind: net.Composite, Of: []string{"child"}}), "a",
		workflow.Task{Of: map[string]*workflow.Definition{"child": child}})
	w := newWorld(t, parent, child)
	w.must("start")
	w.must("cancel")
	for _, change := range w.last {
		if end, ok := change.(*state.CaseEnded); ok {
			require.Zero(t, end.KeepUntil)
		}
	}
}
