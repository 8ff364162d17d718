package sqlite

import (
	"database/sql/driver"
	"fmt"
	"strings"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/internal/tables"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// upsert returns the statement that writes a row of a table.
//
// A row has columns that never change (they are not in t.Changes), such as the input of an item. They are bound for the
// INSERT and not written by the UPDATE. ON CONFLICT is used instead of INSERT OR REPLACE, which deletes the row with
// all its index entries, and whose INSERT would add the labels of a case a second time.
func upsert(t tables.Table, into string) string {
	set := make([]string, len(t.Changes))
	for i, c := range t.Changes {
		set[i] = c + " = excluded." + c
	}
	return fmt.Sprintf("INSERT INTO %s (%s) VALUES (%s) ON CONFLICT (id) DO UPDATE SET %s",
		into, t.List(""), strings.Repeat("?, ", len(t.Columns())-1)+"?", strings.Join(set, ", "))
}

// rowWriter writes rows of the projection to tables whose names begin with a prefix.
type rowWriter struct {
	c                  *conn
	cases, items, jobs string
	steps, messages    string
	counts, ended      string
	overlay            bool // the tables are the temporary ones of a reader
	buf                []byte
}

// The texts are made once, since the connection finds its prepared statements by them.
// The temporary tables of a reader have the same columns, so both kinds differ only in the prefix.
func newRowWriter(c *conn, prefix string) *rowWriter {
	return &rowWriter{
		c:       c,
		overlay: prefix != "",

		cases: upsert(tables.Cases, prefix+"cases"),
		items: upsert(tables.Items, prefix+"work_items"),
		jobs:  upsert(tables.Jobs, prefix+"jobs"),
		steps: upsert(tables.Steps, prefix+"steps"), messages: upsert(tables.Messages, prefix+"messages"),
		counts: "INSERT INTO " + prefix + "counts (what, workflow, task, state, n) VALUES (?, ?, ?, ?, ?) " +
			"ON CONFLICT (what, workflow, task, state) DO UPDATE SET n = n + excluded.n",
		ended: "INSERT INTO " + prefix + "ended (hour, workflow, task, state, took, n) VALUES (?, ?, ?, ?, ?, ?) " +
			"ON CONFLICT (hour, workflow, task, state, took) DO UPDATE SET n = n + excluded.n",
	}
}

// The values are in the order of tables.Cases.Columns, on which upsert relies: first those that never change, then
// those that do. The same holds for the other kinds.
func (w *rowWriter) writeCase(c *state.Case) error {
	w.buf = state.AppendMarking(w.buf[:0], c.Net, c.Marking)
	// A copy, since the buffer is used again for the tasks.
	marking := string(w.buf)
	w.buf = state.AppendTasks(w.buf[:0], c.Net, c.Tasks)
	return w.c.run(w.cases,
		textOf(c.ID), textOf(c.Root), textOf(c.Parent), c.ParentTask, int64(c.Generation), int64(c.Number), c.Workflow,
		c.Version, c.Fingerprint, state.Micros(c.Created), jsonOf(c.Input), textOf(c.Caller), jsonOf(c.Options),
		int64(c.Priority), textOf(c.Predecessor), nullable(c.Key), labelsOf(c.Labels), boolOf(c.Unique),
		c.State.String(), boolOf(c.Begun), marking, string(w.buf), jsonOf(c.Output), failureOf(c.Failure),
		timeOf(c.Ended), timeOf(c.KeepUntil),
		c.LastSeq, suspensionOf(c.Suspended))
}

func (w *rowWriter) writeItem(it *workitem.Item) error {
	return w.c.run(w.items,
		textOf(it.ID), textOf(it.Case), it.Task, int64(it.Generation), int64(it.Number), int64(it.Attempt),
		textOf(it.Predecessor), state.Micros(it.Created), timeOf(it.Due), jsonOf(it.Input), it.Queue,
		int64(it.Priority),
		it.State.String(), textOf(it.Successor), jsonOf(it.Output), failureOf(it.Failure), it.By, timeOf(it.Started),
		timeOf(it.Ended), jsonOf(it.Retry))
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

// The number is a difference. It is added to that of the row, which is inserted with the first one of its kind.
func (w *rowWriter) writeCount(kind store.Count, n int64) error {
	return w.c.run(w.counts, kind.What, kind.Workflow, kind.Task, kind.State, n)
}

// writeEnded adds to a count of ended items or cases. A count of zero belongs to removed cases, and is deleted.
func (w *rowWriter) writeEnded(kind store.Ended, n int64) error {
	hour, state := tables.Hour(kind.Hour), kind.State.String()
	err := w.c.run(w.ended, hour, kind.Workflow, kind.Task, state, int64(kind.Took), n)
	// The rows of an overlay are differences, to which those of the tables are added: a row that is 0 or negative is
	// as needed as another.
	if n > 0 || w.overlay || err != nil {
		return err
	}
	return w.c.run("DELETE FROM ended WHERE hour = ? AND workflow = ? AND task = ? AND state = ? AND took = ? AND n = 0",
		hour, kind.Workflow, kind.Task, state, int64(kind.Took))
}

// Nil, and so NULL, is a case that is not suspended: the filter for suspended cases tests the column alone.
func suspensionOf(s *state.Suspension) driver.Value {
	if s == nil {
		return nil
	}
	return string(state.AppendSuspension(nil, s))
}

// The text has the labels in the order of their names, so equal labels are equal texts.
func labelsOf(labels map[string]string) driver.Value {
	if len(labels) == 0 {
		return nil
	}
	return string(state.AppendLabels(nil, labels))
}

// args returns values as a list to bind.
func args(values ...driver.Value) []driver.Value { return values }
