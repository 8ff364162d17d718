package engine_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// late starts a case whose one task is the given one.
func late(t *testing.T, w builder.Work[any, any]) (*enginetest.Engine, workitem.CaseID) {
	t.Helper()
	b := builder.New[any]("late")
	b.Path(b.Start(), builder.Task(b, "t", w), b.End())
	d, err := b.Build()
	require.NoError(t, err)
	e := enginetest.New(t, d)
	id, err := d.Start(t.Context(), e, nil, workflow.By("ann"))
	require.NoError(t, err)
	return e, id
}

func stateOf(t *testing.T, e *enginetest.Engine, id workitem.CaseID) state.CaseState {
	t.Helper()
	c, err := e.Case(t.Context(), id)
	require.NoError(t, err)
	return c.State
}

// named refuses what has no actor.
func named(_ context.Context, it *activities.Item) error {
	if it.Actor() == "" {
		return errors.New("say who you are")
	}
	return nil
}

// To start is to begin the work, and who is late has not begun it: the callback for that is not asked.
func TestATimeoutDoesNotAskStart(t *testing.T) {
	for name, timer := range map[string]activities.Timer{
		"of an item": activities.Timeout(time.Hour), "of a task": activities.TimeoutTask(time.Hour),
	} {
		t.Run(name, func(t *testing.T) {
			e, id := late(t, builder.Work[any, any]{Start: named, Timers: []activities.Timer{timer}})
			e.Advance(time.Hour)
			require.Equal(t, []string{"t.1.1 failed 1 timeout"}, items(t, e, id))
			require.Equal(t, state.CaseFailed, stateOf(t, e, id))
		})
	}
}

// refusal is a callback that refuses what a timer asks, and how often it did.
type refusal struct{ calls int }

func (r *refusal) item(context.Context, *activities.Item) error {
	r.calls++
	return errors.New("the office is closed")
}

func (r *refusal) action(ctx context.Context, it *activities.Item, _ *workitem.Failure) error {
	return r.item(ctx, it)
}

func (r *refusal) change(_ context.Context, c *activities.Change) error {
	if !c.To.Final() {
		return nil
	}
	return r.item(context.Background(), nil)
}

// A callback can put a timeout off, but not for good: in the end the item goes without it.
func TestRefusedTimeoutEndsItsItems(t *testing.T) {
	again := activities.Retry(retry.Exponential(2, time.Second))
	for name, c := range map[string]struct {
		work  func(r *refusal) builder.Work[any, any]
		items []string
		calls int
		state state.CaseState
	}{
		"Fail": {func(r *refusal) builder.Work[any, any] {
			return builder.Work[any, any]{Timeout: time.Hour, Fail: r.action}
		}, []string{"t.1.1 failed 1 timeout"}, 10, state.CaseFailed},
		"Fail, and the policy goes on": {func(r *refusal) builder.Work[any, any] {
			return builder.Work[any, any]{Timeout: time.Hour, Fail: r.action, Policy: workitem.ContinueOnFailure()}
		}, []string{"t.1.1 failed 1 timeout"}, 10, state.CaseCompleted},
		"Fail, and it is tried again": {func(r *refusal) builder.Work[any, any] {
			return builder.Work[any, any]{Timeout: time.Hour, Fail: r.action, OnWorkItemStateChanged: again}
		}, []string{"t.1.1 failed 1 timeout", "t.1.2 failed 2 timeout"}, 20, state.CaseFailed},
		"Cancel": {func(r *refusal) builder.Work[any, any] {
			return builder.Work[any, any]{CancelAfter: time.Hour, Cancel: r.action}
		}, []string{"t.1.1 canceled 1 timeout"}, 10, state.CaseCompleted},
		"Cancel, of a task": {func(r *refusal) builder.Work[any, any] {
			return builder.Work[any, any]{Timers: []activities.Timer{activities.CancelTaskAfter(time.Hour)}, Cancel: r.action}
		}, []string{"t.1.1 canceled 1 timeout"}, 10, state.CaseCompleted},
		"OnStarted": {func(r *refusal) builder.Work[any, any] {
			return builder.Work[any, any]{Timeout: time.Hour, Item: activities.ItemHooks{OnStarted: r.item}}
		}, []string{"t.1.1 failed 1 timeout"}, 10, state.CaseFailed},
		"OnFailed": {func(r *refusal) builder.Work[any, any] {
			return builder.Work[any, any]{Timeout: time.Hour, Item: activities.ItemHooks{OnFailed: r.item}}
		}, []string{"t.1.1 failed 1 timeout"}, 10, state.CaseFailed},
		"OnWorkItemStateChanged": {func(r *refusal) builder.Work[any, any] {
			return builder.Work[any, any]{Timeout: time.Hour, OnWorkItemStateChanged: r.change}
		}, []string{"t.1.1 failed 1 timeout"}, 11, state.CaseFailed},
	} {
		t.Run(name, func(t *testing.T) {
			r := new(refusal)
			e, id := late(t, c.work(r))
			e.Advance(time.Hour)
			require.Equal(t, 1, r.calls)
			require.Equal(t, state.CaseStarted, stateOf(t, e, id), "it may be accepted the next time")
			e.Advance(4 * time.Hour)
			require.Equal(t, c.calls, r.calls)
			require.Equal(t, c.items, items(t, e, id))
			require.Equal(t, c.state, stateOf(t, e, id))
			for it, err := range store.AllItems(t.Context(), e, store.ItemFilter{Case: id}) {
				require.NoError(t, err)
				require.Contains(t, string(it.Failure.Details), "the office is closed")
			}
			require.Contains(t, incidents(t, e, id), `of work item t.1.1 without its callbacks, which refused it 10 times: error: `)
		})
	}
}

// What follows the end of an item is not its own callback: a timer that this refuses is given up, and the item waits
// for a person.
func TestATimerDoesNotOverruleWhatFollows(t *testing.T) {
	broken := true
	b := builder.New[any]("late")
	first := builder.Task(b, "first", builder.Work[any, any]{CancelAfter: time.Hour})
	next := builder.Task(b, "next", builder.Work[any, any]{
		Items: func(context.Context, *activities.Activation) ([]any, error) {
			if broken {
				return nil, errors.New("no list")
			}
			return []any{1}, nil
		}})
	b.Path(b.Start(), first, next, b.End())
	d, err := b.Build()
	require.NoError(t, err)
	e := enginetest.New(t, d)
	id, err := d.Start(t.Context(), e, nil)
	require.NoError(t, err)
	e.Advance(24 * time.Hour)
	require.Equal(t, []string{"first.1.1 initialized 1"}, items(t, e, id))
	require.Contains(t, incidents(t, e, id), "no list")
	broken = false
	require.NoError(t, first.Cancel(t.Context(), e, live(t, e, id, "first").ID, nil))
	require.Equal(t, []string{"first.1.1 canceled 1", "next.1.1 initialized 1"}, items(t, e, id))
}

// incidents is what the journal of a case notes for an operator.
func incidents(t *testing.T, e *enginetest.Engine, id workitem.CaseID) string {
	t.Helper()
	var text string
	for entry, err := range store.AllEntries(t.Context(), e, store.JournalFilter{Root: id}) {
		require.NoError(t, err)
		for _, event := range entry.Changes {
			if n, ok := event.(*state.Noted); ok && n.Code == state.NoteIncident {
				text += n.Text + "\n"
			}
		}
	}
	return text
}

// Callbacks know a timer and a job from a caller that does not say who it is.
func TestCallbacksSeeTheCause(t *testing.T) {
	var seen []string
	note := func(what string) func(context.Context, *activities.Item) error {
		return func(_ context.Context, it *activities.Item) error {
			seen = append(seen, what+" "+string(it.Cause()))
			return nil
		}
	}
	b := builder.New[any]("causes")
	person := builder.Task(b, "person", builder.Work[any, any]{Timeout: time.Hour, Policy: workitem.ContinueOnFailure(),
		Item: activities.ItemHooks{OnInitialized: note("created by"), OnStarted: note("started by"), OnFailed: note("failed by")}})
	machine := builder.Task(b, "machine", builder.Work[any, any]{
		Run:  func(context.Context, any) (any, error) { return 1, nil },
		Item: activities.ItemHooks{OnInitialized: note("created by"), OnStarted: note("started by"), OnCompleted: note("completed by")}})
	b.Path(b.Start(), person, machine, b.End())
	d, err := b.Build()
	require.NoError(t, err)
	e := enginetest.New(t, d)
	id, err := d.Start(t.Context(), e, nil)
	require.NoError(t, err)
	require.NoError(t, person.Start(t.Context(), e, live(t, e, id, "person").ID))
	require.Equal(t, []string{"created by caller", "started by caller"}, seen)
	seen = nil
	e.Advance(time.Hour)
	e.Drain()
	require.Equal(t, []string{"failed by timer", "created by timer", "started by job", "completed by job"}, seen)
}
