package tables

import (
	"time"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// Hour returns the number of an hour since 1970, as it is stored.
func Hour(t time.Time) int64 {
	sec := t.Unix()
	if sec%3600 < 0 {
		sec -= 3600
	}
	return sec / 3600
}

// Ended adds the conditions of a filter for counts of ended items and cases.
func (w *Conditions) Ended(f store.RateFilter) {
	w.AddText("workflow = ?", f.Workflow)
	switch { // cases have no task
	case f.Cases:
		w.Plain("task = ''")
	case f.Task != "":
		w.Add("task = ?", f.Task)
	default:
		w.Plain("task <> ''")
	}
	if !f.Since.IsZero() {
		w.Add("hour >= ?", Hour(f.Since))
	}
	if !f.Before.IsZero() {
		w.Add("hour <= ?", Hour(f.Before.Add(-time.Microsecond)))
	}
}

// EndedColumns returns the columns of these counts, and those to group by: with the hour, if the filter asks for it.
func EndedColumns(f store.RateFilter) (columns, by string) {
	if f.Hourly {
		return "workflow, task, state, took, hour * 3600000000", "hour, workflow, task, state, took"
	}
	return "workflow, task, state, took, NULL", "workflow, task, state, took"
}

// ReadEnded reads the columns of such a count, and its number.
func ReadEnded(r *Row) (store.Ended, error) {
	e := store.Ended{Workflow: r.Text(), Task: r.Text(), State: parsed(r, "state", workitem.ParseState), Took: int(r.Number()),
		Hour: r.Time(), N: r.Number()}
	return e, r.Err
}

// CountedItem is the columns of an item by which it is counted.
const CountedItem = "task, state, created, due, started, ended"

// ReadCountedItem reads these columns.
func ReadCountedItem(r *Row) *workitem.Item {
	return &workitem.Item{Task: r.Text(), State: parsed(r, "state", workitem.ParseState), Created: r.Time(), Due: r.Time(), Started: r.Time(), Ended: r.Time()}
}

// CountedCase is the columns of a case by which it is counted.
const CountedCase = "workflow, state, created, ended"

// ReadCountedCase reads these columns.
func ReadCountedCase(r *Row) *state.Case {
	return &state.Case{Workflow: r.Text(), State: parsed(r, "state", state.ParseCaseState), Created: r.Time(), Ended: r.Time()}
}
