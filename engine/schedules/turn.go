package schedules

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/internal/printable"
	"github.com/tasq-dev/tasq/schedule"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// turn is the transition from one case of a schedule to the next, in the transaction in which the first one ends.
type turn struct {
	tx    builder.InTx
	code  func(error) string
	state *State
	now   time.Time
	id    workitem.CaseID // of the case that has ended
}

// take executes the request that ended the case, and returns when the next one is to begin.
func (t *turn) take(ctx context.Context, q request) (time.Time, error) {
	s := t.state
	var err error
	switch q.Do {
	case doPause:
		s.Schedule.Paused = true
	case doResume:
		if s.Schedule.Paused {
			s.Schedule.Paused, s.Last = false, later(s.Last, t.now)
		}
	case doUpdate:
		t.update(q)
	case doRun:
		err = t.begin(ctx, t.now, "run "+t.id.String())
		if errors.Is(err, workflow.ErrUnknown) { // it waits for an engine with the workflow
			s.Waiting, err = append(s.Waiting, t.now), nil
		}
	case doBackfill:
		err = t.backfill(q)
	case doTick, doLook:
	default:
		err = fmt.Errorf("schedule %q: this program does not know %q; the one that asked may be newer", s.Schedule.Name, q.Do)
	}
	if err != nil {
		return time.Time{}, err
	}
	return t.look(ctx)
}

// update replaces the schedule. Ticks of the new times count from now on.
func (t *turn) update(q request) {
	s := t.state
	fresh, old := q.Update.Schedule, s.Schedule
	fresh.Paused = fresh.Paused || old.Paused
	s.Scheduled, s.Declared = *q.Update, q.Declared
	s.Schedule = fresh
	if fresh.String() != old.String() || !fresh.Start.Equal(old.Start) || !fresh.End.Equal(old.End) {
		s.Last = later(s.Last, t.now)
		s.From = s.Last
	}
}

// later returns the later of two times: after a clock was set back, no tick is processed twice.
func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// backfill begins the ticks of a period that have no run. If ticks must not overlap, they begin one after the other.
func (t *turn) backfill(q request) error {
	table, err := t.state.Schedule.Compile()
	if err != nil {
		return err
	}
	ticks := backfilled(table, q.From, q.To)
	t.state.Waiting = append(t.state.Waiting, ticks...)
	if drop := len(t.state.Waiting) - MaxBackfill; drop > 0 {
		return fmt.Errorf("schedule %q: %d ticks would wait, and at most %d may; backfill a shorter period", t.state.Schedule.Name,
			len(t.state.Waiting), MaxBackfill)
	}
	return nil
}

// backfilled lists the ticks of a period, at most one more than allowed.
func backfilled(table *schedule.Timetable, from, to time.Time) (ticks []time.Time) {
	for tick := range table.Between(from, to) {
		if ticks = append(ticks, tick.UTC()); len(ticks) > MaxBackfill {
			break
		}
	}
	return ticks
}

// look begins due and waiting ticks, and returns when to check again. If this engine cannot start the workflow, the
// changes are rolled back, and this or another engine tries again.
func (t *turn) look(ctx context.Context) (time.Time, error) {
	before := *t.state
	table, err := t.state.Schedule.Compile()
	if err != nil {
		return time.Time{}, err
	}
	due := table.Due(t.state.Last, t.now)
	if err := t.begins(ctx, due); err != nil {
		if !errors.Is(err, workflow.ErrUnknown) {
			return time.Time{}, err
		}
		*t.state = before
		t.state.Latest = &Latest{Tick: t.now, At: t.now, Error: t.failure(err)}
		return t.now.Add(tryAgain), nil
	}
	s := t.state
	next := s.settle(due)
	if !s.Schedule.Paused && len(s.Waiting) > 0 {
		if soon := t.now.Add(lookAgain); next.After(soon) {
			next = soon
		}
	}
	return next, nil
}

// settle records that ticks were processed, and returns when the next one begins.
func (s *State) settle(due schedule.Due) time.Time {
	if s.Last.IsZero() { // it is new, so nothing is due
		s.From = due.Last
	}
	s.Last = due.Last
	if due.LeftOut {
		s.Missed++
	}
	if due.Next.IsZero() {
		return printable.Never
	}
	return due.Next
}

// begins begins the waiting ticks, and then the due ones, according to the policy for overlaps.
func (t *turn) begins(ctx context.Context, due schedule.Due) error {
	s := t.state
	if s.Schedule.Overlap != schedule.OverlapAllow { // it needs them only once it is changed
		if err := t.forget(ctx); err != nil {
			return err
		}
	}
	s.Waiting = slices.Clone(s.Waiting)
	for !s.Schedule.Paused && len(s.Waiting) > 0 && (len(s.Running) == 0 || s.Schedule.Overlap == schedule.OverlapAllow) {
		tick := s.Waiting[0]
		s.Waiting = s.Waiting[1:]
		if err := t.tick(ctx, tick); err != nil {
			return err
		}
	}
	for _, tick := range due.Ticks {
		tick = tick.UTC()
		switch s.Schedule.Overlap.At(len(s.Running)+len(s.Waiting) > 0) {
		case schedule.ActionStart:
			if err := t.tick(ctx, tick); err != nil {
				return err
			}
		case schedule.ActionReplace:
			if err := t.replace(ctx, tick); err != nil {
				return err
			}
		case schedule.ActionWait:
			s.Waiting = append(s.Waiting, tick)
		default:
			s.Skipped++
		}
	}
	if drop := len(s.Waiting) - MaxBackfill; drop > 0 { // the oldest, like missed ticks
		s.Waiting, s.Skipped = s.Waiting[drop:], s.Skipped+drop
	}
	return nil
}

// forget drops the runs that have ended.
func (t *turn) forget(ctx context.Context) error {
	var live []workitem.CaseID
	for _, id := range t.state.Running {
		info, err := t.tx.RunInfo(ctx, id)
		switch {
		case errors.Is(err, store.ErrNotFound):
		case err != nil:
			return err
		case !info.State.Final():
			live = append(live, id)
		}
	}
	t.state.Running = live
	return nil
}

// bound forgets runs of a schedule that lets them overlap, once there are too many. What is left counts when its overlap is changed.
func (t *turn) bound(ctx context.Context) error {
	if len(t.state.Running) <= 2*maxOverlapping {
		return nil
	}
	err := t.forget(ctx)
	live := t.state.Running
	t.state.Running = live[max(0, len(live)-maxOverlapping):]
	return err
}

// tick begins one tick.
func (t *turn) tick(ctx context.Context, tick time.Time) error {
	return t.begin(ctx, tick, tick.Format(time.RFC3339Nano))
}

// replace cancels the active runs and begins a tick.
func (t *turn) replace(ctx context.Context, tick time.Time) error {
	old := t.state.Running
	t.state.Running = nil
	if err := t.tick(ctx, tick); err != nil {
		return err
	}
	for _, id := range old {
		why := &workitem.Failure{Code: "replaced", Message: fmt.Sprintf("schedule %s has come to its tick %s", t.state.Schedule.Name,
			tick.Format(time.RFC3339))}
		_, err := t.tx.Do(ctx, workflow.Cancel(id, why, workflow.By("schedule "+t.state.Schedule.Name)))
		if err != nil && !errors.Is(err, workflow.ErrInactive) && !errors.Is(err, workflow.ErrNotFound) {
			return err
		}
	}
	return nil
}

// begin starts a run. If the workflow refuses the start, that is recorded, and the schedule continues. An error is a
// fault, or says that this engine does not have the workflow.
func (t *turn) begin(ctx context.Context, tick time.Time, key string) error {
	s := t.state
	result, err := t.tx.Do(ctx, s.start(tick, key))
	switch {
	case err == nil:
		s.Latest = &Latest{Tick: tick, At: t.now, Case: result.Case}
		s.Running = append(slices.Clip(s.Running), result.Case)
		if s.Schedule.Overlap != schedule.OverlapAllow {
			return t.forget(ctx) // the run began before, or has ended already within this transaction
		}
		return t.bound(ctx)
	case errors.Is(err, workflow.ErrKeyReused): // it began before, with another input
	case errors.Is(err, workflow.ErrUnknown), slices.Contains(faults, t.code(err)):
		return err
	default:
		s.Latest = &Latest{Tick: tick, At: t.now, Error: t.failure(err)}
	}
	return nil
}

// faults lists the codes of errors that are not caused by the start: the store failed, or the engine closes.
var faults = []string{"commit-failed", "lost", "closed", "undone", "unavailable"}

func (t *turn) failure(err error) *workitem.Failure {
	return &workitem.Failure{Code: t.code(err), Message: err.Error()}
}
