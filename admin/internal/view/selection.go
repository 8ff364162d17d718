package view

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/tasq-dev/tasq/admin/internal/access"
	"github.com/tasq-dev/tasq/admin/internal/mask"
	"github.com/tasq-dev/tasq/admin/internal/query"
	"github.com/tasq-dev/tasq/engine/bulk"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// maxTargets bounds the targets of one bulk action of the pages.
const maxTargets = 10_000

// selection is the targets of a bulk action: a filter, up to the newest target that the user has seen. What matches
// later is not included.
type selection struct {
	Targets []string
	Until   string
	Back    string
	What    string
	Filter  url.Values // the filter, as of the list
}

// ofCases reports whether the action is on cases; otherwise it is on the items of incidents.
func ofCases(kind workflow.Kind) bool {
	return kind == workflow.KindResume || kind == workflow.KindSuspend || kind == workflow.KindCancel || kind == workflow.KindRedrive
}

// renamed are the parameters of lists that have another name in the form of a bulk action, which has fields of these
// names: the name there by that in the list.
var renamed = map[string]string{"kind": "incident", "payload": "payload-has"}

// inForm returns the name of a list's parameter in the form of a bulk action.
func inForm(name string) string {
	if other := renamed[name]; other != "" {
		return other
	}
	return name
}

// listed returns the filter in a form or an address of a bulk action, with the names that the list has.
func listed(form url.Values, a *action) url.Values {
	own := []string{"kind", "once", "until", "confirm", "done"}
	for _, f := range a.fields {
		own = append(own, f.Name)
	}
	v := url.Values{}
	for name, values := range form {
		if !slices.Contains(own, name) {
			v[name] = values
		}
	}
	for name, other := range renamed {
		if values, found := v[other]; found {
			delete(v, other)
			v[name] = values
		}
	}
	return v
}

// bulkLink returns the address of the form of a bulk action on what a filter of a list selects. A parameter without a
// value stays, since it can have a meaning: the flag "suspended", or the code of failures without one.
func (s *Site) bulkLink(word string, filter url.Values) string {
	v := url.Values{"kind": {word}}
	for name, values := range filter {
		v[inForm(name)] = values
	}
	return s.Prefix + "/bulk?" + v.Encode()
}

// filterOf returns the parameters of a list that select its rows.
func filterOf(form url.Values, names []string) url.Values {
	v := url.Values{}
	for _, name := range names {
		if values, found := form[name]; found {
			v[name] = values
		}
	}
	return v
}

// caseQuery is the filter of the list of cases. Bulk actions on cases read it with the same function, so that they
// select what the list shows.
type caseQuery struct {
	store.CaseFilter
	of     workitem.CaseID
	search store.Search
	names  []string // of the parameters
}

func readCases(q *query.Query) caseQuery {
	c := caseQuery{CaseFilter: q.Cases(), of: q.Case(), search: q.Search()}
	c.names = q.Names()
	return c
}

// page reads one page of the list.
func (c caseQuery) page(ctx context.Context, r store.Reader, p store.Page, m mask.Mask) (_ []*state.Case, err error) {
	if c.Root, c.ID, err = query.Within(ctx, r, c.of); err != nil {
		return nil, err
	}
	c.Page = p
	return store.SearchCases(ctx, store.ViewerOf(r), c.CaseFilter, c.search, m.Case)
}

// choose finds the targets. until is the newest id that is included, "" for all.
func (s *Site) choose(r *http.Request, a *action, until string) (sel *selection, err error) {
	err = s.bounded(r, func(ctx context.Context) error {
		filter := listed(r.Form, a)
		if ofCases(a.kind) {
			sel, err = s.matchingCases(ctx, filter, until)
		} else {
			sel, err = s.matchingIncidents(ctx, a.kind, filter, until)
		}
		return err
	})
	return sel, err
}

func (s *Site) matchingIncidents(ctx context.Context, kind workflow.Kind, filter url.Values, until string) (*selection, error) {
	q := query.Of(filter, s.Backend.Now())
	f, of := q.Incidents(), q.Case()
	q.Only(q.Names()...)
	err := q.Err()
	if err == nil {
		err = s.Backend.View(ctx, func(r store.Reader) (err error) {
			f.Root, err = query.RootOf(ctx, r, of)
			return err
		})
	}
	if err != nil {
		return nil, err
	}
	f.Limit = maxTargets + 1
	sel := &selection{Back: s.listLink("/incidents", filter), What: "incident", Filter: filter}
	for i, err := range store.Incidents(ctx, s.Backend, f) {
		if err != nil {
			return nil, err
		}
		target := ""
		switch {
		case kind == workflow.KindRetryIncident && i.Job.Again():
			target = i.ID.String()
		case kind != workflow.KindRetryIncident && !i.Item.IsZero():
			target = i.Item.String()
		}
		if id := i.ID.String(); target != "" && (until == "" || id <= until) {
			sel.Targets, sel.Until = append(sel.Targets, target), max(sel.Until, id)
		}
	}
	return sel, sel.check()
}

// matchingCases selects root cases, since an action on one includes its child cases, and no bulk actions, which would
// otherwise cancel themselves.
func (s *Site) matchingCases(ctx context.Context, filter url.Values, until string) (*selection, error) {
	q := query.Of(filter, s.Backend.Now())
	c := readCases(q)
	q.Only(c.names...)
	if err := q.Err(); err != nil {
		return nil, err
	}
	c.RootOnly = true
	var m mask.Mask
	if s.Mask != nil {
		m = s.Mask(access.UserOf(ctx))
	}
	sel := &selection{Back: s.listLink("/cases", filter), What: "case", Filter: filter}
	for found, err := range s.allCases(ctx, c, m) {
		if cut := (*store.CutError)(nil); errors.As(err, &cut) {
			return nil, fmt.Errorf("the payloads of only %d cases were searched, and %w", cut.Rows, errSelection)
		}
		if err != nil {
			return nil, err
		}
		id := found.ID.String()
		if len(sel.Targets) > maxTargets || until != "" && id > until {
			break
		}
		if found.Workflow != bulk.Name {
			sel.Targets, sel.Until = append(sel.Targets, id), id
		}
	}
	return sel, sel.check()
}

// allCases lists the cases that a filter selects, page by page, since their payloads may be large.
func (s *Site) allCases(ctx context.Context, c caseQuery, m mask.Mask) iter.Seq2[*state.Case, error] {
	c.search.Spent = new(store.SearchSpent)
	p := store.Page{Limit: store.DefaultLimit}
	return func(yield func(*state.Case, error) bool) {
		for {
			var found []*state.Case
			err := s.Backend.View(ctx, func(r store.Reader) (err error) {
				found, err = c.page(ctx, r, p, m)
				return err
			})
			for _, one := range found {
				if !yield(one, nil) {
					return
				}
				p.After = one.ID.String()
			}
			if err != nil {
				yield(nil, err)
			}
			if err != nil || len(found) < p.Limit {
				return
			}
		}
	}
}

// errSelection is wrapped by errors for selections that are too large.
var errSelection = errors.New("there are more; set a filter that selects less")

func (sel *selection) check() error {
	if len(sel.Targets) > maxTargets {
		return fmt.Errorf("more than %d match, and %w", maxTargets, errSelection)
	}
	return nil
}

// listLink returns the address of a list with a filter.
func (s *Site) listLink(path string, filter url.Values) string {
	return strings.TrimSuffix(s.Prefix+path+"?"+filter.Encode(), "?")
}
