package cli

import (
	"context"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// namer formats ids and labels for tables. It keeps the first error, and returns empty texts after it.
type namer struct {
	ctx   context.Context
	r     store.Reader
	whole bool                       // ids are not shortened
	cases map[workitem.CaseID]string // short ids
	paths map[workitem.CaseID]string // of cases, with a trailing slash
	near  map[string]*neighbours     // by the kind of ids
	err   error
}

// namer returns a namer for the output. In CSV, which is kept and joined with other files, ids are not shortened: the short form of
// an id can differ between two lists, and be ambiguous later.
func (a *app) namer(ctx context.Context, r store.Reader) namer {
	return namer{ctx: ctx, r: r, whole: a.output == "csv"}
}

// maxNames bounds the names in memory: a list may have as many rows as the database.
const maxNames = 10_000

// keep adds a name to a map.
func keep(names *map[workitem.CaseID]string, id workitem.CaseID, name string) {
	if *names == nil || len(*names) >= maxNames {
		*names = make(map[workitem.CaseID]string)
	}
	(*names)[id] = name
}

func (n *namer) item(id workitem.ID) string { return short(n, itemIDs, id) }

func (n *namer) job(id workitem.JobID) string { return short(n, jobIDs, id) }

func (n *namer) event(id workitem.MessageID) string { return short(n, eventIDs, id) }

// of returns the short id of a case.
func (n *namer) of(id workitem.CaseID) string {
	text, known := n.cases[id]
	if !known {
		text = short(n, caseIDs, id)
		keep(&n.cases, id, text)
	}
	return text
}

func short[T any](n *namer, kind idKind, id workitem.Key[T]) string {
	if n.err != nil || id.IsZero() {
		return ""
	}
	if n.whole {
		return id.String()
	}
	near := n.near[kind.what]
	if near == nil {
		if n.near == nil {
			n.near = make(map[string]*neighbours)
		}
		near = new(neighbours)
		n.near[kind.what] = near
	}
	text, err := near.short(n.ctx, n.r, kind, id.String())
	n.err = err
	return text
}

// path returns the label of an item after its workflow, "article/draft.1.1", or after the workflow of the root case and
// the labels of the child cases above it: "order/ship.1.2/pick.1.1".
func (n *namer) path(it *store.ItemRow) string {
	if it.Root == it.Case {
		return it.Workflow + "/" + it.Label()
	}
	return n.prefix(it.Case) + it.Label()
}

func (n *namer) prefix(id workitem.CaseID) string {
	text, known := n.paths[id]
	if known || n.err != nil {
		return text
	}
	var found []*state.Case
	found, n.err = n.r.Cases(n.ctx, store.CaseFilter{ID: id})
	switch {
	case len(found) == 0:
	case found[0].Parent.IsZero():
		text = found[0].Workflow + "/"
	default:
		text = n.prefix(found[0].Parent) + found[0].Label() + "/"
	}
	keep(&n.paths, id, text)
	return text
}
