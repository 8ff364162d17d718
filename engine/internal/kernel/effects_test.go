package kernel_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/engine/internal/kernel"
	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// A callback can add items to its activation and child cases to a composite one, while it is active. They are there when the
// call returns.
func TestACallbackAddsItemsAndCases(t *testing.T) {
	child := define(t, "child", "i>c c>e", net.Task{Name: "c"})
	d := define(t, "w", "i>a i>k a>e k>e", net.Task{Name: "a"}, net.Task{Name: "k", Kind: net.Composite, Of: []string{"child"}})
	var log []string
	with(d, "a", workflow.Task{Inputs: items(0), Queue: "q", Priority: 2, Hooks: activities.TaskHooks{
		OnEnabled: func(ctx context.Context, a *activities.Activation) error {
			require.Equal(t, "ann", a.Actor())
			require.Equal(t, activities.CauseCaller, a.Cause())
			require.Nil(t, a.DB())
			for _, n := range []activities.NewItem{{Input: json.RawMessage(`1`)}, {Queue: "other", Priority: 9}} {
				it, err := a.NewItem(ctx, n)
				if err != nil {
					return err
				}
				log = append(log, fmt.Sprintf("%s %s %d", it.Label(), it.Queue, it.Priority))
			}
			log = append(log, fmt.Sprint(len(a.Items()), " items"))
			_, err := a.NewCase(ctx, activities.NewCase{})
			require.ErrorIs(t, err, kernel.ErrNotFound, "it is no composite task")
			return nil
		}}})
	with(d, "k", workflow.Task{Of: map[string]*workflow.Definition{"child": child},
		Cases: func(context.Context, *activities.Activation) ([]activities.NewCase, error) { return nil, nil },
		Hooks: activities.TaskHooks{OnEnabled: func(ctx context.Context, a *activities.Activation) error {
			id, err := a.NewCase(ctx, activities.NewCase{Workflow: "child", Input: json.RawMessage(`3`)})
			require.False(t, id.IsZero())
			_, other := a.NewCase(ctx, activities.NewCase{Workflow: "other"})
			require.ErrorIs(t, other, kernel.ErrUnknown)
			_, item := a.NewItem(ctx, activities.NewItem{})
			require.ErrorIs(t, item, kernel.ErrNotFound, "it has cases instead")
			return err
		}}})
	w := newWorld(t, d, child)
	require.Equal(t, "a+1 a.1.1=initialized a.1.2=initialized k+1 k.1.1/c+1 k.1.1/c.1.1=initialized", w.must("start"))
	require.Equal(t, []string{"a.1.1 q 2", "a.1.2 other 9", "2 items"}, log)

	open := func(at workitem.CaseID, task string) (it *workitem.Item, err error) {
		_, err = w.command(func(m *kernel.Machine) (err error) {
			it, err = m.OpenItem(at, task, activities.NewItem{Input: json.RawMessage(`5`)})
			return err
		})
		return it, err
	}
	it, err := open(w.tree.Root, "a")
	require.NoError(t, err)
	require.Equal(t, 3, it.Number)
	require.JSONEq(t, `5`, string(it.Input))
	for at, task := range map[workitem.CaseID]string{w.tree.Root: "k", {7}: "a"} {
		_, err = open(at, task)
		require.ErrorIs(t, err, kernel.ErrNotFound)
	}
	_, err = open(w.tree.Root, "z")
	require.ErrorIs(t, err, kernel.ErrNotFound)
	w.must("begin k.1.1/c.1.1")
	_, err = open(w.tree.Root, "a")
	require.ErrorIs(t, err, activities.ErrInactive, "it was withdrawn")
}

// What a callback asks of an item is done when it has returned, in the order in which it asked, and what the item can no longer
// take is left out.
func TestACallbackAsks(t *testing.T) {
	d := with(define(t, "w", "i>a a>e", net.Task{Name: "a"}), "a", workflow.Task{Inputs: items(2), Policy: workitem.ContinueOnFailure(),
		ItemHooks: activities.ItemHooks{OnStarted: func(_ context.Context, it *activities.Item) error {
			if it.Number != 1 {
				return nil
			}
			if err := it.Complete(6); err != nil {
				return err
			}
			require.Equal(t, workitem.Started, it.State, "not yet")
			return it.Fail(workitem.Failf("late", "it has completed by then"))
		}}})
	w := newWorld(t, d)
	w.must("start")
	require.Equal(t, "a*i a.1.1=started a.1.1=completed", w.must("begin a.1.1"))
	require.JSONEq(t, `6`, string(w.root().Items.Slice()[0].Output))
}

// The error of a callback says which one it was, and undoes the command.
func TestACallbackFails(t *testing.T) {
	broken := errors.New("broken")
	d := define(t, "w", "i>a a>e", net.Task{Name: "a"})
	d.Hooks.OnCompleted = func(context.Context, *activities.Case) error { return broken }
	with(d, "a", workflow.Task{ItemHooks: activities.ItemHooks{
		OnStarted: func(context.Context, *activities.Item) error { return nil },
		OnFailed:  func(context.Context, *activities.Item) error { return broken },
		OnReset:   func(context.Context, *activities.Item) error { return broken }}})
	w := newWorld(t, d)
	w.must("start")
	w.must("begin a.1.1")
	for text, where := range map[string]string{"complete a.1.1": "onCompleted of case of w: broken",
		"fail a.1.1": "item onFailed of w/a: broken", "reset a.1.1": "item onReset of w/a: broken"} {
		_, err := w.do(text)
		require.EqualError(t, err, where)
		require.Equal(t, workitem.Started, w.root().Items.Slice()[0].State, "nothing has happened")
	}
}

// The task accepts the payload of an action, and stores it in its canonical form; without that any JSON is taken.
func TestAPayloadIsAccepted(t *testing.T) {
	refuse := errors.New("no number")
	d := with(define(t, "w", "i>a a>e", net.Task{Name: "a"}), "a", workflow.Task{
		Accept: func(a workitem.Action, payload json.RawMessage) (json.RawMessage, error) {
			if a == workitem.Complete && string(payload) == `1` {
				return nil, refuse
			}
			return json.RawMessage(`"canonical"`), nil
		}})
	w := newWorld(t, d)
	w.must("start")
	require.JSONEq(t, `"canonical"`, string(w.root().Items.Slice()[0].Input))
	w.must("begin a.1.1")
	_, err := w.do("complete a.1.1")
	require.ErrorIs(t, err, refuse)
	require.ErrorContains(t, err, "complete work item w/a.1.1")

	w = newWorld(t, define(t, "w", "i>a a>e", net.Task{Name: "a"}))
	w.must("start")
	_, err = w.command(func(m *kernel.Machine) error {
		return m.Act(w.item("a.1.1"), workitem.Start, json.RawMessage(`{`), nil)
	})
	require.Error(t, err, "it is no JSON")
	_, err = w.command(func(m *kernel.Machine) error { return m.Act(workitem.ID{7}, workitem.Start, nil, nil) })
	require.ErrorIs(t, err, kernel.ErrNotFound)
	_, err = w.command(func(m *kernel.Machine) error { return m.Cancel(workitem.CaseID{7}, nil) })
	require.ErrorIs(t, err, kernel.ErrNotFound)
}

// The input of a case is accepted as the case is started. An item of the same type that takes it over in that command takes it as it is; one
// that is created later, or of another type, has it accepted again.
func TestAnInputIsAcceptedOnceInACommand(t *testing.T) {
	var accepted []string
	input := func(c activities.CaseInfo) (json.RawMessage, error) { return c.Input, nil }
	task := func(name string, of reflect.Type) workflow.Task {
		return workflow.Task{PlainInput: input, AcceptIsPlain: true, InputType: of,
			Accept: func(a workitem.Action, payload json.RawMessage) (json.RawMessage, error) {
				if a == workitem.Initialize {
					accepted = append(accepted, name)
				}
				return bytes.Clone(payload), nil
			}}
	}
	d := define(t, "w", "i>a a>c c>b b>e", net.Task{Name: "a"}, net.Task{Name: "b"})
	number := reflect.TypeFor[int]()
	d.InputType, d.AcceptIsPlain = number, true
	d.Accept = func(payload json.RawMessage) (json.RawMessage, error) {
		accepted = append(accepted, "case")
		return bytes.Clone(payload), nil
	}
	with(with(d, "a", task("a", number)), "b", task("b", number))
	w := newWorld(t, d)
	w.must("start")
	require.Equal(t, []string{"case"}, accepted)
	require.JSONEq(t, `1`, string(w.root().Items.Slice()[0].Input))
	w.must("begin a.1.1")
	w.must("complete a.1.1")
	require.Equal(t, []string{"case", "b"}, accepted, "an older program may have started the case")

	accepted = nil
	with(d, "a", task("a", reflect.TypeFor[string]()))
	w = newWorld(t, d)
	w.must("start")
	require.Equal(t, []string{"case", "a"}, accepted)

	accepted = nil
	other := task("a", number)
	other.PlainInput = func(activities.CaseInfo) (json.RawMessage, error) { return json.RawMessage(`2`), nil }
	with(d, "a", other)
	w = newWorld(t, d)
	w.must("start")
	require.Equal(t, []string{"case", "a"}, accepted)
}

// An answer that is for failures alone is not called after other changes.
func TestAnAnswerToFailures(t *testing.T) {
	for only, want := range map[bool][]workitem.State{false: {workitem.Started, workitem.Failed}, true: {workitem.Failed}} {
		var seen []workitem.State
		d := with(define(t, "w", "i>a a>e", net.Task{Name: "a"}), "a", workflow.Task{OnlyFailures: only, Hooks: activities.TaskHooks{
			OnWorkItemStateChanged: func(_ context.Context, c *activities.Change) error {
				seen = append(seen, c.To)
				return nil
			}}})
		w := newWorld(t, d)
		w.must("start")
		w.must("begin a.1.1")
		w.must("fail a.1.1")
		require.Equal(t, want, seen)
	}
}

// What a plain source has no value for fails the case as any other does, and the failure says where.
func TestAPlainInputThatIsMissing(t *testing.T) {
	d := with(define(t, "w", "i>a a>e", net.Task{Name: "a"}), "a", workflow.Task{
		PlainInput: func(activities.CaseInfo) (json.RawMessage, error) {
			return nil, fmt.Errorf("task b %w", activities.ErrNoOutput)
		}})
	w := newWorld(t, d)
	w.must("start")
	require.Equal(t, &workitem.Failure{Code: workitem.CodeNoOutput, Message: "input of w/a: task b has given no output"}, w.root().Failure)
}

// A machine is used again for the next command, unless a callback may have kept what it was given.
func TestAMachineIsUsedAgain(t *testing.T) {
	hook := func(context.Context, *activities.Item) error { return nil }
	d := with(define(t, "w", "i>a a>e", net.Task{Name: "a"}), "a", workflow.Task{ItemHooks: activities.ItemHooks{OnStarted: hook}})
	w := newWorld(t, d)
	w.must("start")
	first := w.machine
	w.must("begin a.1.1")
	require.Same(t, first, w.machine)
	w.must("complete a.1.1")
	require.NotSame(t, first, w.machine)
}

// A policy that the user wrote is asked with the tally, and one that gives no verdict is refused.
func TestAPolicyOfTheUser(t *testing.T) {
	var seen []workitem.Tally
	verdict := workitem.Continue
	d := with(define(t, "w", "i>a a>e", net.Task{Name: "a"}), "a", workflow.Task{Inputs: items(2),
		Policy: workitem.NewPolicy("mine", func(o workitem.Outcome) (workitem.Verdict, error) {
			seen = append(seen, o.Tally)
			return verdict, nil
		})})
	w := newWorld(t, d)
	w.must("start")
	w.must("begin a.1.1")
	seen = nil
	require.Equal(t, "a.1.1=completed", w.must("complete a.1.1"))
	require.Equal(t, 1, seen[0].Completed)
	w.must("begin a.1.2")
	verdict = workitem.Verdict(99)
	_, err := w.do("complete a.1.2")
	require.ErrorContains(t, err, "policy mine of task a: returned no verdict")
	verdict = workitem.FailTask
	require.Equal(t, "a.1.2=completed af case=failed", w.must("complete a.1.2"))
}

// A callback reads what the child cases of the latest activation gave, oldest first; one that did not complete gives nothing.
func TestTheOutputsOfChildCases(t *testing.T) {
	child := define(t, "child", "i>c c>e", net.Task{Name: "c"})
	child.Output = func(c *activities.Case) (json.RawMessage, error) { return c.Case().Input, nil }
	d := define(t, "w", "i>k k>b b>p p>k b>e", net.Task{Name: "k", Kind: net.Composite, Of: []string{"child"}, Join: net.Xor},
		net.Task{Name: "b", Split: net.Xor})
	var got []string
	with(d, "k", workflow.Task{Of: map[string]*workflow.Definition{"child": child}, Policy: workitem.ContinueOnFailure(),
		Cases: func(_ context.Context, a *activities.Activation) (list []activities.NewCase, err error) {
			for i := range 3 {
				list = append(list, activities.NewCase{Input: json.RawMessage(fmt.Sprint(10*a.Generation() + i))})
			}
			return list, nil
		}})
	with(d, "b", workflow.Task{Hooks: activities.TaskHooks{OnEnabled: func(_ context.Context, a *activities.Activation) error {
		got = nil
		for _, out := range a.Case().Children("k") {
			got = append(got, out.Workflow+" "+string(out.Output))
		}
		require.Empty(t, a.Case().Children("nothing"))
		return nil
	}}})
	w := newWorld(t, d, child)
	w.must("start")
	for generation := 1; generation <= 2; generation++ {
		for i := 1; i <= 3; i++ {
			label := fmt.Sprintf("k.%d.%d/c.1.1", generation, i)
			w.must("begin " + label)
			end := "complete "
			if i == 2 {
				end = "fail "
			}
			w.must(end + label)
		}
		require.Equal(t, []string{fmt.Sprintf("child %d0", generation), fmt.Sprintf("child %d2", generation)}, got)
		w.must(fmt.Sprintf("begin b.%d.1", generation))
		w.must(fmt.Sprintf("complete b.%d.1 > %s", generation, map[int]string{1: "p", 2: "e"}[generation]))
	}
}

// A callback can call the engine while it has control, and one that was abandoned never again.
func TestControl(t *testing.T) {
	var c kernel.Control
	require.ErrorIs(t, c.Take(), kernel.ErrAbandoned, "the engine has control")
	c.Give()
	require.NoError(t, c.Take())
	c.Give()
	require.False(t, c.Ended())
	c.Revoke()
	require.True(t, c.Ended())
	require.ErrorIs(t, c.Take(), kernel.ErrAbandoned)
	c.Revoke() // does not wait if it is revoked already

	c = kernel.Control{}
	c.End()
	require.True(t, c.Ended())
}

// What a callback that was left behind asks for is refused.
func TestACallbackThatIsLeftBehind(t *testing.T) {
	d := calls(define(t, "w", "i>a i>k a>e k>e", net.Task{Name: "a"}, net.Task{Name: "k", Kind: net.Composite, Of: []string{"w"}}), "f")
	with(d, "k", workflow.Task{Cases: func(context.Context, *activities.Activation) ([]activities.NewCase, error) { return nil, nil }})
	var kept *activities.Activation
	var it *activities.Item
	with(d, "a", workflow.Task{
		Hooks:     activities.TaskHooks{OnEnabled: func(_ context.Context, a *activities.Activation) error { kept = a; return nil }},
		ItemHooks: activities.ItemHooks{OnInitialized: func(_ context.Context, i *activities.Item) error { it = i; return nil }}})
	w := newWorld(t, d)
	w.must("start")
	w.host.control.End()
	ctx := t.Context()
	require.Nil(t, kept.Items())
	require.Nil(t, kept.DB())
	_, err := kept.NewItem(ctx, activities.NewItem{})
	require.ErrorIs(t, err, kernel.ErrAbandoned)
	_, err = kept.NewCase(ctx, activities.NewCase{})
	require.ErrorIs(t, err, kernel.ErrAbandoned)
	_, err = kept.Schedule(activities.NewJob{Name: "f"})
	require.ErrorIs(t, err, kernel.ErrAbandoned)
	require.ErrorIs(t, it.Complete(1), kernel.ErrAbandoned)
	require.ErrorIs(t, activities.Timeout(1).Item(ctx, it), kernel.ErrAbandoned)

	w.host.abandon = true
	_, err = w.do("cancel")
	require.NoError(t, err, "it has no callback")
	d.Hooks.OnCompleted = func(context.Context, *activities.Case) error { return nil }
	w = newWorld(t, d)
	w.must("start")
	w.must("begin a.1.1")
	w.host.abandon = true
	_, err = w.do("complete a.1.1")
	require.ErrorIs(t, err, kernel.ErrAbandoned)
	require.True(t, w.host.control.Ended())
}
