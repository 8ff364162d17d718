package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/engine/internal/commit"
	"github.com/tasq-dev/tasq/engine/internal/fault"
	"github.com/tasq-dev/tasq/engine/internal/kernel"
	"github.com/tasq-dev/tasq/step"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// Journal is the [step.Journal] of one claim of a job. What the function records goes through the writer, with the
// fence of the claim, and changes of its steps by others come back from the scheduler:
//
//	function ──▶ step.Run ──▶ Record, Queue, Tx, Suspend ──▶ writer ──▶ commit
//	                ▲                                                     │
//	                └────── watcher ◀── Opened, Moved ◀── scheduler ◀─────┘
//
// The two directions race: a step may have ended before the call that recorded it returns. So a step is put into waits
// when its commit is reported, not when Record returns, and each is reported as ended once.
type Journal struct {
	o      *Options
	root   workitem.CaseID
	w      *activities.Work
	cancel context.CancelCauseFunc // of the context of the run
	limits Limits
	steps  []*workitem.Step // recorded by earlier runs
	last   []*workitem.Step // to be recorded together with the end of the function
	fence  atomic.Int64     // the fence of the claim; noFence once the job is lost

	mu      sync.Mutex
	latest  *queued                            // the last record for which the function did not wait; nil if there is none
	waits   map[workitem.StepID]*workitem.Step // steps that wait and were not reported as ended; nil while there are none
	watcher func(*workitem.Step)
	stops   []func() // stop the alarms for waits
	ended   bool     // nothing is reported any more

	// While the run is being suspended, a step that is due for its next attempt is not reported: the suspension may
	// win, and then the next run makes the attempt, not this one too.
	suspending bool
	delayed    []func() // reports of limitsAcquired during the suspension
	due        []*workitem.Step
}

// Limits admits the steps of one run to their limits. Its methods are safe for concurrent use.
type Limits interface {
	// Take is that of [step.Limiter]; held reports whether the limits were acquired at once, for which room is not called.
	Take(name string, takes []workitem.Take, since time.Time, room func()) (l step.Lease, held bool, err error)
	// Admitted reports whether a step has acquired its limits and has not started.
	Admitted() bool
	// Reserved returns the name of the step for which the claim of the job has acquired limits; "" if there is none, or the step
	// has taken them.
	Reserved() string
}

// noFence is a fence that no claim has.
const noFence = -1

// NewJournal returns the journal of a run, for a claim that the writer has accepted. The cancel function is that of the context of
// the run.
func (r *Runner) NewJournal(root workitem.CaseID, w *activities.Work, limits Limits, cancel context.CancelCauseFunc) *Journal {
	j := &Journal{o: &r.o, root: root, w: w, limits: limits, cancel: cancel, steps: relevant(w)}
	j.fence.Store(w.Fence)
	j.mu.Lock() // an alarm for a past time fires at once
	defer j.mu.Unlock()
	for _, s := range j.steps {
		if s.State == workitem.StepWaiting {
			j.keep(s)
		}
	}
	return j
}

// Holds reports whether the run holds its job by the given fence.
func (j *Journal) Holds(fence int64) bool { return j.fence.Load() == fence }

// Fence returns the fence by which the run holds its job. No claim has it once the job is lost.
func (j *Journal) Fence() int64 { return j.fence.Load() }

// Lose takes the job from the run: what it records, and its result, are refused from now on.
func (j *Journal) Lose() { j.fence.Store(noFence) }

// IsLost reports whether the job was taken from the run by Lose.
func (j *Journal) IsLost() bool { return j.Fence() == noFence }

// Owner returns the id of the owner of the steps: the item of the job, or the job itself if it has none.
func (j *Journal) Owner() [16]byte {
	if j.w.Item != nil && j.w.Name == "" {
		return j.w.Item.ID
	}
	return j.w.Job
}

// relevant returns the steps of this job, without those that failed in an earlier attempt of it, since these are
// executed again.
func relevant(w *activities.Work) []*workitem.Step {
	var own []*workitem.Step
	for _, s := range w.Steps {
		if s = asDone(s); s.Job == w.Job && (s.State == workitem.StepDone || s.State == workitem.StepWaiting || s.Run == w.Run) {
			own = append(own, s)
		}
	}
	return own
}

// A token is the one kind of step that is done for its maker and still waits in the store: for the event that comes with
// it.

// asDone returns a token as the job that made it sees it: done, with its text as the result, whether it was used or
// not.
func asDone(s *workitem.Step) *workitem.Step {
	if s.Kind != workitem.StepToken || s.State != workitem.StepWaiting {
		return s
	}
	done := *s
	done.State = workitem.StepDone
	return &done
}

// Steps implements [step.Journal]. It includes steps that ended before the first Watch.
func (j *Journal) Steps() []*workitem.Step {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.steps
}

// Now implements [step.Journal].
func (j *Journal) Now() time.Time { return j.o.Now() }

// Watch implements [step.Journal].
func (j *Journal) Watch(f func(*workitem.Step)) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.watcher = f
}

// Record implements [step.Journal].
func (j *Journal) Record(ctx context.Context, steps ...*workitem.Step) ([]*workitem.Step, error) {
	stored, err := journaled(ctx, j, "step "+names(steps), func(_ *commit.Tx, m *kernel.Machine) ([]*workitem.Step, error) {
		return m.Steps().Record(j.w.Job, j.fence.Load(), steps)
	})
	if err != nil {
		return nil, err
	}
	return j.keepAll(stored), nil
}

// Suspend implements [step.Journal]. The run says which steps it knows to wait for: if one of them has ended, and its report
// is still on the way, the kernel refuses to suspend the job, and the run continues with that step. Nor is it suspended if
// limits were acquired for a step: the next run would have to acquire them again.
func (j *Journal) Suspend(ctx context.Context, steps ...*workitem.Step) ([]*workitem.Step, bool, error) {
	type outcome struct {
		stored    []*workitem.Step
		suspended bool
	}
	known := j.known()
	j.suspend(true)
	defer j.suspend(false)
	given := len(steps)
	steps = slices.Concat(steps, j.unusedAdmission())
	if j.limits.Admitted() {
		stored, err := j.Record(ctx, steps...)
		return stored[:min(given, len(stored))], false, err
	}
	o, err := journaled(ctx, j, "job suspend", func(_ *commit.Tx, m *kernel.Machine) (o outcome, err error) {
		o.stored, o.suspended, err = m.Steps().Suspend(j.w.Job, j.fence.Load(), steps, known)
		return o, err
	})
	if err != nil {
		return nil, false, err
	}
	if o.suspended {
		j.End()
		return o.stored[:given], true, nil
	}
	return j.keepAll(o.stored)[:given], false, nil
}

// suspend records that a suspension begins or has ended. If the run continues, it delivers the reports that were
// delayed.
func (j *Journal) suspend(begins bool) {
	j.mu.Lock()
	j.suspending = begins
	due, watcher, rooms := j.due, j.watcher, j.delayed
	j.delayed = nil
	if begins || j.ended || watcher == nil {
		due, rooms = nil, nil
	} else {
		j.due = nil
	}
	j.mu.Unlock()
	for _, s := range due {
		watcher(s)
	}
	for _, room := range rooms {
		room()
	}
}

// request returns a request with a command on the tree of the job.
func (j *Journal) request(command string, f func(*commit.Tx, *kernel.Machine) error) *commit.Request {
	return commit.OnTree(j.root, command, f)
}

// journaled submits a command of a run. After a fault of the store the function waits until the store works, instead of
// failing.
func journaled[T any](ctx context.Context, j *Journal, command string, f func(*commit.Tx, *kernel.Machine) (T, error)) (
	result T, err error,
) {
	err = j.o.Retrier.Retry(ctx, func() (err error) {
		result, err = commit.Query(ctx, j.o.Writer, &commit.Request{}, func(tx *commit.Tx) (result T, err error) {
			err = j.request(command, func(tx *commit.Tx, m *kernel.Machine) (err error) {
				result, err = f(tx, m)
				return err
			}).Run(tx)
			return result, err
		})
		return j.note(command, err)
	})
	return result, lostBy(err)
}

// lostBy marks an error that says that the job no longer belongs to the run.
func lostBy(err error) error {
	if errors.Is(err, kernel.ErrLeaseLost) || errors.Is(err, store.ErrNotFound) {
		return fmt.Errorf("%w: %w", step.ErrLost, err)
	}
	return err
}

// names returns the names of the first few steps, for the journal.
func names(steps []*workitem.Step) string {
	if len(steps) == 0 {
		return ""
	}
	text := steps[0].Name
	for i, s := range steps[1:] {
		if i == 2 {
			return text + ", ..."
		}
		text += ", " + s.Name
	}
	return text
}

// keepAll keeps the steps that were stored, and returns them as the run sees them.
func (j *Journal) keepAll(stored []*workitem.Step) []*workitem.Step {
	j.mu.Lock()
	defer j.mu.Unlock()
	for i, s := range stored {
		s = asDone(s)
		stored[i] = s
		switch {
		case s.State.Final():
			delete(j.waits, s.ID)
		case j.waits[s.ID] != nil: // otherwise it has ended since, which was reported
			j.keep(s)
		}
	}
	return stored
}

// keep keeps a waiting step, and sets an alarm for its time. The journal is locked.
func (j *Journal) keep(s *workitem.Step) {
	j.wait(s)
	if !s.Due.IsZero() && !s.Limited() && !j.ended {
		j.stops = append(j.stops, j.o.Alarms.At(s.Due.UnixMicro(), func() { j.waitExpired(s, 0) }))
	}
}

// waitExpired handles a wait whose time is over while the function runs.
func (j *Journal) waitExpired(s *workitem.Step, faults int) {
	j.mu.Lock()
	now, live := j.waits[s.ID]
	live = live && !j.ended
	if live && now.Due.After(j.o.Now()) {
		j.keep(now) // the time was extended, or the clock was set back
		live = false
	}
	watcher := j.watcher
	if live && s.Kind == workitem.StepDo && j.suspending {
		j.due = append(j.due, now)
		live = false
	}
	j.mu.Unlock()
	if !live {
		return
	}
	if s.Kind == workitem.StepDo {
		if watcher != nil {
			watcher(now) // the next attempt of the step is due; the run executes it
		}
		return
	}
	r := j.request("steps due", func(_ *commit.Tx, m *kernel.Machine) error { return m.Steps().EndDue(j.w.Job, j.fence.Load()) })
	r.Ended = func(err error) {
		if err != nil && !Unwanted(err) {
			j.o.Faults.Note("due work", err, "a wait could not be ended; it is tried again", "job", j.w.Job, "step", s.Name)
			j.afterFault(faults, func() { j.waitExpired(s, faults+1) })
		}
	}
	j.o.Writer.Send(r)
}

// afterFault calls f after the wait for a fault, unless the run has ended by then.
func (j *Journal) afterFault(faults int, f func()) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.ended {
		timer := time.AfterFunc(fault.Wait(faults), f)
		j.stops = append(j.stops, func() { timer.Stop() })
	}
}

// Opened receives a step that was recorded. It is called in the order of the commits, whereas the answer of Record
// arrives when its goroutine is scheduled: a child case that ends in between must not be missed.
func (j *Journal) Opened(s *workitem.Step) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if s.Kind != workitem.StepToken && s.State == workitem.StepWaiting {
		j.wait(s)
	}
}

// wait keeps a step as waiting. The journal is locked.
func (j *Journal) wait(s *workitem.Step) {
	if j.waits == nil {
		j.waits = make(map[workitem.StepID]*workitem.Step)
	}
	j.waits[s.ID] = s
}

// Moved receives a step that has ended. The scheduler calls it while it is locked, so it must not block.
func (j *Journal) Moved(e *state.StepMoved) {
	j.mu.Lock()
	s := j.waits[e.Step]
	if s == nil || !e.To.Final() || j.ended {
		j.mu.Unlock()
		return
	}
	delete(j.waits, e.Step)
	now := *s
	now.State, now.Attempt, now.Result, now.Failure, now.Ended = e.To, e.Attempt, e.Result, e.Failure, e.At
	watcher := j.watcher
	if watcher == nil {
		if i := slices.Index(j.steps, s); i >= 0 {
			j.steps[i] = &now
		}
	}
	j.mu.Unlock()
	if watcher != nil {
		watcher(&now)
	}
}

// known returns the steps for which the run waits.
func (j *Journal) known() []workitem.StepID {
	j.mu.Lock()
	defer j.mu.Unlock()
	ids := make([]workitem.StepID, 0, len(j.waits))
	for id := range j.waits {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, func(a, b workitem.StepID) int { return slices.Compare(a[:], b[:]) })
	return ids
}

// End ends the journal of a run that has ended, or whose job belongs to another engine. Alarms that fire at the same time
// find that it has ended.
func (j *Journal) End() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.ended = true
	for _, stop := range j.stops {
		stop()
	}
	j.stops = nil
}

// note logs when the store begins to refuse the steps of functions, and when that is over. It returns the error unchanged. Without it, a
// function whose own SQL breaks the connection again and again would only seem to take long.
func (j *Journal) note(command string, err error) error {
	if fault.Is(err) {
		j.o.Faults.Note("steps", err, "a step could not be stored; it is tried again until the store takes it; a step whose own SQL breaks the "+
			"connection fails after some attempts", "step", command, "job", j.w.Job, "case", j.root)
	} else {
		j.o.Faults.Note("steps", nil, "")
	}
	return err
}
