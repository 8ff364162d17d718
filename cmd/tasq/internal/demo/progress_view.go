package demo

import (
	"fmt"
	"time"

	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// head implements caseTable.
func (s *progress) head(now time.Time) string {
	head := s.caseState.head(now)
	if s.attempt > 1 {
		head += fmt.Sprintf("  attempt %d", s.attempt)
		if left := s.due.Sub(now); left > 0 && !s.working {
			head += fmt.Sprintf(" in %.1fs", left.Seconds())
		}
	}
	return head
}

// rows implements caseTable: a line for each step of the function, also for those that it has not reached. A call is
// recorded when it has returned, so a worker executes the first step that is not done.
func (s *progress) rows(now time.Time, frame int) []string {
	var rows []string
	busy := s.working && s.state == state.CaseStarted
	for _, r := range s.all() {
		sign, status := s.status(r, now)
		if busy && !r.isDone() {
			busy = false
			if r.step == nil || r.step.State.Final() || r.step.Kind == workitem.StepDo {
				sign, status = spinner(frame), "at work"
			}
		}
		rows = append(rows, fmt.Sprintf("%s %-19s  %-8s %s", sign, r.part.step, status, s.remark(r)))
	}
	return rows
}

// isDone reports whether the function does not execute the step again.
func (r *row) isDone() bool {
	return r.step != nil && (r.step.State == workitem.StepDone || r.step.Kind == workitem.StepToken)
}

// status returns the sign of a step, and its state or time as text.
func (s *progress) status(r *row, now time.Time) (sign, status string) {
	switch {
	case r.step == nil:
		return " ", "-"
	case r.isDone():
		return signDone, "done"
	case r.step.State.Final():
		return signFailed, r.step.State.String()
	case r.step.Due.IsZero():
		return signWaiting, "waits"
	}
	left := max(0, r.step.Due.Sub(now))
	if left > time.Hour {
		return signWaiting, span(left)
	}
	return signWaiting, fmt.Sprintf("%.1fs", left.Seconds())
}
