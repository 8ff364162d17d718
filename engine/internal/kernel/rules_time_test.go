package kernel_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/engine/internal/kernel"
	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// fire does what a timer is for, or the start of a case that was put off; the job is the live one of that name or kind.
func (w *world) fire(name string) (string, error) {
	w.t.Helper()
	for _, j := range w.live() {
		if j.Name == name || j.Kind == name {
			return w.command(func(m *kernel.Machine) error { return m.Timers().Fire(j.ID) })
		}
	}
	require.Fail(w.t, "there is no such job", name)
	return "", nil
}

// root is the root case as it is now.
func (w *world) root() *state.Case { return w.tree.Case(w.tree.Root) }

// calls makes a definition know functions that jobs may run.
func calls(d *workflow.Definition, names ...string) *workflow.Definition {
	d.Calls = make(map[string]*workflow.Call)
	for _, name := range names {
		d.Calls[name] = &workflow.Call{Queue: "q-" + name}
	}
	return d
}

// Rule 18: a case, its items and its jobs keep what they were given, what they gave and why they failed.
func TestRule18InputsOutputsAndFailuresAreKept(t *testing.T) {
	type person = func(context.Context, *activities.Activation) ([]json.RawMessage, error)
	var inputs person = func(context.Context, *activities.Activation) ([]json.RawMessage, error) {
		return []json.RawMessage{json.RawMessage(`"in 1"`), json.RawMessage(`"in 2"`)}, nil
	}
	failure := &workitem.Failure{Code: "bad", Message: "it is torn", Details: json.RawMessage(`{"page":3}`)}
	w := newWorld(t, with(define(t, "w", "i>a a>e", net.Task{Name: "a"}), "a",
		workflow.Task{Inputs: inputs, Policy: workitem.ContinueOnFailure(), Run: run}))
	w.must("start")
	require.JSONEq(t, `1`, string(w.root().Input))
	items := w.root().Items.Slice()
	require.JSONEq(t, `"in 1"`, string(items[0].Input))
	require.JSONEq(t, `"in 2"`, string(items[1].Input))

	var works []*activities.Work
	for _, j := range w.live() {
		_, err := w.command(func(m *kernel.Machine) error {
			work, err := m.Leases().Claim(j.ID, "worker", w.now.Add(time.Minute))
			works = append(works, work)
			return err
		})
		require.NoError(t, err)
	}
	require.JSONEq(t, `"in 2"`, string(works[1].Input), "a worker is given the input of its item")
	_, err := w.settle(works[0], failure)
	require.NoError(t, err)
	require.Equal(t, failure, w.root().Item(items[0].ID).Failure)
	require.Equal(t, failure, w.last[0].(*state.JobMoved).Failure, "the job that failed has it too")
	_, err = w.settle(works[1], nil)
	require.NoError(t, err)
	require.JSONEq(t, `1`, string(w.root().Item(items[1].ID).Output))
	require.JSONEq(t, `1`, string(w.root().Tasks[0].Output), "the output of its task")

	w = newWorld(t, define(t, "w", "i>a a>e", net.Task{Name: "a"}))
	w.must("start")
	w.must("begin a.1.1")
	w.must("fail a.1.1")
	require.Equal(t, &workitem.Failure{Code: "bad", Retryable: true}, w.root().Failure, "a case fails as its item did")
}

// Rule 18: the output of a case is what its definition makes of it at its end.
func TestRule18ACaseHasAnOutput(t *testing.T) {
	d := define(t, "w", "i>a a>e", net.Task{Name: "a"})
	d.Output = func(c *activities.Case) (json.RawMessage, error) { return c.Case().Outputs("a"), nil }
	w := newWorld(t, d)
	w.must("start")
	w.must("begin a.1.1")
	w.must("complete a.1.1")
	require.JSONEq(t, `1`, string(w.root().Output))
}

// Rule 18: what a person says of a failure or cancellation in other words than a failure's is kept as its details.
func TestRule18AFailureInOtherWords(t *testing.T) {
	for payload, want := range map[string]*workitem.Failure{
		``:                     nil,
		`null`:                 nil,
		`{"code":"late"}`:      {Code: "late"},
		`{"message":"no ink"}`: {Message: "no ink"},
		`"no ink"`:             {Message: "see the details", Details: json.RawMessage(`"no ink"`), Retryable: true},
		`{"page":3}`:           {Message: "see the details", Details: json.RawMessage(`{"page":3}`), Retryable: true},
	} {
		w := newWorld(t, define(t, "w", "i>a a>e", net.Task{Name: "a"}))
		w.must("start")
		_, err := w.command(func(m *kernel.Machine) error {
			return m.Act(w.item("a.1.1"), workitem.Cancel, json.RawMessage(payload), nil)
		})
		require.NoError(t, err)
		require.Equal(t, want, w.last[0].(*state.ItemMoved).Failure, payload)
	}
}

// Rule 21: a callback of a teardown may schedule work that outlives its element. What owned that owns it, and it ends with that
// one; what the end of the case itself schedules is owned by nothing.
func TestRule21JobsScheduledDuringTeardown(t *testing.T) {
	clean := activities.NewJob{Name: "clean", Input: json.RawMessage(`7`)}
	d := calls(define(t, "w", "i>a i>b a>e b>e", tasks("a b")...), "clean")
	with(d, "a", workflow.Task{Inputs: items(2), ItemHooks: activities.ItemHooks{
		OnCanceled: func(_ context.Context, it *activities.Item) error { _, err := it.Schedule(clean); return err }}})
	d.Hooks.OnCanceled = func(_ context.Context, c *activities.Case) error { _, err := c.Schedule(clean); return err }

	for command, want := range map[string]state.Job{
		"drop a.1.1":  {Task: "a", Generation: 1},
		"begin b.1.1": {},
		"cancel":      {Detached: true},
	} {
		w := newWorld(t, d)
		w.must("start")
		w.must(command)
		j := w.live()[0]
		got := state.Job{Task: j.Task, Generation: j.Generation, Item: j.Item, Detached: j.Detached}
		require.Equal(t, want, got, command)
		require.Equal(t, "q-clean", j.Queue)
		require.JSONEq(t, `7`, string(j.Input))
		if command != "cancel" {
			w.must("cancel")
		}
		require.Equal(t, []bool{true}, []bool{w.live()[0].Detached}, "what an activation or the case owned has ended with it")
	}
}

// Rule 21: a detached job outlives its case, whenever it is scheduled, and runs when the case has ended.
func TestRule21ADetachedJobOutlivesItsCase(t *testing.T) {
	d := calls(define(t, "w", "i>a a>e", net.Task{Name: "a"}), "own", "detached")
	d.Hooks.OnInitialized = func(_ context.Context, c *activities.Case) error {
		for _, n := range []activities.NewJob{{Name: "own"}, {Name: "detached", Detached: true}} {
			if _, err := c.Schedule(n); err != nil {
				return err
			}
		}
		return nil
	}
	w := newWorld(t, d)
	w.must("start")
	require.Len(t, w.live(), 2)
	w.must("cancel")
	work, _ := w.claim()
	require.Equal(t, "detached", work.Name)
	_, err := w.settle(work, nil)
	require.NoError(t, err)
	require.Empty(t, w.live())
}

// Rule 22: time is what the command brings. A wait may be a hundred years, or none; a negative one is refused.
func TestRule22Durations(t *testing.T) {
	const century = 100 * 365 * 24 * time.Hour
	var wait time.Duration
	d := calls(define(t, "w", "i>a a>e", net.Task{Name: "a"}), "f")
	with(d, "a", workflow.Task{
		Hooks: activities.TaskHooks{OnWorkItemStateChanged: func(ctx context.Context, c *activities.Change) error {
			if c.To != workitem.Failed {
				return nil
			}
			if _, err := c.Schedule(activities.NewJob{Name: "f", After: wait}); err != nil {
				return err
			}
			_, err := c.Again(ctx, wait)
			return err
		}},
		Timers: []activities.Timer{{Name: "old", After: century, Item: func(context.Context, *activities.Item) error { return nil }}}})
	w := newWorld(t, d)
	w.must("start")
	require.Equal(t, century, w.live()[0].Due.Sub(w.now))
	require.Equal(t, w.now, w.root().Items.Slice()[0].Created)

	w.must("begin a.1.1")
	wait = -time.Second
	_, err := w.do("fail a.1.1")
	require.ErrorContains(t, err, `job "f" cannot be due 1s ago`)

	wait = century
	w.must("fail a.1.1")
	require.Equal(t, w.now.Add(century), w.root().Items.Slice()[1].Due)
	due := make(map[string]time.Duration)
	for _, j := range w.live() {
		due[j.Kind] = j.Due.Sub(w.now)
	}
	require.Equal(t, map[string]time.Duration{state.JobCall: century, state.JobWake: century, state.JobTimer: 2 * century}, due)

	w.now, wait = w.now.Add(time.Hour), 0
	w.must("begin a.1.2")
	w.must("fail a.1.2")
	it := w.root().Items.Slice()[2]
	require.Zero(t, it.Due, "it waits for nothing")
	require.Equal(t, w.now, it.Created, "the time of its command")
	require.Equal(t, w.now, w.last[0].(*state.ItemMoved).At)
	for _, j := range w.root().Jobs.Of(it.ID) {
		require.Equal(t, state.JobTimer, j.Kind, "there is no job that only waits")
	}
}

// Rule 22: a negative backoff of an item is refused too.
func TestRule22ANegativeBackoff(t *testing.T) {
	w := newWorld(t, define(t, "w", "i>a a>e", net.Task{Name: "a"}))
	w.must("start")
	_, err := w.command(func(m *kernel.Machine) error {
		_, err := m.OpenItem(w.tree.Root, "a", activities.NewItem{After: -time.Second})
		return err
	})
	require.EqualError(t, err, "a work item of task a cannot be due 1s ago: give zero or more")
}

// Rule 23: what is due at one instant is numbered in the order of its creation: for an activation its items, each with its run
// and its timers as they are defined, then the timers of the task. A tree that is made of its changes again has the same order,
// and the first to act decides.
func TestRule23WhatIsDueAtOneInstantIsOrderedByCreation(t *testing.T) {
	end := func(name string) activities.Timer {
		return activities.Timer{Name: name, After: time.Minute, Item: func(_ context.Context, it *activities.Item) error {
			return it.Cancel(workitem.Failf(name, "fired"))
		}}
	}
	task := activities.Timer{Name: "all", After: time.Minute, Task: func(context.Context, *activities.Activation) error { return nil }}
	w := newWorld(t, with(define(t, "w", "i>a a>e", net.Task{Name: "a"}), "a",
		workflow.Task{Timers: []activities.Timer{task, end("x"), end("y")}, Inputs: items(2)}))
	w.jobs = true
	require.Equal(t, "a+1 a.1.1=initialized +timer:x +timer:y a.1.2=initialized +timer:x +timer:y +timer:all", w.must("start"))

	order := func(jobs []*state.Job) (list []string) {
		for _, j := range jobs {
			require.Equal(t, w.now.Add(time.Minute), j.Due)
			list = append(list, fmt.Sprintf("%s %d", j.Name, j.ID[15]))
		}
		return list
	}
	before := order(w.live())
	require.IsIncreasing(t, []byte{w.live()[0].ID[15], w.live()[1].ID[15], w.live()[2].ID[15], w.live()[3].ID[15], w.live()[4].ID[15]})
	again := state.NewTree()
	again.Begin()
	for _, change := range w.last {
		require.NoError(t, again.Apply(change))
	}
	again.End(w.seq)
	w.tree = again
	require.Equal(t, before, order(w.live()), "after a restart")

	w.now = w.now.Add(time.Minute)
	_, err := w.fire("x")
	require.NoError(t, err)
	require.Equal(t, "x", w.root().Item(w.item("a.1.1")).Failure.Code)
	require.Equal(t, []string{"x", "y", "all"}, labels(w.live()),
		"those of the item ended with it: the second of one instant decides nothing")
}

func labels(jobs []*state.Job) (list []string) {
	for _, j := range jobs {
		list = append(list, j.Name)
	}
	return list
}

// Rule 25: by default a timeout fails its item, and so the task gives no output in silence.
func TestRule25ATimeoutFailsItsItem(t *testing.T) {
	two := func(timer activities.Timer) *world {
		d := with(define(t, "w", "i>a a>b b>e", tasks("a b")...), "a", workflow.Task{Timers: []activities.Timer{timer}})
		w := newWorld(t, with(d, "b", workflow.Task{Inputs: reads("a")}))
		w.must("start")
		w.now = w.now.Add(time.Minute)
		return w
	}
	w := two(activities.Timeout(time.Minute))
	did, err := w.fire("timeout")
	require.NoError(t, err)
	require.Equal(t, "a*i a.1.1=started a.1.1=failed af case=failed", did)
	require.Equal(t, workitem.CodeTimeout, w.root().Failure.Code)

	w = two(activities.CancelAfter(time.Minute))
	did, err = w.fire("cancel")
	require.NoError(t, err)
	require.Equal(t, "a.1.1=canceled a*i a! a>a->b b+1 b*a->b bf case=failed", did, "b reads what a has not given")
	require.Equal(t, workitem.CodeNoOutput, w.root().Failure.Code)
}

// reads makes the input of a task from the output of another one, as a builder's source does.
func reads(task string) func(context.Context, *activities.Activation) ([]json.RawMessage, error) {
	return func(_ context.Context, a *activities.Activation) ([]json.RawMessage, error) {
		if out := a.Case().Outputs(task); out != nil {
			return []json.RawMessage{out}, nil
		}
		return nil, fmt.Errorf("%s %w", task, activities.ErrNoOutput)
	}
}

// Rule 25: wherever an output is read that was not given, the case fails with the code no-output. Any other error undoes the
// command.
func TestRule25AMissingOutputFailsTheCase(t *testing.T) {
	missing := fmt.Errorf("x %w", activities.ErrNoOutput)
	broken := fmt.Errorf("broken")
	child := define(t, "child", "i>c c>e", net.Task{Name: "c"})
	for _, test := range []struct {
		where string
		def   func(err error) *workflow.Definition
		steps []string // before the one that reads
		did   string
	}{
		{"the input of an item", func(err error) *workflow.Definition {
			return with(define(t, "w", "i>a a>e", net.Task{Name: "a"}), "a", workflow.Task{
				Inputs: func(context.Context, *activities.Activation) ([]json.RawMessage, error) { return nil, err }})
		}, []string{"start"}, "a+1 a*i af case=failed"},
		{"the child cases", func(err error) *workflow.Definition {
			return with(define(t, "w", "i>a a>e", net.Task{Name: "a", Kind: net.Composite, Of: []string{"child"}}), "a", workflow.Task{
				Of:    map[string]*workflow.Definition{"child": child},
				Cases: func(context.Context, *activities.Activation) ([]activities.NewCase, error) { return nil, err }})
		}, []string{"start"}, "a+1 a*i af case=failed"},
		{"a route", func(err error) *workflow.Definition {
			return with(define(t, "w", "i>a a>b a>e b>e", net.Task{Name: "a", Split: net.Xor}, net.Task{Name: "b"}), "a", workflow.Task{
				Route: func(context.Context, *activities.Activation) ([]string, error) { return nil, err }})
		}, []string{"start", "begin a.1.1", "complete a.1.1"}, "a.1.1=completed a! case=failed"},
		{"the output of the case", func(err error) *workflow.Definition {
			d := define(t, "w", "i>a a>e", net.Task{Name: "a"})
			d.Output = func(*activities.Case) (json.RawMessage, error) { return nil, err }
			return d
		}, []string{"start", "begin a.1.1", "complete a.1.1"}, "a.1.1=completed a! a>e case=failed"},
	} {
		t.Run(test.where, func(t *testing.T) {
			w := newWorld(t, test.def(missing))
			last := len(test.steps) - 1
			for _, text := range test.steps[:last] {
				w.must(text)
			}
			require.Equal(t, test.did, w.must(test.steps[last]))
			require.Equal(t, workitem.CodeNoOutput, w.root().Failure.Code)
			require.ErrorContains(t, w.root().Failure, missing.Error())

			w = newWorld(t, test.def(broken))
			for _, text := range test.steps[:last] {
				w.must(text)
			}
			_, err := w.do(test.steps[last])
			require.ErrorIs(t, err, broken)
		})
	}
}

// Rule 25: so does a timer that reads one, of a task or of an item.
func TestRule25ATimerThatReadsAMissingOutput(t *testing.T) {
	missing := fmt.Errorf("x %w", activities.ErrNoOutput)
	for name, timer := range map[string]activities.Timer{
		"task": {Task: func(context.Context, *activities.Activation) error { return missing }},
		"item": {Item: func(context.Context, *activities.Item) error { return missing }},
	} {
		timer.Name, timer.After = name, time.Minute
		w := newWorld(t, with(define(t, "w", "i>a a>e", net.Task{Name: "a"}), "a", workflow.Task{Timers: []activities.Timer{timer},
			Hooks: activities.TaskHooks{OnWorkItemStateChanged: activities.Retry(retry.Constant(3, 0))}}))
		w.must("start")
		did, err := w.fire(name)
		require.NoError(t, err)
		require.Equal(t, "a*i af a.1.1=canceled case=failed", did)
		require.Equal(t, workitem.CodeNoOutput, w.root().Failure.Code)
	}
}
