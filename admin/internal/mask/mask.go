// Package mask hides payloads from those who may not see them, before a page, an answer or a stream is made of them.
package mask

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/tasq-dev/tasq/engine/why"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// Mask returns what is shown of a payload: kind is "case", "item", "job", "step" or "event", and name that of the workflow, task,
// function, step or event. A business key is of the kind "key" with the name of its workflow, and a label of the kind "label" with its own
// name, and the key of a limit of the kind "limit" with the name of the limit; all of them are texts in JSON. A nil Mask shows all. Token texts are never shown.
type Mask func(kind, name string, raw json.RawMessage) json.RawMessage

func (m Mask) of(kind, name string, raw json.RawMessage) json.RawMessage {
	if m == nil || len(raw) == 0 {
		return raw
	}
	return m(kind, name, raw)
}

// text is what is shown of a text: what is not a text in its place is shown as JSON.
func (m Mask) text(kind, name, value string) string {
	raw, err := json.Marshal(value)
	if value == "" || err != nil {
		return value
	}
	raw = m(kind, name, raw)
	if json.Unmarshal(raw, &value) != nil {
		return string(raw)
	}
	return value
}

func (m Mask) failure(kind, name string, f *workitem.Failure) *workitem.Failure {
	if m == nil || f == nil || len(f.Details) == 0 {
		return f
	}
	shown := *f
	shown.Details = m(kind, name, f.Details)
	return &shown
}

// Payload is what is shown of a payload that is of no record.
func (m Mask) Payload(kind, name string, raw json.RawMessage) json.RawMessage {
	return m.of(kind, name, raw)
}

// Case is what is shown of a case.
func (m Mask) Case(c *state.Case) *state.Case {
	if m == nil || c == nil {
		return c
	}
	shown := *c
	shown.Input, shown.Output = m.of("case", c.Workflow, c.Input), m.of("case", c.Workflow, c.Output)
	shown.Options, shown.Failure = m.of("case", c.Workflow, c.Options), m.failure("case", c.Workflow, c.Failure)
	shown.Key, shown.Labels = m.text("key", c.Workflow, c.Key), maps.Clone(c.Labels)
	for name, value := range c.Labels {
		shown.Labels[name] = m.text("label", name, value)
	}
	return &shown
}

// Item is what is shown of a work item.
func (m Mask) Item(it *workitem.Item) *workitem.Item {
	if m == nil || it == nil {
		return it
	}
	shown := *it
	shown.Input, shown.Output = m.of("item", it.Task, it.Input), m.of("item", it.Task, it.Output)
	shown.Failure = m.failure("item", it.Task, it.Failure)
	return &shown
}

// Row is [Mask.Item] for a row of a list.
func (m Mask) Row(it *store.ItemRow) *store.ItemRow {
	return &store.ItemRow{Item: m.Item(it.Item), Root: it.Root, Workflow: it.Workflow}
}

// Job is what is shown of a job.
func (m Mask) Job(j *state.Job) *state.Job {
	if m == nil || j == nil {
		return j
	}
	shown := *j
	shown.Input, shown.Failure = m.of("job", j.Name, j.Input), m.failure("job", j.Name, j.Failure)
	return &shown
}

// Step is what is shown of a step.
func (m Mask) Step(s *workitem.Step) *workitem.Step {
	shown := *s
	if s.Kind == workitem.StepToken {
		shown.Result = nil
	}
	shown.Input, shown.Result = m.of("step", s.Name, shown.Input), m.of("step", s.Name, shown.Result)
	shown.Failure = m.failure("step", s.Name, s.Failure)
	return &shown
}

// Message is what is shown of an event.
func (m Mask) Message(e *state.Message) *state.Message {
	if m == nil || e == nil {
		return e
	}
	shown := *e
	shown.Value = m.of("event", e.Name, e.Value)
	return &shown
}

// Incident is what is shown of an incident.
func (m Mask) Incident(i *store.Incident) *store.Incident {
	shown := *i
	shown.Failure = m.failure("item", i.Task, i.Failure)
	return &shown
}

// Answer is what is shown of what a case waits for.
func (m Mask) Answer(a *why.Answer) *why.Answer {
	if m == nil {
		return a
	}
	shown := *a
	shown.Failure, shown.Waits = m.failure("case", a.Workflow, a.Failure), slices.Clone(a.Waits)
	for i := range shown.Waits {
		w := &shown.Waits[i]
		w.Failure = m.failure("item", w.Task, w.Failure)
	}
	return &shown
}

// Here is what a process shows of the waits of cases.
func (m Mask) Here(h why.Here) why.Here {
	if m != nil {
		h.Shown = m.text
	}
	return h
}

// Limits is what is shown of limits: their keys may name customers.
func (m Mask) Limits(all []workflow.LimitInfo) []workflow.LimitInfo {
	if m == nil {
		return all
	}
	shown := slices.Clone(all)
	for i := range shown {
		l := &shown[i]
		l.Set = slices.Clone(l.Set)
		for k := range l.Set {
			l.Set[k].Key = m.text("limit", l.Limit.Name, l.Set[k].Key)
		}
		l.Holders = slices.Clone(l.Holders)
		for k := range l.Holders {
			l.Holders[k].Key = m.text("limit", l.Limit.Name, l.Holders[k].Key)
		}
	}
	return shown
}

// Change is what is shown of a change of the journal. Results that name neither their task nor their step are shown under no name.
func (m Mask) Change(c state.Change) state.Change {
	if s, ok := c.(*state.StepOpened); ok {
		return &state.StepOpened{Step: m.Step(s.Step)}
	}
	if m == nil {
		return c
	}
	switch c := c.(type) {
	case *state.CaseOpened:
		return &state.CaseOpened{Case: m.Case(c.Case)}
	case *state.CaseEnded:
		shown := *c
		shown.Output, shown.Failure = m.of("case", "", c.Output), m.failure("case", "", c.Failure)
		return &shown
	case *state.ItemOpened:
		return &state.ItemOpened{Item: m.Item(c.Item)}
	case *state.ItemMoved:
		shown := *c
		shown.Output, shown.Failure = m.of("item", "", c.Output), m.failure("item", "", c.Failure)
		return &shown
	case *state.JobOpened:
		return &state.JobOpened{Job: m.Job(c.Job)}
	case *state.JobMoved:
		shown := *c
		shown.Failure = m.failure("job", "", c.Failure)
		return &shown
	case *state.StepMoved:
		shown := *c
		shown.Result, shown.Failure = m.of("step", "", c.Result), m.failure("step", "", c.Failure)
		return &shown
	case *state.MessageSent:
		return &state.MessageSent{Message: m.Message(c.Message)}
	}
	return c
}
