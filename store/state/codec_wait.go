package state

import "github.com/tasq-dev/tasq/workitem"

// A step may be opened in its final state, with a result, and then has no further change.
func appendStepOpened(dst []byte, s *workitem.Step) []byte {
	dst = key(dst, "step", s.ID)
	dst = key(dst, "job", s.Job)
	dst = key(dst, "item", s.Item)
	dst = str(dst, "name", s.Name)
	dst = str(dst, "kind", string(s.Kind))
	dst = str(dst, "target", s.Target)
	dst = flag(dst, "topic", s.Topic)
	dst = raw(dst, "input", s.Input)
	dst = str(dst, "to", s.State.String())
	dst = num(dst, "attempt", int64(s.Attempt))
	dst = num(dst, "run", int64(s.Run))
	dst = at(dst, "due", s.Due)
	dst = key(dst, "child", s.Child)
	dst = raw(dst, "output", s.Result)
	dst = failure(dst, "failure", s.Failure)
	dst = flag(dst, "copied", s.Copied)
	dst = at(dst, "at", s.Created)
	return at(dst, "ended", s.Ended)
}

// The job is needed besides the step: it says whose steps in memory have changed, without a search.
func appendStepMoved(dst []byte, e *StepMoved) []byte {
	dst = key(dst, "step", e.Step)
	dst = key(dst, "job", e.Job)
	dst = str(dst, "to", e.To.String())
	dst = num(dst, "attempt", int64(e.Attempt))
	dst = at(dst, "due", e.Due)
	dst = raw(dst, "output", e.Result)
	dst = failure(dst, "failure", e.Failure)
	return at(dst, "at", e.At)
}

// The case and its root are in the head of the change; Step and Taken follow by another change.
func appendMessage(dst []byte, m *Message) []byte {
	dst = key(dst, "event", m.ID)
	dst = str(dst, "name", m.Name)
	dst = flag(dst, "topic", m.Topic)
	dst = raw(dst, "input", m.Value)
	dst = str(dst, "by", m.By)
	return at(dst, "at", m.Sent)
}
