package kernel_test

import (
	"fmt"
	"slices"

	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// record keeps what a change says of a step, so that a later run of its job finds it.
func (h *host) record(change state.Change) {
	switch e := change.(type) {
	case *state.StepOpened:
		h.steps = append(h.steps, e.Step)
	case *state.StepMoved:
		at := slices.IndexFunc(h.steps, func(s *workitem.Step) bool { return s.ID == e.Step })
		h.steps[at] = e.Move(h.steps[at])
	}
}

// Steps implements kernel.Host.
func (h *host) Steps(owner [16]byte) (list []*workitem.Step, err error) {
	if h.broken != nil {
		return nil, h.broken
	}
	for _, s := range h.steps {
		if s.Owner() == owner {
			list = append(list, s)
		}
	}
	return list, nil
}

// step finds a step by its name, as it was recorded last.
func (h *host) step(name string) *workitem.Step {
	for _, s := range slices.Backward(h.steps) {
		if s.Name == name {
			return s
		}
	}
	return nil
}

// jobWord is a change of a job, step or event in short: "+run" for a job of that kind, "+timer late" for one with a name,
// "run=running" for its move, "[nap=waiting" for a step that is recorded and "nap=done" for one that moves, "^go" for an event that
// is sent and "vgo" for one that is taken.
func (w *world) jobWord(change state.Change) string {
	label := func(j *state.Job) string {
		if j.Name == "" {
			return j.Kind
		}
		return j.Kind + ":" + j.Name
	}
	switch e := change.(type) {
	case *state.JobOpened:
		w.names[e.Job.ID] = label(e.Job)
		return "+" + label(e.Job)
	case *state.JobMoved:
		return fmt.Sprintf("%s=%s", w.names[e.Job], e.To)
	case *state.StepOpened:
		w.names[e.Step.ID] = e.Step.Name
		return fmt.Sprintf("[%s=%s", e.Step.Name, e.Step.State)
	case *state.StepMoved:
		return fmt.Sprintf("%s=%s", w.names[e.Step], e.To)
	case *state.MessageSent:
		w.names[e.Message.ID] = e.Message.Name
		return "^" + e.Message.Name
	case *state.MessageTaken:
		return "v" + w.names[e.Message]
	case *state.CaseBegun:
		return w.path(w.tree.Case(e.Case)) + "case*"
	}
	return ""
}
