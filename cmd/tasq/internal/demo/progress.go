package demo

import (
	"fmt"
	"time"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// progress has the state of a case with one task, and of the steps of its function, as read from the journal.
type progress struct {
	caseState
	process *process
	about   string
	title   string

	attempt int                           // of the task
	due     time.Time                     // of that attempt
	working bool                          // a worker runs the function
	met     []*row                        // the latest record of each step, in the order of their first records
	mail    map[workitem.MessageID]string // the sender of each message
}

// row is a step that the function has recorded.
type row struct {
	part
	step     *workitem.Step // a copy of its latest record; nil before the first
	attempts int            // the recorded calls of its function, in all attempts of the task
	by       string         // the sender of the event that it took
}

// describe applies the changes of one command, and returns a line of text for each that a user wants to see.
func (s *progress) describe(e *store.Entry) (lines []string) {
	for _, event := range e.Changes {
		if line := s.event(e, event); line != "" {
			lines = append(lines, s.at(e, line))
		}
	}
	return lines
}

func (s *progress) event(entry *store.Entry, event state.Change) string {
	switch e := event.(type) {
	case *state.CaseOpened:
		s.begun, s.state = entry.At, state.CaseStarted
		return fmt.Sprintf("case %s begins: %s", s.id, s.title)
	case *state.CaseEnded:
		s.state, s.failure, s.working = e.State, e.Failure, false
		return s.ended()
	case *state.ItemOpened:
		return s.opened(entry, e.Item)
	case *state.ItemMoved:
		if e.To == workitem.Started && s.attempt > 1 {
			return fmt.Sprintf("attempt %d begins", s.attempt)
		}
	case *state.JobMoved:
		s.working = e.To == state.JobRunning
		if e.To == state.JobPending && e.Crashes > 0 {
			return died
		}
	case *state.StepOpened:
		return s.stepOpened(e.Step, entry.At)
	case *state.StepMoved:
		return s.stepMoved(e, entry.At)
	case *state.MessageSent:
		return s.sent(e.Message)
	case *state.MessageTaken:
		if r := s.byID(e.Step); r != nil {
			r.by = s.mail[e.Message]
		}
	}
	return ""
}

// opened describes the next attempt of the task, and the steps that it does not repeat.
func (s *progress) opened(entry *store.Entry, it *workitem.Item) string {
	s.attempt, s.due = it.Attempt, it.Due
	if it.Predecessor.IsZero() {
		return ""
	}
	line := fmt.Sprintf("attempt %d is due in %s", it.Attempt, span(waitOf(it)))
	var copied []string
	for _, event := range entry.Changes {
		if e, ok := event.(*state.StepOpened); ok && e.Step.Copied {
			copied = append(copied, e.Step.Name)
		}
	}
	if len(copied) > 0 {
		line += ", with " + join(copied) + " remembered"
	}
	return line
}

func (s *progress) stepOpened(st *workitem.Step, at time.Time) string {
	own := *st
	r := s.row(st.Name)
	r.step = &own
	if st.Copied {
		return ""
	}
	switch {
	case st.Kind == workitem.StepDo:
		r.attempts += st.Attempt
	case st.Kind == workitem.StepTx:
		r.attempts++
	}
	return s.line(r, at)
}

func (s *progress) stepMoved(e *state.StepMoved, at time.Time) string {
	r := s.byID(e.Step)
	if r == nil {
		return ""
	}
	before, now := r.step, e.Move(r.step)
	r.step = now
	if now.Kind == workitem.StepDo {
		r.attempts += now.Attempt - before.Attempt
	}
	if now.Kind == workitem.StepToken || e.To == workitem.StepCanceled {
		return "" // the use of a token is described with its event
	}
	return s.line(r, at)
}

// line describes the change of a step.
func (s *progress) line(r *row, at time.Time) string {
	st := r.step
	name := st.Name
	switch {
	case s.process.silent(name):
		return ""
	case st.State == workitem.StepDone || st.Kind == workitem.StepToken:
		return withRemark(name, s.remark(r))
	case st.State == workitem.StepFailed:
		return fmt.Sprintf("%s failed: %s", name, st.Failure)
	case st.Kind == workitem.StepDo:
		return fmt.Sprintf("%s failed: %s; attempt %d is due in %s", name, st.Failure, st.Attempt+1, span(st.Due.Sub(at)))
	case st.Kind == workitem.StepEvent && st.Due.IsZero():
		return fmt.Sprintf("%s: waits for the event", name)
	case st.Kind == workitem.StepEvent:
		return fmt.Sprintf("%s: waits for the event, for at most %s", name, span(st.Due.Sub(at)))
	}
	return fmt.Sprintf("%s: waits for %s", name, span(st.Due.Sub(at)))
}

func withRemark(name, remark string) string {
	if remark == "" {
		return name
	}
	return name + ": " + remark
}

// silent reports whether a step is not shown.
func (p *process) silent(step string) bool {
	for _, part := range p.parts() {
		if part.step == step {
			return false
		}
	}
	return true
}

func (s *progress) sent(m *state.Message) string {
	if s.mail == nil {
		s.mail = make(map[workitem.MessageID]string)
	}
	s.mail[m.ID] = m.By
	if m.By == "" {
		return fmt.Sprintf("event %s is sent", m.Name)
	}
	return fmt.Sprintf("event %s is sent by %s", m.Name, m.By)
}

// row returns the row of a step, and creates it if necessary.
func (s *progress) row(name string) *row {
	for _, r := range s.met {
		if r.part.step == name {
			return r
		}
	}
	r := &row{part: part{step: name}}
	for _, part := range s.process.parts() {
		if part.step == name {
			r.part = part
		}
	}
	s.met = append(s.met, r)
	return r
}

func (s *progress) byID(id workitem.StepID) *row {
	for _, r := range s.met {
		if r.step.ID == id {
			return r
		}
	}
	return nil
}

// all lists all parts; those that the function has not reached have rows without a step.
func (s *progress) all() []*row {
	var rows []*row
	for _, part := range s.process.parts() {
		r := &row{part: part}
		for _, known := range s.met {
			if known.part.step == part.step {
				r = known
			}
		}
		rows = append(rows, r)
	}
	return rows
}

// remark describes the result of a step in a few words; "" for none.
func (s *progress) remark(r *row) string {
	switch {
	case r.step == nil:
		return ""
	case r.step.Failure != nil:
		return r.step.Failure.String()
	case r.step.State == workitem.StepDone && r.by != "":
		return "sent by " + r.by
	case r.step.State == workitem.StepDone || r.step.Kind == workitem.StepToken:
		return s.process.result(r.step, s.about)
	case r.step.State == workitem.StepCanceled:
		return "canceled"
	}
	return ""
}
