package store

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/tasq-dev/tasq/workitem"
)

// FailureGroup counts the work items of one task that failed for good with the same code.
type FailureGroup struct {
	Workflow string
	Task     string
	Code     string
	N        int
	First    time.Time   // end of the one that failed first
	Last     time.Time   // end of the one that failed last
	Item     workitem.ID // the one that failed last
}

// FailureFilter selects failures; a zero field selects all.
type FailureFilter struct {
	Workflow string
	Task     string
	Code     string
	Since    time.Time // of items created at or after
	Before   time.Time // of items created before
	Max      int       // how many failed items are examined at most, newest first; 0 is MaxFailures
}

// MaxFailures is how many failed items Failures examines by default.
const MaxFailures = 100_000

// Failures groups the work items that failed for good (that no later attempt has replaced) by workflow, task and code, the largest group
// first. It reads each failed item of the filter; all is false if there were more than it may read.
func Failures(ctx context.Context, v Viewer, f FailureFilter) (groups []FailureGroup, all bool, err error) {
	most := f.Max
	if most <= 0 {
		most = MaxFailures
	}
	type key struct{ workflow, task, code string }
	at := make(map[key]int)
	seen := 0
	// One more than are examined, which shows whether there are more.
	items := ItemFilter{Page: Page{Desc: true, Limit: most + 1}, Workflow: f.Workflow, Task: f.Task, Since: f.Since, Before: f.Before,
		States: []workitem.State{workitem.Failed}}
	if f.Code != "" {
		items.Code = &f.Code
	}
	for it, err := range AllItems(ctx, v, items) {
		if err != nil {
			return nil, false, err
		}
		if seen++; seen > most {
			break
		}
		// A failed attempt that another one follows is not the failure of the work.
		if !it.Successor.IsZero() || it.Failure == nil {
			continue
		}
		k := key{it.Workflow, it.Task, it.Failure.Code}
		i, known := at[k]
		if !known {
			i = len(groups)
			at[k] = i
			groups = append(groups, FailureGroup{Workflow: k.workflow, Task: k.task, Code: k.code, First: it.Ended, Last: it.Ended, Item: it.ID})
		}
		groups[i].add(it)
	}
	// Groups of the same size have a fixed order, so that a page that is read again does not change.
	slices.SortStableFunc(groups, func(a, b FailureGroup) int {
		return cmp.Or(cmp.Compare(b.N, a.N), cmp.Compare(a.Workflow, b.Workflow), cmp.Compare(a.Task, b.Task), cmp.Compare(a.Code, b.Code))
	})
	return groups, seen <= most, nil
}

func (g *FailureGroup) add(it *ItemRow) {
	g.N++
	if it.Ended.Before(g.First) {
		g.First = it.Ended
	}
	if it.Ended.After(g.Last) {
		g.Last, g.Item = it.Ended, it.ID
	}
}

// FailuresBy has, for the name of a part, what [MergeFailures] groups by to group by that part alone.
var FailuresBy = map[string]func(FailureGroup) FailureGroup{
	"code":     func(g FailureGroup) FailureGroup { return FailureGroup{Code: g.Code} },
	"task":     func(g FailureGroup) FailureGroup { return FailureGroup{Workflow: g.Workflow, Task: g.Task} },
	"workflow": func(g FailureGroup) FailureGroup { return FailureGroup{Workflow: g.Workflow} },
}

// MergeFailures merges groups for which by returns the same group, and sorts them, the largest first.
func MergeFailures(groups []FailureGroup, by func(FailureGroup) FailureGroup) []FailureGroup {
	type key struct{ workflow, task, code string }
	at := make(map[key]int)
	var merged []FailureGroup
	for _, g := range groups {
		named := by(g)
		k := key{named.Workflow, named.Task, named.Code}
		i, known := at[k]
		if !known {
			at[k] = len(merged)
			g.Workflow, g.Task, g.Code = k.workflow, k.task, k.code
			merged = append(merged, g)
			continue
		}
		m := &merged[i]
		m.N += g.N
		if g.First.Before(m.First) {
			m.First = g.First
		}
		if g.Last.After(m.Last) {
			m.Last, m.Item = g.Last, g.Item
		}
	}
	slices.SortStableFunc(merged, func(a, b FailureGroup) int { return cmp.Compare(b.N, a.N) })
	return merged
}
