package describe

import (
	"fmt"
	"time"

	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// step names a step by its action and its job: "step charge of order.1.1".
func (d *Describer) step(st *workitem.Step) string {
	name := "step " + st.Name
	switch j := d.jobs[st.Job]; {
	case j == nil:
	case !j.Item.IsZero():
		name += " of " + d.item(j.Item)
	case j.Name != "":
		name += " of " + j.Name
	}
	return name
}

func (d *Describer) stepOpened(st *workitem.Step, at time.Time) string {
	line := d.step(st)
	switch {
	case st.Copied:
		return line + " taken over" + showing(" with ", st.Result)
	case st.State == workitem.StepDone:
		return line + " done" + showing(" with ", st.Result)
	case st.State == workitem.StepFailed:
		return line + " failed: " + st.Failure.String()
	}
	return line + " waits for " + d.awaited(st) + due(st.Due, at)
}

// awaited describes what a waiting step waits for.
func (d *Describer) awaited(st *workitem.Step) string {
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

func (d *Describer) stepMoved(e *state.StepMoved, at time.Time) string {
	known := d.steps[e.Step]
	if known == nil {
		return "step " + e.To.String()
	}
	now := *e.Move(known)
	d.steps[e.Step] = &now
	line := d.step(known)
	if e.To == workitem.StepWaiting {
		return line + " waits for " + d.awaited(&now) + due(e.Due, at)
	}
	line += " " + e.To.String() + showing(" with ", e.Result)
	if e.Failure != nil {
		line += ": " + e.Failure.String()
	}
	return line
}

func (d *Describer) sent(m *state.Message) string {
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

func (d *Describer) taken(e *state.MessageTaken) string {
	name, by := "event", "a step"
	if m := d.mail[e.Message]; m != nil {
		name += " " + m.Name
	}
	if st := d.steps[e.Step]; st != nil {
		by = d.step(st)
	}
	return name + " taken by " + by
}
