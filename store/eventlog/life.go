package eventlog

import (
	"strconv"
	"time"

	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// event is one event of a log.
type event struct {
	id         string
	at         time.Time
	activity   string // task, step or message
	action     string // its action or state, in Tasq's terms
	transition string // the transition of the standard life cycle of XES
	by         string
	caseID     workitem.CaseID
	workflow   string
	item       workitem.ID // zero if the event has no item
	label      string      // of the item
	queue      string
	attempt    int // of the item or step; 0 if there is none
	code       string
}

// transitions maps actions to the standard life cycle of XES. An item that is reset counts as reassigned.
var transitions = map[string]string{
	"schedule": "schedule", "start": "start", "complete": "complete", "fail": "ate_abort", "cancel": "ate_abort", "withdraw": "withdraw", "reset": "reassign",
}

// life converts the entries of a root case to events. It caches the cases, and the active items and steps.
type life struct {
	cases map[workitem.CaseID]caseNames
	items map[workitem.ID]*workitem.Item
	steps map[workitem.StepID]*workitem.Step
}

type caseNames struct {
	workflow string
	net      *net.Net
}

func newLife() *life {
	return &life{make(map[workitem.CaseID]caseNames), make(map[workitem.ID]*workitem.Item), make(map[workitem.StepID]*workitem.Step)}
}

// entry reports the events of an entry.
func (l *life) entry(entry *store.Entry, each func(*event)) {
	for i, c := range entry.Changes {
		e := l.change(c)
		if e == nil {
			continue
		}
		e.id = strconv.FormatInt(entry.Seq, 10) + "." + strconv.Itoa(i+1)
		e.caseID = state.CaseOf(c)
		e.workflow = l.cases[e.caseID].workflow
		if e.at.IsZero() {
			e.at = entry.At
		}
		if e.by == "" {
			e.by = entry.By
		}
		e.transition = transitions[e.action]
		each(e)
	}
}

// change returns the event of a change; nil if it has none.
func (l *life) change(c state.Change) *event {
	switch c := c.(type) {
	case *state.CaseOpened:
		l.cases[c.Case.ID] = caseNames{c.Case.Workflow, c.Case.Net}
	case *state.TaskMoved:
		return l.task(c)
	case *state.ItemOpened:
		it := *c.Item
		it.Input = nil
		l.items[it.ID] = &it
		return of(&it, "schedule", it.Created)
	case *state.ItemMoved:
		return l.item(c)
	case *state.StepOpened:
		return l.stepOpened(c.Step)
	case *state.StepMoved:
		return l.stepMoved(c)
	case *state.MessageSent:
		return &event{activity: c.Message.Name, action: "complete", at: c.Message.Sent, by: c.Message.By}
	}
	return nil
}

// task returns the event of a task without work items. Events of other tasks are those of their items.
func (l *life) task(c *state.TaskMoved) *event {
	names := l.cases[c.Case]
	if names.net == nil || names.net.Task(c.Task).Kind == net.Atomic {
		return nil
	}
	action := map[state.TaskState]string{
		state.TaskStarted: "start", state.TaskCompleted: "complete", state.TaskFailed: "fail", state.TaskCanceled: "cancel",
	}[c.To]
	if action == "" {
		return nil
	}
	return &event{activity: names.net.TaskName(c.Task), action: action}
}

func of(it *workitem.Item, action string, at time.Time) *event {
	return &event{activity: it.Task, action: action, at: at, item: it.ID, label: it.Label(), queue: it.Queue, attempt: it.Attempt}
}

func (l *life) item(c *state.ItemMoved) *event {
	it := l.items[c.Item]
	if it == nil {
		return nil
	}
	action := c.Action.String()
	if c.Action == workitem.Cancel && it.State == workitem.Initialized {
		action = "withdraw"
	}
	it.State = c.To
	if c.To.Final() {
		delete(l.items, c.Item)
	}
	e := of(it, action, c.At)
	e.by = c.By
	if c.Failure != nil {
		e.code = c.Failure.Code
	}
	return e
}

// isActivity reports whether a step is work or a wait, and not only a value that its function needs to run again.
func isActivity(s *workitem.Step) bool {
	switch s.Kind {
	case workitem.StepChoice, workitem.StepValue, workitem.StepToken:
		return false
	}
	return !s.Copied
}

func (l *life) stepOpened(s *workitem.Step) *event {
	if !isActivity(s) {
		return nil
	}
	if !s.State.Final() {
		l.steps[s.ID] = &workitem.Step{Name: s.Name, Item: s.Item}
		return step(s, "start", s.Created, s.Attempt, nil)
	}
	return step(s, stepActions[s.State], s.Ended, s.Attempt, s.Failure)
}

var stepActions = map[workitem.StepState]string{workitem.StepDone: "complete", workitem.StepFailed: "fail", workitem.StepCanceled: "cancel"}

func (l *life) stepMoved(c *state.StepMoved) *event {
	s := l.steps[c.Step]
	if s == nil || !c.To.Final() {
		return nil
	}
	delete(l.steps, c.Step)
	return step(s, stepActions[c.To], c.At, c.Attempt, c.Failure)
}

func step(s *workitem.Step, action string, at time.Time, attempt int, f *workitem.Failure) *event {
	e := &event{activity: s.Name, action: action, at: at, item: s.Item, attempt: attempt}
	if f != nil {
		e.code = f.Code
	}
	return e
}
