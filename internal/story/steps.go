package story

import (
	"fmt"
	"time"

	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// step names a step by its action and its job: "step charge of order.1.1".
func (s *Story) step(st *workitem.Step) string {
	name := "step " + st.Name
	switch j := s.jobs[st.Job]; {
	case j == nil:
	case !j.Item.IsZero():
		name += " of " + s.item(j.Item)
	case j.Name != "":
		name += " of " + j.Name
	}
	return name
}

func (s *Story) stepOpened(st *workitem.Step, at time.Time) string {
	line := s.step(st)
	switch {
	case st.Copied:
		return line + " taken over" + showing(" with ", st.Result)
	case st.State == workitem.StepDone:
		return line + " done" + showing(" with ", st.Result)
	case st.State == workitem.StepFailed:
		return line + " failed: " + st.Failure.String()
	}
	return line + " waits for " + s.awaited(st) + due(st.Due, at)
}

// awaited describes what a waiting step waits for.
func (s *Story) awaited(st *workitem.Step) string {
	switch st.Kind {
	case workitem.StepEvent:
		if st.Topic {
			return "topic " + st.Target
		}
		return "event " + st.Target
	case workitem.StepCase:
		return "a case of " + st.Target
	case workitem.StepToken:
		return "event " + st.Target + " by a token"
	case workitem.StepDo:
		if st.Limited() {
			return st.Needs()
		}
		return fmt.Sprintf("attempt %d, after %s", st.Attempt+1, st.Failure)
	}
	return "its time"
}

func (s *Story) stepMoved(e *state.StepMoved, at time.Time) string {
	known := s.steps[e.Step]
	if known == nil {
		return "step " + e.To.String()
	}
	now := *known
	now = *e.Move(known)
	s.steps[e.Step] = &now
	line := s.step(known)
	if e.To == workitem.StepWaiting {
		return line + " waits for " + s.awaited(&now) + due(e.Due, at)
	}
	line += " " + e.To.String() + showing(" with ", e.Result)
	if e.Failure != nil {
		line += ": " + e.Failure.String()
	}
	return line
}

func (s *Story) sent(m *state.Message) string {
	what := "event "
	if m.Topic {
		what = "broadcast "
	}
	line := what + m.Name + " sent"
	if m.By != "" {
		line += " by " + m.By
	}
	return line + showing(" with ", m.Value)
}

func (s *Story) taken(e *state.MessageTaken) string {
	name, by := "event", "a step"
	if m := s.mail[e.Message]; m != nil {
		name += " " + m.Name
	}
	if st := s.steps[e.Step]; st != nil {
		by = s.step(st)
	}
	return name + " taken by " + by
}
