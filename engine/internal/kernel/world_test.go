package kernel_test

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/domain"
	"github.com/tasq-dev/tasq/engine/internal/kernel"
	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// host is what the kernel needs beside a tree: definitions, and ids that count.
type host struct {
	defs    []*workflow.Definition
	control kernel.Control
	ids     uint64

	broken  error            // steps cannot be read
	abandon bool             // callbacks take too long, and are left behind
	steps   []*workitem.Step // all that were ever recorded, as a store keeps them

	suspended map[string]*state.Suspension // workflows
}

func (h *host) Definition(fingerprint string) *workflow.Definition {
	for _, d := range h.defs {
		if d.Fingerprint == fingerprint {
			return d
		}
	}
	return nil
}

func (h *host) Named(name string) *workflow.Definition { return h.Definition(name) }
func (h *host) Call(ctx context.Context, f func(context.Context) error) error {
	if h.abandon {
		return kernel.ErrAbandoned
	}
	return f(ctx)
}
func (h *host) Control() *kernel.Control { return &h.control }
func (h *host) Suspension(workflow string) (*state.Suspension, error) {
	return h.suspended[workflow], nil
}
func (h *host) CachedSteps(workitem.CaseID, workitem.JobID) ([]*workitem.Step, bool) {
	return nil, false
}
func (h *host) KeyHolders(*state.Case) ([]workitem.CaseID, error) { return nil, nil }
func (h *host) KeyStarts(*state.Case, time.Time) ([]store.KeyStart, error) {
	return nil, nil
}
func (h *host) IsLive(workitem.CaseID) (bool, error) { return false, nil }
func (h *host) DB() domain.DB                        { return nil }
func (h *host) NewID(time.Time) workitem.ID          { return h.next() }
func (h *host) IDs() kernel.IDs                      { return h }

func (h *host) NewCaseID(time.Time) workitem.CaseID       { return workitem.CaseID(h.next()) }
func (h *host) NewJobID(time.Time) workitem.JobID         { return workitem.JobID(h.next()) }
func (h *host) NewStepID(time.Time) workitem.StepID       { return workitem.StepID(h.next()) }
func (h *host) NewMessageID(time.Time) workitem.MessageID { return workitem.MessageID(h.next()) }
func (h *host) NewToken(workitem.CaseID) (string, error)  { return "token", nil }

func (h *host) next() (id workitem.ID) {
	h.ids++
	binary.BigEndian.PutUint64(id[8:], h.ids)
	return id
}

// world runs commands on one tree.
type world struct {
	t    *testing.T
	host *host
	tree *state.Tree
	now  time.Time
	log  []string // of callbacks
	seq  int64
	ids  map[workitem.ID]string // the labels of all items, also of those that the tree holds no longer
	jobs bool                   // [world.word] also shows jobs, steps and events
	last []state.Change         // of the latest command

	names map[[16]byte]string // of jobs, steps and events, for [world.jobWord]

	machine *kernel.Machine // of the command before; nil before the first
}

func newWorld(t *testing.T, defs ...*workflow.Definition) *world {
	return &world{t: t, host: &host{defs: defs}, tree: state.NewTree(),
		now: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC), ids: make(map[workitem.ID]string),
		names: make(map[[16]byte]string)}
}

// define compiles a net from flows such as "i>a a>e": what is no task is a condition, i is the start and e the end.
func define(t *testing.T, name, flows string, tasks ...net.Task) *workflow.Definition {
	t.Helper()
	def := &net.Definition{Name: name, Tasks: tasks}
	isTask := func(name string) bool {
		return slices.ContainsFunc(tasks, func(t net.Task) bool { return t.Name == name })
	}
	for _, flow := range strings.Fields(flows) {
		from, to, _ := strings.Cut(flow, ">")
		def.Flows = append(def.Flows, net.Flow{From: from, To: to})
		for _, c := range []string{from, to} {
			if !isTask(c) && !slices.ContainsFunc(def.Conditions, func(known net.Condition) bool { return known.Name == c }) {
				def.Conditions = append(def.Conditions, net.Condition{Name: c, Role: map[string]net.Role{"i": net.Start, "e": net.End}[c]})
			}
		}
	}
	compiled, err := net.Compile(def)
	require.NoError(t, err)
	return &workflow.Definition{Name: name, Fingerprint: name, Net: compiled, Tasks: make([]workflow.Task, len(tasks))}
}

// tasks makes plain tasks of the given names.
func tasks(names string) (list []net.Task) {
	for _, name := range strings.Fields(names) {
		list = append(list, net.Task{Name: name})
	}
	return list
}

// with sets what a task of a definition does.
func with(d *workflow.Definition, task string, spec workflow.Task) *workflow.Definition {
	t, _ := d.Net.TaskByName(task)
	d.Tasks[t] = spec
	return d
}

// command runs one command, and returns what it did in the words of [world.word]. A command that fails did nothing.
func (w *world) command(f func(m *kernel.Machine) error) (string, error) {
	w.t.Helper()
	w.tree.Begin()
	m := kernel.Reuse(w.machine, w.t.Context(), w.host, w.tree, w.now, "ann")
	w.machine = m
	w.host.control = kernel.Control{}
	if err := f(m); err != nil {
		w.tree.Rollback()
		return "", err
	}
	var words []string
	w.last = slices.Clone(m.Changes())
	for _, event := range w.last {
		w.host.record(event)
		if word := w.word(event); word != "" {
			words = append(words, word)
		}
	}
	w.seq++
	w.tree.End(w.seq)
	return strings.Join(words, " "), nil
}

// do runs a command in words: "start", "cancel", "cancel a" for a child case, "ACTION ITEM" with an item such as a.1.1,
// which may be followed by a route "> b c", "claim a.1.1", "settle a.1.1", "fire NAME".
func (w *world) do(text string) (string, error) {
	w.t.Helper()
	text, route, routed := strings.Cut(text, " > ")
	words := strings.Fields(text)
	if words[0] == "start" {
		d := w.host.defs[0]
		id := w.host.NewCaseID(w.now)
		w.tree.Root = id
		return w.command(func(m *kernel.Machine) error {
			return m.Start(&state.Case{ID: id}, d, json.RawMessage(`1`), w.now, nil)
		})
	}
	if text == "cancel" {
		return w.command(func(m *kernel.Machine) error { return m.Cancel(w.tree.Root, &workitem.Failure{Code: "stop"}) })
	}
	it := w.item(words[1])
	var to []string
	if routed {
		to = strings.Fields(route)
	}
	action := map[string]workitem.Action{"begin": workitem.Start, "complete": workitem.Complete, "fail": workitem.Fail,
		"drop": workitem.Cancel, "reset": workitem.Reset}[words[0]]
	payload := json.RawMessage(`1`)
	if action == workitem.Fail || action == workitem.Cancel {
		payload = json.RawMessage(`{"code":"bad","retryable":true}`)
	}
	return w.command(func(m *kernel.Machine) error { return m.Act(it, action, payload, to) })
}

// item finds an item by its label, with the path of its case before it if that is a child case.
func (w *world) item(label string) (id workitem.ID) {
	w.t.Helper()
	for known, its := range w.ids {
		if its == label {
			id = known
		}
	}
	require.False(w.t, id.IsZero(), "there is no item %s", label)
	return id
}

// path names a child case: "a.1.2/", "" for the root.
func (w *world) path(c *state.Case) string {
	if c == nil || c.Parent.IsZero() {
		return ""
	}
	return c.Label() + "/"
}

// word is an event in short: "a+2" for the second enabling of task a, "a*p,q" for a start that consumes from p and q,
// "a!" for a completion, "a-" for a withdrawal, "ax" and "af" for a canceled and a failed task, "a>p" for what it
// produces, "~p" for what a region empties, "a.1.1=started" for an item, "case=completed" for the end of a case, with
// what is left over.
func (w *world) word(event state.Change) string {
	conditions := func(c *state.Case, list []net.ConditionID) string {
		var names []string
		for _, p := range list {
			names = append(names, c.Net.ConditionName(p))
		}
		return strings.Join(names, ",")
	}
	switch e := event.(type) {
	case *state.TaskMoved:
		c := w.tree.Case(e.Case)
		name := w.path(c) + c.Net.TaskName(e.Task)
		switch e.To {
		case state.TaskEnabled:
			return fmt.Sprintf("%s+%d", name, e.Generation)
		case state.TaskStarted:
			return name + "*" + conditions(c, e.Consumed)
		}
		return name + map[state.TaskState]string{state.TaskCompleted: "!", state.TaskDisabled: "-", state.TaskCanceled: "x",
			state.TaskFailed: "f"}[e.To]
	case *state.Produced:
		c := w.tree.Case(e.Case)
		return w.path(c) + c.Net.TaskName(e.Task) + ">" + conditions(c, e.Into)
	case *state.Removed:
		c := w.tree.Case(e.Case)
		return "~" + w.path(c) + c.Net.ConditionName(e.From)
	case *state.ItemOpened:
		w.ids[e.Item.ID] = w.path(w.tree.Case(e.Item.Case)) + e.Item.Label()
		return w.ids[e.Item.ID] + "=" + e.Item.State.String()
	case *state.ItemMoved:
		return w.ids[e.Item] + "=" + e.To.String()
	case *state.CaseEnded:
		c := w.tree.Case(e.Case)
		left := ""
		if len(e.Leftover) > 0 {
			left = "(" + conditions(c, e.Leftover) + ")"
		}
		return w.path(c) + "case=" + e.State.String() + left
	case *state.Noted:
		return "note:" + e.Code
	}
	if w.jobs {
		return w.jobWord(event)
	}
	return ""
}
