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

// worker is one who has claimed the only job of a world.
type worker struct {
	*world
	work *activities.Work
}

// working starts the first definition, the item of which a worker claims.
func working(t *testing.T, defs ...*workflow.Definition) *worker {
	t.Helper()
	w := newWorld(t, defs...)
	w.jobs = true
	w.must("start")
	work, _ := w.claim()
	return &worker{w, work}
}

// function is a workflow of one task that a worker does.
func function(t *testing.T, name string) *workflow.Definition {
	t.Helper()
	return with(define(t, name, "i>a a>e", net.Task{Name: "a"}), "a", workflow.Task{Run: run})
}

// suspend has the job wait for the steps, and reports whether it does.
func (w *worker) suspend(steps ...*workitem.Step) (did string, suspended bool) {
	w.t.Helper()
	did, err := w.command(func(m *kernel.Machine) (err error) {
		_, suspended, err = m.Steps().Suspend(w.work.Job, w.work.Fence, steps, nil)
		return err
	})
	require.NoError(w.t, err)
	return did, suspended
}

// write records steps.
func (w *worker) write(steps ...*workitem.Step) (stored []*workitem.Step, did string) {
	w.t.Helper()
	did, err := w.command(func(m *kernel.Machine) (err error) {
		stored, err = m.Steps().Record(w.work.Job, w.work.Fence, steps)
		return err
	})
	require.NoError(w.t, err)
	return stored, did
}

// resume claims the job again.
func (w *worker) reclaim() string {
	w.t.Helper()
	work, did := w.claim()
	w.work = work
	return did
}

func (w *worker) send(name, value string) string {
	w.t.Helper()
	did, err := w.command(func(m *kernel.Machine) error {
		return m.Messages().Send(w.tree.Root, &state.Message{Name: name, Value: json.RawMessage(value)})
	})
	require.NoError(w.t, err)
	return did
}

func nap(name string, due time.Time) *workitem.Step {
	return &workitem.Step{Name: name, Kind: workitem.StepSleep, State: workitem.StepWaiting, Due: due}
}

func awaited(name, event string) *workitem.Step {
	return &workitem.Step{Name: name, Kind: workitem.StepEvent, Target: event, State: workitem.StepWaiting}
}

func done(name, result string) *workitem.Step {
	return &workitem.Step{Name: name, Kind: workitem.StepDo, State: workitem.StepDone, Result: json.RawMessage(result)}
}

func called(name, of string) *workitem.Step {
	return &workitem.Step{Name: name, Kind: workitem.StepCase, Target: of, State: workitem.StepWaiting, Input: json.RawMessage(`5`)}
}

// A job that sleeps gives its worker up until the first of its steps is due, and finds it done then. It counts as no
// attempt.
func TestAJobSleeps(t *testing.T) {
	w := working(t, function(t, "w"))
	began := w.now
	did, suspended := w.suspend(done("a", `1`), nap("long", w.now.Add(time.Hour)), nap("short", w.now.Add(time.Minute)))
	require.Equal(t, "[a=done [long=waiting [short=waiting run=waiting", did)
	require.True(t, suspended)
	require.Equal(t, began.Add(time.Minute), w.live()[0].Due)
	require.Empty(t, w.live()[0].Owner)

	w.now = began.Add(time.Minute - 1)
	_, err := w.command(func(m *kernel.Machine) error { _, err := m.Leases().Claim(w.work.Job, "worker", w.now); return err })
	require.ErrorIs(t, err, kernel.ErrNotDue)
	w.now = began.Add(time.Minute)
	require.Equal(t, "short=done run=running", w.reclaim())
	require.Equal(t, 1, w.work.Run)
	require.Equal(t, int64(2), w.work.Fence)
	var names []string
	for _, s := range w.work.Steps {
		names = append(names, s.Name+" "+s.State.String())
	}
	require.Equal(t, []string{"a done", "long waiting", "short done"}, names)
	require.Equal(t, w.now, w.host.step("short").Ended)
	_, did = w.write()
	require.Empty(t, did)
	_, err = w.settle(w.work, nil)
	require.NoError(t, err)
	require.Equal(t, workitem.StepCanceled, w.host.step("long").State, "what the job still waited for ends with it")
}

// What is recorded says of itself what the caller left open, and keeps what it gave.
func TestAStepIsRecorded(t *testing.T) {
	w := working(t, function(t, "w"))
	began := w.now
	w.now = w.now.Add(time.Hour)
	early, late := done("early", `1`), done("late", `2`)
	early.Created, late.Created, late.Run = began, w.now.Add(time.Hour), 7
	stored, _ := w.write(early, late)
	require.Equal(t, began, stored[0].Created)
	require.Equal(t, w.now, stored[1].Created, "no step begins in the future")
	require.Equal(t, []int{1, 7}, []int{stored[0].Run, stored[1].Run})
	for _, s := range stored {
		require.Equal(t, w.now, s.Ended)
		require.Equal(t, w.work.Item.ID, s.Item)
		require.Equal(t, w.work.Job, s.Job)
		require.False(t, s.ID.IsZero())
	}
	require.True(t, early.ID.IsZero(), "the caller's value is not changed")
}

// A job that records a step has come further: the crashes before it are forgotten. One that records nothing has not.
func TestARecordedStepForgetsCrashes(t *testing.T) {
	w := working(t, function(t, "w"))
	_, err := w.command(func(m *kernel.Machine) error { return m.Leases().Release(w.work.Job, w.work.Fence, true) })
	require.NoError(t, err)
	w.reclaim()
	w.write()
	require.Equal(t, 1, w.live()[0].Crashes)
	_, did := w.write(done("a", `1`))
	require.Equal(t, "run=running [a=done", did)
	require.Zero(t, w.live()[0].Crashes)
}

// A wait is for the oldest event of its name, be it sent before or after. Of two waits the older one gets it.
func TestAnEventIsWaitedFor(t *testing.T) {
	w := working(t, function(t, "w"))
	require.Equal(t, "^go", w.send("go", `"first"`))
	require.Equal(t, "^go", w.send("go", `"second"`))
	require.Equal(t, "^stop", w.send("stop", ``))
	stored, did := w.write(awaited("wait 1", "go"), awaited("wait 2", "stop"))
	require.Equal(t, "[wait 1=done vgo [wait 2=done vstop", did)
	require.JSONEq(t, `"first"`, string(stored[0].Result))
	require.Equal(t, w.now, stored[0].Ended)
	require.JSONEq(t, `null`, string(stored[1].Result), "an event without a value")

	did, suspended := w.suspend(awaited("wait 3", "stop"), awaited("wait 4", "stop"))
	require.Equal(t, "[wait 3=waiting [wait 4=waiting run=waiting", did)
	require.True(t, suspended)
	require.Zero(t, w.live()[0].Due, "only an event ends it")
	_, err := w.command(func(m *kernel.Machine) error { _, err := m.Leases().Claim(w.work.Job, "worker", w.now); return err })
	require.ErrorIs(t, err, kernel.ErrNotDue)
	require.Equal(t, "^other", w.send("other", `1`))
	require.Equal(t, "^stop vstop wait 3=done run=pending", w.send("stop", `3`))
	require.JSONEq(t, `3`, string(w.host.step("wait 3").Result))
	require.Equal(t, w.now, w.live()[0].Due, "at once")
	require.Equal(t, "^stop vstop wait 4=done", w.send("stop", `4`), "it has been woken already")
	require.Equal(t, "run=running", w.reclaim())
}

// An event that a case does not take is refused: the case is not there, or has ended.
func TestAnEventIsRefused(t *testing.T) {
	w := newWorld(t, function(t, "w"))
	w.must("start")
	send := func(id workitem.CaseID) error {
		_, err := w.command(func(m *kernel.Machine) error { return m.Messages().Send(id, &state.Message{Name: "go"}) })
		return err
	}
	require.ErrorIs(t, send(workitem.CaseID{7}), kernel.ErrNotFound)
	w.must("cancel")
	require.ErrorIs(t, send(w.tree.Root), activities.ErrInactive)
}

// The deadline of a wait fails it, and says how long it was.
func TestAWaitHasADeadline(t *testing.T) {
	w := working(t, function(t, "w"), function(t, "child"))
	began := w.now
	event, child := awaited("wait", "go"), called("call", "child")
	event.Due, child.Due = w.now.Add(time.Minute), w.now.Add(time.Minute)
	_, suspended := w.suspend(event, child)
	require.True(t, suspended)
	w.now = began.Add(time.Minute)
	var work *activities.Work
	did, err := w.command(func(m *kernel.Machine) (err error) {
		work, err = m.Leases().Claim(w.work.Job, "worker", w.now.Add(time.Minute))
		return err
	})
	require.NoError(t, err)
	require.Equal(t, "wait=failed call=failed run=running child.1/a- child.1/a.1.1=canceled run=canceled child.1/case=canceled", did)
	require.Equal(t, &workitem.Failure{Code: workitem.CodeTimeout, Message: `event "go" did not come within 1m0s`, Retryable: true},
		w.host.step("wait").Failure)
	require.Contains(t, w.host.step("call").Failure.Message, "of child did not end within 1m0s")
	require.Len(t, work.Steps, 2)
	for _, s := range work.Steps {
		require.Equal(t, workitem.StepFailed, s.State, "the worker is given what the claim decided")
	}
}

// EndDue is the same for a job that a worker holds, which a step whose time is over does not suspend.
func TestStepsAreDueWhileTheJobRuns(t *testing.T) {
	w := working(t, function(t, "w"))
	w.write(nap("nap", w.now.Add(time.Minute)))
	w.now = w.now.Add(time.Minute)
	did, suspended := w.suspend()
	require.Equal(t, "nap=done", did)
	require.False(t, suspended, "nothing is left to wait for")
	w.write(nap("again", w.now.Add(time.Minute)))
	did, err := w.command(func(m *kernel.Machine) error { return m.Steps().EndDue(w.work.Job, w.work.Fence) })
	require.NoError(t, err)
	require.Empty(t, did, "it is not due")
	w.now = w.now.Add(time.Minute)
	did, err = w.command(func(m *kernel.Machine) error { return m.Steps().EndDue(w.work.Job, w.work.Fence) })
	require.NoError(t, err)
	require.Equal(t, "again=done", did)
	require.Equal(t, "run=done a.1.1=completed a! a>e case=completed", w.mustSettle())
	_, err = w.command(func(m *kernel.Machine) error { return m.Steps().EndDue(w.work.Job, w.work.Fence) })
	require.ErrorIs(t, err, kernel.ErrLeaseLost)
}

func (w *worker) mustSettle() string {
	w.t.Helper()
	did, err := w.settle(w.work, nil)
	require.NoError(w.t, err)
	return did
}

// A function that is due for its next attempt continues to wait until the job calls it, so its job is not suspended for
// it.
func TestAStepThatIsToBeTriedAgain(t *testing.T) {
	w := working(t, function(t, "w"))
	again := &workitem.Step{Name: "do", Kind: workitem.StepDo, State: workitem.StepWaiting, Attempt: 1, Due: w.now.Add(time.Minute)}
	did, suspended := w.suspend(again)
	require.True(t, suspended)
	require.Equal(t, "[do=waiting run=waiting", did)
	w.now = w.now.Add(time.Minute)
	require.Equal(t, "run=running", w.reclaim())
	_, suspended = w.suspend()
	require.False(t, suspended, "the attempt is due")
	s := *w.host.step("do")
	s.State, s.Attempt, s.Due, s.Failure = workitem.StepFailed, 2, time.Time{}, workitem.Failf("bad", "twice")
	stored, did := w.write(&s)
	require.Equal(t, "do=failed", did)
	require.Equal(t, w.now, stored[0].Ended)
	require.Equal(t, s.Failure, w.host.step("do").Failure)
	require.Equal(t, 2, w.host.step("do").Attempt)
}

// A step that has ended in the meantime stays as it ended, and the job that reports on it gets it so. One that was
// never recorded is refused.
func TestAStepThatHasEnded(t *testing.T) {
	w := working(t, function(t, "w"))
	stored, _ := w.write(awaited("wait", "go"))
	w.send("go", `1`)
	late := *stored[0]
	late.State = workitem.StepCanceled
	stored, did := w.write(&late)
	require.Empty(t, did)
	require.Equal(t, workitem.StepDone, stored[0].State)
	require.JSONEq(t, `1`, string(stored[0].Result))
	unknown := late
	unknown.ID = workitem.StepID{9}
	_, err := w.command(func(m *kernel.Machine) error {
		_, err := m.Steps().Record(w.work.Job, w.work.Fence, []*workitem.Step{&unknown})
		return err
	})
	require.ErrorIs(t, err, kernel.ErrNotFound)
	require.ErrorContains(t, err, `recording "wait"`)
}

// A job is suspended only while everything that it waits for, also what it knows of from before, is still to come.
func TestAJobIsNotSuspendedForWhatHasCome(t *testing.T) {
	w := working(t, function(t, "w"))
	stored, _ := w.write(awaited("wait 1", "go"), awaited("wait 2", "stop"))
	known := []workitem.StepID{stored[0].ID, stored[1].ID}
	suspend := func(steps ...*workitem.Step) (ok bool) {
		_, err := w.command(func(m *kernel.Machine) (err error) {
			_, ok, err = m.Steps().Suspend(w.work.Job, w.work.Fence, steps, known)
			return err
		})
		require.NoError(t, err)
		return ok
	}
	w.send("go", `1`)
	require.False(t, suspend(), "the first has come, and the job has not seen it")
	w.send("more", `1`)
	require.False(t, suspend(awaited("wait 3", "more")), "a new one is there at once")
	known = known[1:]
	require.True(t, suspend(), "the first is known")
	w.send("stop", `2`)
	w.reclaim()
	require.False(t, suspend(nap("nap", w.now.Add(time.Hour))), "beside a step that waits, another one has ended")
	canceled := *w.host.step("nap")
	canceled.State = workitem.StepCanceled
	known = []workitem.StepID{canceled.ID}
	require.True(t, suspend(&canceled, nap("nap 2", w.now.Add(time.Hour))), "what the job has canceled it does not wait for")
}

// A job that waits for a token alone is not suspended: the token is done for it.
func TestATokenIsUsedOnce(t *testing.T) {
	w := working(t, function(t, "w"))
	token := &workitem.Step{Name: "token", Kind: workitem.StepToken, Target: "go"}
	did, suspended := w.suspend(token)
	require.Equal(t, "[token=waiting", did)
	require.False(t, suspended)
	require.JSONEq(t, `"token"`, string(w.host.step("token").Result))
	redeem := func(text string) (string, error) {
		return w.command(func(m *kernel.Machine) error {
			return m.Messages().Redeem(text, &state.Message{Value: json.RawMessage(`1`)})
		})
	}
	_, err := redeem("other")
	require.ErrorIs(t, err, kernel.ErrNotFound)
	_, suspended = w.suspend(awaited("wait", "go"))
	require.True(t, suspended)
	did, err = redeem("token")
	require.NoError(t, err)
	require.Equal(t, "token=done ^go vgo wait=done run=pending", did)
	_, err = redeem("token")
	require.ErrorIs(t, err, kernel.ErrNotFound)
}

// A topic reaches each who waits for it, and is not kept for later ones. The events of a case have nothing to do with
// it.
func TestATopicReachesAllWhoWait(t *testing.T) {
	w := working(t, function(t, "w"))
	topic := func(name string) *workitem.Step { s := awaited(name, "news"); s.Topic = true; return s }
	publish := func() (n int, did string) {
		did, err := w.command(func(m *kernel.Machine) (err error) {
			n, err = m.Messages().Publish("news", &state.Message{Value: json.RawMessage(`8`)})
			return err
		})
		require.NoError(t, err)
		return n, did
	}
	n, did := publish()
	require.Zero(t, n)
	require.Empty(t, did)
	w.send("news", `1`)
	_, did = w.write(topic("t1"), topic("t2"), awaited("event", "news"))
	require.Equal(t, "[t1=waiting [t2=waiting [event=done vnews", did)
	_, did = w.write(awaited("event 2", "news"))
	require.Equal(t, "[event 2=waiting", did)
	n, did = publish()
	require.Equal(t, 2, n)
	require.Equal(t, "^news vnews t1=done ^news vnews t2=done", did)
	require.JSONEq(t, `8`, string(w.host.step("t2").Result))
	_, did = w.write(topic("t3"))
	require.Equal(t, "[t3=waiting", did, "the value is not kept")
	require.Equal(t, "^news vnews event 2=done", w.send("news", `2`), "an event is for events")
}

// A callback of a step runs in the transaction of the worker that holds the job, as a callback of its task.
func TestAStepInTheTransaction(t *testing.T) {
	w := working(t, function(t, "w"))
	broken := errors.New("broken")
	call := func(fence int64, answer error) error {
		_, err := w.command(func(m *kernel.Machine) error {
			return m.Steps().Call(w.work.Job, fence, func(context.Context) error { return answer })
		})
		return err
	}
	require.NoError(t, call(w.work.Fence, nil))
	require.EqualError(t, call(w.work.Fence, broken), "the transaction of w/a: broken")
	require.ErrorIs(t, call(w.work.Fence-1, nil), kernel.ErrLeaseLost)
}
