// Package mask hides payloads from users who may not see them, before they are used in a page, a response or a stream.
package mask

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/tasq-dev/tasq/engine/why"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// Mask returns the visible form of a payload. kind is "case", "item", "job", "step" or "event", and name is that of the
// workflow, task, function, step or event. A business key has the kind "key" and the name of its workflow; a label has
// the kind "label" and its own name; the key of a limit has the kind "limit" and the name of the limit. All of these
// are JSON texts. A nil Mask shows everything. Tokens are never shown.
type Mask func(kind, name string, raw json.RawMessage) json.RawMessage

func (m Mask) of(kind, name string, raw json.RawMessage) json.RawMessage {
	if m == nil || len(raw) == 0 {
		return raw
	}
	return m(kind, name, raw)
}

// text returns the visible form of a text; if the mask returns another type of value, that is formatted as JSON.
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

// Payload returns the visible form of a payload that is not part of a record.
func (m Mask) Payload(kind, name string, raw json.RawMessage) json.RawMessage {
	return m.of(kind, name, raw)
}

// Case returns the visible form of a case.
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

// Item returns the visible form of a work item.
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

// Job returns the visible form of a job.
func (m Mask) Job(j *state.Job) *state.Job {
	if m == nil || j == nil {
		return j
	}
	shown := *j
	shown.Input, shown.Failure = m.of("job", j.Name, j.Input), m.failure("job", j.Name, j.Failure)
	return &shown
}

// Step returns the visible form of a step.
func (m Mask) Step(s *workitem.Step) *workitem.Step {
	shown := *s
	if s.Kind == workitem.StepToken {
		shown.Result = nil
	}
	shown.Input, shown.Result = m.of("step", s.Name, shown.Input), m.of("step", s.Name, shown.Result)
	shown.Failure = m.failure("step", s.Name, s.Failure)
	return &shown
}

// Message returns the visible form of an event.
func (m Mask) Message(e *state.Message) *state.Message {
	if m == nil || e == nil {
		return e
	}
	shown := *e
	shown.Value = m.of("event", e.Name, e.Value)
	return &shown
}

// Incident returns the visible form of an incident.
func (m Mask) Incident(i *store.Incident) *store.Incident {
	if i.Definition != nil {
		return i
	}
	shown := *i
	shown.Failure = m.failure("item", i.Task, i.Failure)
	return &shown
}

// Answer returns the visible form of what a case waits for.
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

// Here returns the visible form of the waits of cases in a process.
func (m Mask) Here(h why.Here) why.Here {
	if m != nil {
		h.Shown = m.text
	}
	return h
}

// Limits returns the visible form of limits, since their keys may be names of customers.
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

// PausedKeys returns the visible form of the paused keys of a queue.
func (m Mask) PausedKeys(queue string, all []workflow.PausedKey) []workflow.PausedKey {
	if m == nil {
		return all
	}
	shown := slices.Clone(all)
	for i := range shown {
		shown[i].Key = m.text("queue", queue, shown[i].Key)
	}
	return shown
}

// Entry returns the visible form of an entry of the journal.
func (m Mask) Entry(e *store.Entry) *store.Entry {
	if m == nil {
		return e
	}
	shown := *e
	shown.Answer, shown.Changes = nil, make([]state.Change, len(e.Changes))
	for i, c := range e.Changes {
		shown.Changes[i] = m.Change(c)
	}
	shown.Setting = m.setting(e.Setting)
	return &shown
}

// setting returns the visible form of the change of a setting, whose keys may be names of customers.
func (m Mask) setting(c *store.SettingChange) *store.SettingChange {
	if c == nil {
		return nil
	}
	shown := *c
	shown.Values = slices.Clone(c.Values)
	kind, name, _ := strings.Cut(c.Setting, "/")
	for i := range shown.Values {
		shown.Values[i].Key = m.text(kind, name, shown.Values[i].Key)
	}
	return &shown
}

// Change returns the visible form of a change of the journal. Results that name neither their task nor their step get
// an empty name.
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
