package view

import (
	"maps"
	"slices"
	"sync"

	"github.com/tasq-dev/tasq/admin/internal/selection"
	"github.com/tasq-dev/tasq/internal/printable"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// The number of open incidents that a page examines, oldest first: of all, and to find those of a filter. Each costs 2 µs at every
// rendering, and 20 µs at the first one.
const (
	maxGrouped  = 10_000
	maxFiltered = 50_000
)

// openHead is what groups an open incident, with its message on one line.
type openHead struct {
	store.IncidentHead
	pattern string
}

func newHead(h store.IncidentHead) *openHead {
	h.Message = oneLine(h.Message)
	return &openHead{h, pattern(h.Message)}
}

func oneLine(message string) string { return printable.Line(printable.Brief([]byte(message), 200)) }

// heads remembers the heads of open incidents, which do not change, for all pages and users: a page lists the ids of those that are
// open, by an index, and reads only those that are new.
type heads struct {
	mu    sync.Mutex
	known map[workitem.JobID]*openHead
}

// read returns the heads of incidents in the order of their ids.
func (k *heads) read(r *Request, ids []workitem.JobID) ([]*openHead, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	var fresh []workitem.JobID
	for _, id := range ids {
		if k.known[id] == nil {
			fresh = append(fresh, id)
		}
	}
	if len(k.known)+len(fresh) > maxFiltered+maxGrouped {
		k.keep(ids)
	}
	if k.known == nil {
		k.known = make(map[workitem.JobID]*openHead)
	}
	for some := range slices.Chunk(fresh, 1000) {
		found, err := r.R.IncidentHeads(r, some)
		if err != nil {
			return nil, err
		}
		for _, h := range found {
			k.known[h.ID] = newHead(h)
		}
	}
	all := make([]*openHead, 0, len(ids))
	for _, id := range ids {
		if h := k.known[id]; h != nil {
			all = append(all, h)
		}
	}
	return all, nil
}

// keep forgets all others.
func (k *heads) keep(ids []workitem.JobID) {
	open := make(map[workitem.JobID]bool, len(ids))
	for _, id := range ids {
		open[id] = true
	}
	maps.DeleteFunc(k.known, func(id workitem.JobID, _ *openHead) bool { return !open[id] })
}

// openHeads returns the heads of the stored incidents that match. whole is false if more are open than were examined.
func (s *Site) openHeads(r *Request, f store.IncidentFilter) (found []*openHead, whole bool, err error) {
	if f.Kind == state.IncidentDefinition {
		return nil, true, nil
	}
	var ids []workitem.JobID
	if !f.Root.IsZero() || !f.Item.IsZero() || f.ByCase() {
		ids, whole, err = openOf(r, f)
	} else {
		ids, whole, err = r.R.OpenIncidents(r, examined(f))
	}
	if err != nil {
		return nil, false, err
	}
	all, err := s.heads.read(r, ids)
	for _, h := range all {
		if (f.Workflow == "" || f.Workflow == h.Workflow) && f.Selects(&h.IncidentHead) {
			found = append(found, h)
		}
	}
	return found, whole, err
}

// examined is how many open incidents are examined for a filter.
func examined(f store.IncidentFilter) int {
	if f.Workflow != "" || f.Task != nil || f.Kind != "" || f.Code != nil || !f.Before.IsZero() || !f.Since.IsZero() {
		return maxFiltered
	}
	return maxGrouped
}

// openOf lists the open incidents of one case or item, or of the cases with a key or a label.
func openOf(r *Request, f store.IncidentFilter) (ids []workitem.JobID, whole bool, err error) {
	f.Limit = maxGrouped + 1
	for i, err := range store.Incidents(r, store.ViewerOf(r.R), f) {
		if err != nil {
			return nil, false, err
		}
		ids = append(ids, i.ID)
	}
	return ids[:min(len(ids), maxGrouped)], len(ids) <= maxGrouped, nil
}

// incident is an incident that is shown, with its case and its item.
type incident struct {
	*store.Incident
	of   *state.Case
	item *store.ItemRow // nil if it has none
}

// message returns the message of an incident's failure, on one line.
func (i incident) message() string {
	if i.Failure == nil {
		return ""
	}
	return oneLine(i.Failure.Message)
}

// readShown reads the first incidents of each group, at most so many of it, with their cases and items.
func (s *Site) readShown(r *Request, groups []*group, most int, m *selection.Missing) error {
	var ids []workitem.JobID
	for _, g := range groups {
		for _, h := range g.heads[:min(len(g.heads), most)] {
			ids = append(ids, h.ID)
		}
	}
	found, err := store.IncidentsByID(r, r.R, ids)
	if err != nil {
		return err
	}
	cases, items, err := about(r, found)
	if err != nil {
		return err
	}
	byID := make(map[workitem.JobID]*store.Incident, len(found))
	for _, i := range found {
		byID[i.ID] = i
	}
	for _, g := range groups {
		for _, i := range g.missing[:min(len(g.missing), most)] {
			g.shown = append(g.shown, incident{Incident: i, of: &state.Case{Workflow: i.Definition.Workflow}})
		}
		for _, h := range g.heads[:min(len(g.heads), most)] {
			i := byID[h.ID]
			of := cases[i.Case]
			if of == nil {
				of = &state.Case{ID: i.Case}
			}
			m.Knows(of)
			g.shown = append(g.shown, incident{r.Mask.Incident(i), r.Mask.Case(of), items[i.Item]})
		}
	}
	return nil
}

// about reads the cases and the items of incidents.
func about(r *Request, all []*store.Incident) (map[workitem.CaseID]*state.Case, map[workitem.ID]*store.ItemRow, error) {
	cases, items := make(map[workitem.CaseID]*state.Case), make(map[workitem.ID]*store.ItemRow)
	for _, i := range all {
		cases[i.Case] = nil
		if !i.Item.IsZero() {
			items[i.Item] = nil
		}
	}
	if len(cases) > 0 {
		found, err := r.R.Cases(r, store.CaseFilter{IDs: slices.Collect(maps.Keys(cases)), Page: store.Page{Limit: len(cases)}})
		if err != nil {
			return nil, nil, err
		}
		for _, c := range found {
			cases[c.ID] = c
		}
	}
	if len(items) > 0 {
		found, err := r.R.Items(r, store.ItemFilter{IDs: slices.Collect(maps.Keys(items)), Page: store.Page{Limit: len(items)}})
		if err != nil {
			return nil, nil, err
		}
		for _, it := range found {
			items[it.ID] = it
		}
	}
	return cases, items, nil
}
