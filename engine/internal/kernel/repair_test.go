package kernel_test

import (
	"context"
	"encoding/json"
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

// again retries an item, and names the one that is tried.
func (w *world) again(label, input string) (tried, did string, err error) {
	w.t.Helper()
	it := w.item(label)
	var id workitem.ID
	did, err = w.command(func(m *kernel.Machine) (err error) {
		id, err = m.Repairs().Retry(it, json.RawMessage(input), nil)
		return err
	})
	return w.ids[id], did, err
}

func (w *world) skip(label, output string, route ...string) (completed, did string, err error) {
	w.t.Helper()
	it := w.item(label)
	var id workitem.ID
	did, err = w.command(func(m *kernel.Machine) (err error) {
		id, err = m.Repairs().Skip(it, json.RawMessage(output), route)
		return err
	})
	return w.ids[id], did, err
}

func (w *world) resume(input string) (did string, err error) {
	w.t.Helper()
	return w.command(func(m *kernel.Machine) error {
		_, err := m.Repairs().Resume(w.tree.Root, json.RawMessage(input), nil)
		return err
	})
}

// An item that waits for its next attempt has it at once, as the item that it is; its timers stay.
func TestARetryBringsAnAttemptForward(t *testing.T) {
	for _, work := range []func(context.Context, *activities.Work) (json.RawMessage, error){nil, run} {
		w := newWorld(t, with(define(t, "w", "i>a a>e", net.Task{Name: "a"}), "a", workflow.Task{Run: work,
			Timers: []activities.Timer{activities.Timeout(time.Hour)}, Inputs: items(0)}))
		w.must("start")
		_, err := w.command(func(m *kernel.Machine) error {
			_, err := m.OpenItem(w.tree.Root, "a", activities.NewItem{After: time.Minute})
			return err
		})
		require.NoError(t, err)
		tried, did, err := w.again("a.1.1", "")
		require.NoError(t, err)
		require.Equal(t, "a.1.1", tried)
		require.Empty(t, did)
		for _, j := range w.live() {
			want := w.now
			if j.Kind == state.JobTimer {
				want = w.now.Add(time.Hour + time.Minute)
			}
			require.Equal(t, want, j.Due, j.Kind)
		}
		_, _, err = w.again("a.1.1", "")
		require.ErrorIs(t, err, workflow.ErrNotFailed, "it waits for nothing")
	}
}

// A failed item of a task that continues is replaced once, by the next attempt, with its input or another one.
func TestARetryReplacesAFailedItem(t *testing.T) {
	w := newWorld(t, with(define(t, "w", "i>a a>e", net.Task{Name: "a"}), "a",
		workflow.Task{Inputs: items(2), Policy: workitem.ContinueOnFailure(), Queue: "q"}))
	w.must("start")
	w.must("begin a.1.1")
	w.must("fail a.1.1")
	tried, did, err := w.again("a.1.1", `7`)
	require.NoError(t, err)
	require.Equal(t, "a.1.3", tried)
	require.Equal(t, "a.1.3=initialized", did)
	it := w.root().Item(w.item("a.1.3"))
	require.JSONEq(t, `7`, string(it.Input))
	require.Equal(t, 2, it.Attempt)
	require.Equal(t, "q", it.Queue)
	_, _, err = w.again("a.1.1", "")
	require.ErrorIs(t, err, workflow.ErrNotFailed)
	require.ErrorContains(t, err, "has replaced it")
	_, _, err = w.again("a.1.2", "")
	require.ErrorIs(t, err, workflow.ErrNotFailed)
	require.ErrorContains(t, err, "it is initialized")
	_, err = w.command(func(m *kernel.Machine) error { _, err := m.Repairs().Retry(workitem.ID{7}, nil, nil); return err })
	require.ErrorIs(t, err, kernel.ErrNotFound)
}

// An item whose job was given up has failed, once somebody asks for another attempt; one that a worker does has not.
func TestARetryOfAnItemWhoseJobWasGivenUp(t *testing.T) {
	w := working(t, function(t, "w"))
	_, _, err := w.again("a.1.1", "")
	require.ErrorIs(t, err, workflow.ErrNotFailed, "a worker does it")
	_, err = w.command(func(m *kernel.Machine) error {
		return m.Leases().GiveUp(w.work.Job, w.work.Fence, workitem.Failf("bad", "it is"))
	})
	require.NoError(t, err)
	tried, did, err := w.again("a.1.1", "")
	require.NoError(t, err)
	require.Equal(t, "a.1.2", tried)
	require.Equal(t, "a.1.1=failed a.1.2=initialized +run incident:result=done", did)
	require.Equal(t, &workitem.Failure{Code: "bad", Message: "its job was given up: it is"}, w.root().Items.Slice()[0].Failure, "with the cause")
}

// A failed case continues where it failed: the failed activation and those started beside it get fresh items, what was
// only enabled is enabled again, and what had completed stays so.
func TestAFailedCaseGoesOn(t *testing.T) {
	flows := "i>s s>p s>q s>r p>a q>b r>c a>x x>d b>y y>d c>z z>d d>e"
	w := newWorld(t, define(t, "w", flows, tasks("s a b c d")...))
	w.must("start")
	w.must("begin s.1.1")
	w.must("complete s.1.1")
	w.must("begin b.1.1")
	w.must("begin a.1.1")
	require.Equal(t, "a.1.1=failed af bx b.1.1=canceled c- c.1.1=canceled case=failed", w.must("fail a.1.1"))
	require.Equal(t, workitem.CodeCaseFailed, w.root().Items.Slice()[2].Failure.Code)
	did, err := w.resume("")
	require.NoError(t, err)
	require.Equal(t, "a.1.2=initialized b.1.2=initialized c+2 c.2.1=initialized", did)
	require.Equal(t, state.CaseStarted, w.root().State)
	w.must("begin a.1.2")
	require.Equal(t, "a.1.2=completed a! a>x", w.must("complete a.1.2"))
	_, err = w.resume("")
	require.ErrorIs(t, err, workflow.ErrNotFailed)
	require.ErrorContains(t, err, "it is started")
	w.must("cancel")
	_, err = w.resume("")
	require.ErrorIs(t, err, workflow.ErrNotFailed)
	require.ErrorContains(t, err, "Restart it as a fresh case")
	_, err = w.command(func(m *kernel.Machine) error { _, err := m.Repairs().Resume(workitem.CaseID{7}, nil, nil); return err })
	require.ErrorIs(t, err, kernel.ErrNotFound)
}

// An input of a resume is for the one item that failed. Where more failed, each is retried by its own.
func TestAResumeTakesAnInput(t *testing.T) {
	fail := func(policy workitem.Policy) *world {
		w := newWorld(t, with(define(t, "w", "i>a a>e", net.Task{Name: "a"}), "a", workflow.Task{Inputs: items(3), Policy: policy}))
		w.must("start")
		for _, text := range []string{"begin a.1.1", "begin a.1.2", "begin a.1.3", "complete a.1.3", "fail a.1.1"} {
			w.must(text)
		}
		return w
	}
	w := fail(workitem.Default())
	did, err := w.resume(`8`)
	require.NoError(t, err)
	require.Equal(t, "a.1.4=initialized a.1.5=initialized", did)
	require.JSONEq(t, `8`, string(w.root().Item(w.item("a.1.4")).Input))
	require.Empty(t, w.root().Item(w.item("a.1.5")).Input, "that was canceled, and takes its own")

	w = fail(workitem.Threshold(1))
	w.must("fail a.1.2")
	_, err = w.resume(`8`)
	require.ErrorIs(t, err, workflow.ErrBadCommand)
	require.ErrorContains(t, err, "there are 2")
	tried, did, err := w.again("a.1.2", `8`)
	require.NoError(t, err)
	require.Equal(t, "a.1.5", tried)
	require.Equal(t, "a.1.4=initialized a.1.5=initialized", did)
	require.JSONEq(t, `8`, string(w.root().Item(w.item("a.1.5")).Input))
	require.Empty(t, w.root().Item(w.item("a.1.4")).Input)
}

// An item that waited for its next attempt when its case failed waits until that time again.
func TestAResumedItemIsDueAsBefore(t *testing.T) {
	d := define(t, "w", "i>s s>p s>q p>a q>b a>e b>e", tasks("s a b")...)
	with(d, "a", workflow.Task{Hooks: activities.TaskHooks{OnWorkItemStateChanged: activities.Retry(retry.Constant(3, time.Hour))}})
	w := newWorld(t, d)
	for _, text := range []string{"start", "begin s.1.1", "complete s.1.1", "begin a.1.1", "fail a.1.1", "begin b.1.1", "fail b.1.1"} {
		w.must(text)
	}
	due := w.now.Add(time.Hour)
	w.now = w.now.Add(time.Minute)
	did, err := w.resume("")
	require.NoError(t, err)
	require.Equal(t, "a.1.3=initialized b.1.2=initialized", did)
	require.Equal(t, due, w.root().Item(w.item("a.1.3")).Due)
}

// The failure of a child case that climbed is resumed from the top: the cases below that it ended continue, the oldest
// first.
func TestPropagatedFailureIsResumedFromTheRoot(t *testing.T) {
	child := define(t, "child", "i>c c>e", net.Task{Name: "c"})
	d := with(define(t, "w", "i>k k>e", net.Task{Name: "k", Kind: net.Composite, Of: []string{"child"}}), "k",
		workflow.Task{Of: map[string]*workflow.Definition{"child": child},
			Cases: func(context.Context, *activities.Activation) ([]activities.NewCase, error) {
				return make([]activities.NewCase, 4), nil
			}})
	w := newWorld(t, d, child)
	w.must("start")
	for _, text := range []string{"begin k.1.4/c.1.1", "complete k.1.4/c.1.1", "begin k.1.1/c.1.1", "begin k.1.2/c.1.1", "fail k.1.2/c.1.1"} {
		w.must(text)
	}
	var top workitem.CaseID
	did, err := w.command(func(m *kernel.Machine) (err error) {
		top, err = m.Repairs().Resume(w.tree.Case(w.root().Children[1]).ID, nil, nil)
		return err
	})
	require.NoError(t, err)
	require.Equal(t, w.tree.Root, top)
	require.Equal(t, "k.1.1/c.1.2=initialized k.1.2/c.1.2=initialized k.1.3/c+2 k.1.3/c.2.1=initialized", did)
}

// A child case that failed alone is resumed alone, as long as its activation continues. One that a step ran is not: the
// step is over.
func TestAChildCaseIsResumedAlone(t *testing.T) {
	child := define(t, "child", "i>c c>e", net.Task{Name: "c"})
	d := with(define(t, "w", "i>k k>b b>p p>k b>e", net.Task{Name: "k", Kind: net.Composite, Of: []string{"child"}, Join: net.Xor},
		net.Task{Name: "b", Split: net.Xor}), "k", workflow.Task{Of: map[string]*workflow.Definition{"child": child}, Policy: workitem.Threshold(1),
		Cases: func(context.Context, *activities.Activation) ([]activities.NewCase, error) {
			return make([]activities.NewCase, 2), nil
		}})
	w := newWorld(t, d, child)
	w.must("start")
	w.must("begin k.1.1/c.1.1")
	w.must("fail k.1.1/c.1.1")
	first := w.root().Children[0]
	again := func(id workitem.CaseID) (string, error) {
		return w.command(func(m *kernel.Machine) error { _, err := m.Repairs().Resume(id, nil, nil); return err })
	}
	did, err := again(first)
	require.NoError(t, err)
	require.Equal(t, "k.1.1/c.1.2=initialized", did)
	w.must("begin k.1.1/c.1.2")
	w.must("fail k.1.1/c.1.2")
	w.must("begin k.1.2/c.1.1")
	require.Contains(t, w.must("complete k.1.2/c.1.1"), "k! ")
	_, err = again(first)
	require.ErrorIs(t, err, activities.ErrInactive, "its activation has completed")

	v := working(t, function(t, "w"), child)
	v.write(called("call", "child"))
	v.must("begin child.1/c.1.1")
	v.must("fail child.1/c.1.1")
	_, err = v.command(func(m *kernel.Machine) error {
		_, err := m.Repairs().Resume(v.root().Children[0], nil, nil)
		return err
	})
	require.ErrorIs(t, err, activities.ErrInactive)
	require.ErrorContains(t, err, "the step that ran it")
}

// The handlers of an end that is taken back are not called; other jobs that the case left are.
func TestAResumeTakesTheEndBack(t *testing.T) {
	d := calls(define(t, "w", "i>a a>e", net.Task{Name: "a"}), "work", "other")
	d.Handlers = map[string]*workflow.Handler{"work": {}, "tx": {Run: func(context.Context, activities.CaseInfo, json.RawMessage) error { return nil }}}
	d.Hooks.OnFailed = func(_ context.Context, c *activities.Case) error {
		_, err := c.Schedule(activities.NewJob{Name: "other"})
		return err
	}
	w := newWorld(t, d)
	w.jobs = true
	w.must("start")
	w.must("begin a.1.1")
	w.must("fail a.1.1")
	for _, name := range []string{"work", "tx"} {
		_, err := w.command(func(m *kernel.Machine) error { return m.OpenHandlerCall(workflow.HandlerCall{Handler: name}, nil, 0) })
		require.NoError(t, err)
	}
	did, err := w.resume("")
	require.NoError(t, err)
	require.Equal(t, "call:work=canceled handler:tx=canceled a.1.2=initialized", did)
	require.Equal(t, []string{"other"}, labels(w.live()))
}

// A skipped item completes with the output that it is given, and its work is not begun. A failed one is replaced
// before.
func TestAnItemIsSkipped(t *testing.T) {
	var log []string
	note := func(a string) func(context.Context, *activities.Item, json.RawMessage) error {
		return func(context.Context, *activities.Item, json.RawMessage) error { log = append(log, a); return nil }
	}
	def := func() *workflow.Definition {
		return with(define(t, "w", "i>a a>p a>q p>b q>b b>e", net.Task{Name: "a", Split: net.Xor}, net.Task{Name: "b", Join: net.Xor}), "a",
			workflow.Task{Actions: map[workitem.Action]func(context.Context, *activities.Item, json.RawMessage) error{
				workitem.Start: note("start"), workitem.Complete: note("complete")}})
	}
	w := newWorld(t, def())
	w.must("start")
	completed, did, err := w.skip("a.1.1", `5`, "q")
	require.NoError(t, err)
	require.Equal(t, "a.1.1", completed)
	require.Equal(t, "a*i a.1.1=started a.1.1=completed a! a>q b+1 b.1.1=initialized", did)
	require.Equal(t, []string{"complete"}, log)
	require.JSONEq(t, `5`, string(w.root().Tasks[0].Output))
	_, _, err = w.skip("a.1.1", `5`)
	require.ErrorIs(t, err, workflow.ErrNotFailed)

	w = newWorld(t, def())
	w.must("start")
	w.must("begin a.1.1")
	_, did, err = w.skip("a.1.1", `5`)
	require.NoError(t, err)
	require.Equal(t, "a.1.1=completed a! a>p b+1 b.1.1=initialized", did)

	w = newWorld(t, def())
	w.must("start")
	w.must("begin a.1.1")
	w.must("fail a.1.1")
	completed, _, err = w.skip("a.1.1", `5`)
	require.NoError(t, err)
	require.Equal(t, "a.1.2", completed)
	require.Equal(t, workitem.Completed, w.root().Item(w.item("a.1.2")).State)
	_, err = w.command(func(m *kernel.Machine) error { _, err := m.Repairs().Skip(workitem.ID{7}, nil, nil); return err })
	require.ErrorIs(t, err, kernel.ErrNotFound)
}

// The reason of a command is a note of its case; no reason is no note.
func TestAReasonIsNoted(t *testing.T) {
	w := newWorld(t, define(t, "w", "i>a a>e", net.Task{Name: "a"}))
	w.must("start")
	because := func(id workitem.CaseID, reason *workitem.Failure) string {
		did, err := w.command(func(m *kernel.Machine) error { return m.NoteReason(id, reason) })
		require.NoError(t, err)
		return did
	}
	require.Equal(t, "note:reason", because(w.tree.Root, workitem.Failf("typo", "the address was wrong")))
	require.Equal(t, "typo: the address was wrong", w.last[0].(*state.Noted).Text)
	require.Equal(t, net.TaskID(-1), w.last[0].(*state.Noted).Task)
	require.Empty(t, because(w.tree.Root, nil))
	require.Empty(t, because(workitem.CaseID{7}, workitem.Failf("typo", "")))
}

// A case whose start was given up has begun nothing, and begins when it is resumed. One that failed by its own output,
// with a token in its end condition, ends again, with the output that is there now.
func TestACaseThatFailedAtItsEdgesGoesOn(t *testing.T) {
	w := newWorld(t, define(t, "w", "i>a a>e", net.Task{Name: "a"}))
	_, err := w.startAt(w.now.Add(time.Hour))
	require.NoError(t, err)
	_, err = w.putOff(1, kernel.EndNothing)
	require.NoError(t, err)
	did, err := w.resume("")
	require.NoError(t, err)
	require.Equal(t, "a+1 a.1.1=initialized", did)

	d := define(t, "w", "i>a a>e", net.Task{Name: "a"})
	missing := activities.ErrNoOutput
	d.Output = func(*activities.Case) (json.RawMessage, error) { return json.RawMessage(`3`), missing }
	w = newWorld(t, d)
	w.must("start")
	w.must("begin a.1.1")
	require.Contains(t, w.must("complete a.1.1"), "case=failed")
	missing = nil
	did, err = w.resume("")
	require.NoError(t, err)
	require.Equal(t, "case=completed", did)
	require.JSONEq(t, `3`, string(w.root().Output))
}
