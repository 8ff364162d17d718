package sqlite

import (
	"database/sql/driver"
	"fmt"
	"strings"

	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// A table of the projection: columns that are settled when a row is made, and columns that change. Every reader and
// writer of a table names its columns in this order.
type table struct {
	name    string
	settled []string
	changes []string
}

var (
	casesTable = table{"cases",
		[]string{"id", "root", "parent", "parent_task", "generation", "number", "workflow", "version", "fingerprint",
			"created", "input", "caller", "options", "priority", "predecessor"},
		[]string{"state", "begun", "marking", "tasks", "output", "failure", "ended", "keep_until", "last_seq"}}
	itemsTable = table{"work_items",
		[]string{"id", "case_id", "task", "generation", "number", "attempt", "predecessor", "created", "due", "input",
			"queue",
			"priority"},
		[]string{"state", "successor", "output", "failure", "actor", "started", "ended"}}
	jobsTable = table{"jobs",
		[]string{"id", "case_id", "root", "task", "generation", "item", "kind", "name", "queue", "priority", "input",
			"detached", "created"},
		[]string{"state", "due", "attempt", "crashes", "fence", "owner", "lease", "failure", "ended"}}
	stepsTable = table{"steps",
		[]string{"id", "owner", "job", "item", "case_id", "name", "kind", "target", "topic", "input", "run", "child",
			"copied", "created"},
		[]string{"state", "attempt", "due", "result", "failure", "ended"}}
	messagesTable = table{"messages",
		[]string{"id", "case_id", "name", "topic", "value", "actor", "sent"},
		[]string{"step", "taken"}}

	projection = []table{casesTable, itemsTable, jobsTable, stepsTable, messagesTable}
)

func (t table) columns() []string { return append(append([]string{}, t.settled...), t.changes...) }

// list names the columns, each with a prefix such as "i.".
func (t table) list(prefix string) string {
	return prefix + strings.Join(t.columns(), ", "+prefix)
}

// upsert is the statement that writes a row into a table of this form.
func (t table) upsert(into string) string {
	set := make([]string, len(t.changes))
	for i, c := range t.changes {
		set[i] = c + " = excluded." + c
	}
	return fmt.Sprintf("INSERT INTO %s (%s) VALUES (%s) ON CONFLICT (id) DO UPDATE SET %s",
		into, t.list(""), strings.Repeat("?, ", len(t.columns())-1)+"?", strings.Join(set, ", "))
}

// rowWriter writes rows of the projection into tables whose names begin with a prefix.
type rowWriter struct {
	c                  *conn
	cases, items, jobs string
	steps, messages    string
	counts             string
	overlay            bool // the tables are a reader's own, laid over those of the database
	buf                []byte
}

func newRowWriter(c *conn, prefix string) *rowWriter {
	return &rowWriter{
		c:       c,
		overlay: prefix != "",

		cases: casesTable.upsert(prefix + "cases"),
		items: itemsTable.upsert(prefix + "work_items"),
		jobs:  jobsTable.upsert(prefix + "jobs"),
		steps: stepsTable.upsert(prefix + "steps"), messages: messagesTable.upsert(prefix + "messages"),
		counts: "INSERT INTO " + prefix + "counts (what, workflow, task, state, n) VALUES (?, ?, ?, ?, ?) " +
			"ON CONFLICT (what, workflow, task, state) DO UPDATE SET n = n + excluded.n",
	}
}

func (w *rowWriter) writeCase(c *state.Case) error {
	w.buf = state.AppendMarking(w.buf[:0], c.Net, c.Marking)
	marking := string(w.buf)
	w.buf = state.AppendTasks(w.buf[:0], c.Net, c.Tasks)
	return w.c.run(w.cases,
		textOf(c.ID), textOf(c.Root), textOf(c.Parent), c.ParentTask, int64(c.Generation), int64(c.Number), c.Workflow,
		c.Version, c.Fingerprint, state.Micros(c.Created), jsonOf(c.Input), textOf(c.Caller), jsonOf(c.Options),
		int64(c.Priority), textOf(c.Predecessor),
		c.State.String(), boolOf(c.Begun), marking, string(w.buf), jsonOf(c.Output), failureOf(c.Failure),
		timeOf(c.Ended), timeOf(c.KeepUntil),
		c.LastSeq)
}

func (w *rowWriter) writeItem(it *workitem.Item) error {
	return w.c.run(w.items,
		textOf(it.ID), textOf(it.Case), it.Task, int64(it.Generation), int64(it.Number), int64(it.Attempt),
		textOf(it.Predecessor), state.Micros(it.Created), timeOf(it.Due), jsonOf(it.Input), it.Queue,
		int64(it.Priority),
		it.State.String(), textOf(it.Successor), jsonOf(it.Output), failureOf(it.Failure), it.By, timeOf(it.Started),
		timeOf(it.Ended))
}

func (w *rowWriter) writeJob(j *state.Job) error {
	return w.c.run(w.jobs,
		textOf(j.ID), textOf(j.Case), textOf(j.Root), j.Task, int64(j.Generation), textOf(j.Item), j.Kind, j.Name,
		j.Queue,
		int64(j.Priority), jsonOf(j.Input), boolOf(j.Detached), state.Micros(j.Created),
		j.State.String(), state.Micros(j.Due), int64(j.Attempt), int64(j.Crashes), j.Fence, j.Owner, timeOf(j.Lease),
		failureOf(j.Failure), timeOf(j.Ended))
}

func (w *rowWriter) writeStep(s *workitem.Step) error {
	return w.c.run(w.steps,
		textOf(s.ID), textOf(workitem.ID(s.Owner())), textOf(s.Job), textOf(s.Item), textOf(s.Case), s.Name, string(s.Kind),
		s.Target, boolOf(s.Topic), jsonOf(s.Input), int64(s.Run), textOf(s.Child), boolOf(s.Copied),
		state.Micros(s.Created),
		s.State.String(), int64(s.Attempt), timeOf(s.Due), jsonOf(s.Result), failureOf(s.Failure), timeOf(s.Ended))
}

func (w *rowWriter) writeMessage(m *state.Message) error {
	return w.c.run(w.messages,
		textOf(m.ID), textOf(m.Case), m.Name, boolOf(m.Topic), jsonOf(m.Value), m.By, state.Micros(m.Sent),
		textOf(m.Step), timeOf(m.Taken))
}

func (w *rowWriter) writeCount(kind store.Count, n int64) error {
	return w.c.run(w.counts, kind.What, kind.Workflow, kind.Task, kind.State, n)
}

// readCase reads a row of cases; items, jobs and children are not part of it.
func readCase(r *row, netOf func(fingerprint string) (*net.Net, error)) (*state.Case, error) {
	c := &state.Case{
		ID: id[workitem.CaseID](r), Root: id[workitem.CaseID](r), Parent: id[workitem.CaseID](r), ParentTask: r.text(),
		Generation: int(r.number()), Number: int(r.number()), Workflow: r.text(), Version: r.text(),
		Fingerprint: r.text(),
		Created:     r.time(), Input: r.json(), Caller: id[workitem.JobID](r), Options: r.json(),
		Priority: int(r.number()), Predecessor: id[workitem.CaseID](r),

		State: parsed(r, "state of a case", state.ParseCaseState), Begun: r.number() != 0,
	}
	marking, tasks := r.json(), r.json()
	c.Output, c.Failure, c.Ended, c.KeepUntil, c.LastSeq = r.json(), r.failure(), r.time(), r.time(), r.number()
	if r.err != nil {
		return nil, r.err
	}
	var err error
	if c.Net, err = netOf(c.Fingerprint); err != nil {
		return nil, fmt.Errorf("case %s: %w", c.ID, err)
	}
	if c.Marking, err = state.DecodeMarking(marking, c.Net); err != nil {
		return nil, fmt.Errorf("case %s: %w", c.ID, err)
	}
	if c.Tasks, err = state.DecodeTasks(tasks, c.Net); err != nil {
		return nil, fmt.Errorf("case %s: %w", c.ID, err)
	}
	return c, nil
}

func readItem(r *row) (*workitem.Item, error) {
	it := &workitem.Item{
		ID: id[workitem.ID](r), Case: id[workitem.CaseID](r), Task: r.text(), Generation: int(r.number()),
		Number: int(r.number()), Attempt: int(r.number()), Predecessor: id[workitem.ID](r), Created: r.time(),
		Due:   r.time(),
		Input: r.json(), Queue: r.text(), Priority: int(r.number()),
		State: parsed(r, "state of a work item", workitem.ParseState), Successor: id[workitem.ID](r), Output: r.json(),
		Failure: r.failure(), By: r.text(), Started: r.time(), Ended: r.time(),
	}
	return it, r.err
}

func readJob(r *row) (*state.Job, error) {
	j := &state.Job{
		ID: id[workitem.JobID](r), Case: id[workitem.CaseID](r), Root: id[workitem.CaseID](r), Task: r.text(),
		Generation: int(r.number()), Item: id[workitem.ID](r), Kind: r.text(), Name: r.text(), Queue: r.text(),
		Priority: int(r.number()), Input: r.json(), Detached: r.number() != 0, Created: r.time(),
		State: parsed(r, "state of a job", state.ParseJobState), Due: r.time(), Attempt: int(r.number()),
		Crashes: int(r.number()), Fence: r.number(), Owner: r.text(), Lease: r.time(), Failure: r.failure(),
		Ended: r.time(),
	}
	return j, r.err
}

func readStep(r *row) (*workitem.Step, error) {
	step := id[workitem.StepID](r)
	r.text() // the owner, which is the item or the job
	s := &workitem.Step{
		ID: step, Job: id[workitem.JobID](r), Item: id[workitem.ID](r), Case: id[workitem.CaseID](r), Name: r.text(),
		Kind: workitem.StepKind(r.text()), Target: r.text(), Topic: r.number() != 0, Input: r.json(), Run: int(r.number()),
		Child: id[workitem.CaseID](r), Copied: r.number() != 0, Created: r.time(),
		State: parsed(r, "state of a step", workitem.ParseStepState), Attempt: int(r.number()), Due: r.time(),
		Result: r.json(), Failure: r.failure(), Ended: r.time(),
	}
	return s, r.err
}

func readMessage(r *row) (*state.Message, error) {
	m := &state.Message{
		ID: id[workitem.MessageID](r), Case: id[workitem.CaseID](r), Name: r.text(), Topic: r.number() != 0, Value: r.json(),
		By: r.text(), Sent: r.time(), Step: id[workitem.StepID](r), Taken: r.time(),
	}
	return m, r.err
}

// args makes a list of values to bind.
func args(values ...driver.Value) []driver.Value { return values }
