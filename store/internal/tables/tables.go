package tables

import (
	"slices"
	"strings"
)

// Table describes a table of the projection: columns that never change after the INSERT, and columns that do. All
// readers and writers of a table use its columns in this order.
type Table struct {
	Name    string
	Settled []string
	Changes []string
}

// The tables, with the columns that are read. A store may have additional ones.
var (
	Cases = Table{"cases",
		[]string{"id", "root", "parent", "parent_task", "generation", "number", "workflow", "version", "fingerprint",
			"created", "input", "caller", "options", "priority", "predecessor", "business_key", "labels"},
		[]string{"key_unique", "state", "begun", "marking", "tasks", "output", "failure", "ended", "keep_until", "last_seq", "suspended"}}
	Items = Table{"work_items",
		[]string{"id", "case_id", "task", "generation", "number", "attempt", "predecessor", "created", "due", "input",
			"queue",
			"priority"},
		[]string{"state", "successor", "output", "failure", "actor", "started", "ended", "retry"}}
	Jobs = Table{"jobs",
		[]string{"id", "case_id", "root", "task", "generation", "item", "kind", "name", "queue", "priority", "input",
			"detached", "created"},
		[]string{"state", "due", "attempt", "crashes", "fence", "owner", "lease", "failure", "ended"}}
	Steps = Table{"steps",
		[]string{"id", "owner", "job", "item", "case_id", "name", "kind", "target", "topic", "input", "run", "child",
			"copied", "created"},
		[]string{"state", "attempt", "due", "result", "failure", "ended"}}
	Messages = Table{"messages",
		[]string{"id", "case_id", "name", "topic", "value", "actor", "sent"},
		[]string{"step", "taken"}}

	All = []Table{Cases, Items, Jobs, Steps, Messages}
)

// Columns returns the columns in order.
func (t Table) Columns() []string { return slices.Concat(t.Settled, t.Changes) }

// List returns the columns as SQL, each with a prefix such as "i.".
func (t Table) List(prefix string) string {
	return prefix + strings.Join(t.Columns(), ", "+prefix)
}
