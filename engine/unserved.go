package engine

import (
	"cmp"
	"context"
	"slices"

	"github.com/tasq-dev/tasq/store"
)

// Unserved are the live cases of a definition that the engine was not opened with. Nothing of them happens here: their
// jobs and timers are left alone, and actions on their work items are refused with a [*NotLoadedError].
type Unserved struct {
	Workflow    string
	Version     string
	Fingerprint string
	Cases       int64            // child cases among them
	Items       map[string]int64 // the live work items by task
}

// Unserved lists the definitions with live cases that the engine was not opened with, by workflow and version. Open logs
// each of them, at level WARN. The reason is most often a new version of a workflow, without the old one beside it.
func (e *Engine) Unserved(ctx context.Context) ([]Unserved, error) {
	found := make(map[string]*Unserved)
	err := e.store.View(ctx, func(r store.Reader) error {
		defs, err := r.Definitions(ctx)
		if err != nil {
			return err
		}
		for _, d := range defs {
			if e.definitions.Definition(d.Fingerprint) == nil {
				found[d.Fingerprint] = &Unserved{Workflow: d.Name, Version: d.Version, Fingerprint: d.Fingerprint, Items: make(map[string]int64)}
			}
		}
		if len(found) == 0 {
			return nil
		}
		return countUnserved(ctx, r, found)
	})
	list := make([]Unserved, 0, len(found))
	for _, u := range found {
		if u.Cases > 0 {
			list = append(list, *u)
		}
	}
	slices.SortFunc(list, func(a, b Unserved) int {
		return cmp.Or(cmp.Compare(a.Workflow, b.Workflow), cmp.Compare(a.Version, b.Version), cmp.Compare(a.Fingerprint, b.Fingerprint))
	})
	return list, err
}

// countUnserved counts the live cases of definitions, and their items.
func countUnserved(ctx context.Context, r store.Reader, found map[string]*Unserved) error {
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

// reportUnserved logs what this engine does not serve.
func (e *Engine) reportUnserved(ctx context.Context) error {
	list, err := e.Unserved(ctx)
	for _, u := range list {
		e.log.Warn("live cases of a definition that the engine was not opened with: nothing of them happens here; open the engine "+
			"with this version too, until they have ended", "workflow", u.Workflow, "version", u.Version, "cases", u.Cases, "items", u.Items)
	}
	return err
}
