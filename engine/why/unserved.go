package why

import (
	"cmp"
	"context"
	"slices"

	"github.com/tasq-dev/tasq/store"
)

// Unserved has the live cases of a definition that an engine was not opened with, and no other engine has. They are not touched: their
// jobs and timers do not run, and actions on their work items fail with [NotLoaded].
type Unserved struct {
	Workflow    string
	Version     string
	Fingerprint string
	Cases       int64            // including child cases
	Items       map[string]int64 // the live work items by task
}

// ReadUnserved returns the definitions with live cases that an engine was not opened with, by workflow and version. The
// engine logs each of them when it is opened, at level WARN. Usually a new version of a workflow was deployed without
// the old one. For a process that only reads, the list has the definitions that no engine has, and is empty if these are not known; see
// [Here.WithFleet].
func ReadUnserved(ctx context.Context, r store.Reader, here Here) ([]Unserved, error) {
	here, err := here.WithFleet(ctx, r)
	if err != nil || here.Unknown() {
		return nil, err
	}
	defs, err := r.Definitions(ctx)
	if err != nil {
		return nil, err
	}
	found := make(map[string]*Unserved)
	for _, d := range defs {
		if missing, _ := here.lacks(d.Fingerprint); missing {
			found[d.Fingerprint] = &Unserved{Workflow: d.Name, Version: d.Version, Fingerprint: d.Fingerprint, Items: make(map[string]int64)}
		}
	}
	if len(found) == 0 {
		return nil, nil
	}
	if err := countUnserved(ctx, r, found); err != nil {
		return nil, err
	}
	var list []Unserved
	for _, u := range found {
		if u.Cases > 0 {
			list = append(list, *u)
		}
	}
	slices.SortFunc(list, func(a, b Unserved) int {
		return cmp.Or(cmp.Compare(a.Workflow, b.Workflow), cmp.Compare(a.Version, b.Version), cmp.Compare(a.Fingerprint, b.Fingerprint))
	})
	return list, nil
}

// countUnserved counts the live cases of definitions, and their items.
func countUnserved(ctx context.Context, r store.Counter, found map[string]*Unserved) error {
	counts, err := r.CountsByDefinition(ctx, true)
	for _, c := range counts {
		switch u := found[c.Fingerprint]; {
		case u == nil:
		case c.Task != "":
			u.Items[c.Task] = c.N
		default:
			u.Cases = c.N
		}
	}
	return err
}
