// Package selection finds the targets of bulk actions by the filters of the lists. Pages and API share it.
package selection

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"net/url"
	"slices"
	"time"

	"github.com/tasq-dev/tasq/admin/internal/access"
	"github.com/tasq-dev/tasq/admin/internal/mask"
	"github.com/tasq-dev/tasq/admin/internal/query"
	"github.com/tasq-dev/tasq/engine/bulk"
	"github.com/tasq-dev/tasq/engine/why"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// Most bounds the targets of one action.
const Most = 10_000

// ErrTooLarge is wrapped by errors for selections that are too large.
var ErrTooLarge = errors.New("there are more; set a filter that selects less")

// Selection is the targets of a bulk action: those that match a filter, up to the newest that the user has seen. What
// matches later is not included.
type Selection struct {
	Targets   []string
	Denied    int              // how many more match, for which the user does not have the right
	Lacking   Lacking          // how many more match, for which no open engine has the definition
	Restarted []bulk.Restarted // those that match a restart and were restarted already
	Until     string           // the newest id of those that match, for Choice.Until
	What      string           // the noun for one: "case", "item" or "incident"
}

// Choice says what to select.
type Choice struct {
	Kind   workflow.Kind   // of the action
	Do     workitem.Action // of an action on work items
	Filter url.Values      // as of the list of cases, items or incidents, with the further parameter [IDs]
	Force  bool            // of a restart: also cases that were restarted already
	Until  string          // the newest id that is included; "" for all
	Now    time.Time
	User   *access.User
	Mask   mask.Mask
	Here   why.Here // which definitions open engines have
}

// IDs is the parameter with the ids of single rows of the list: of cases, of items, or of incidents. It may be repeated.
const IDs = "ids"

// Bulk reports whether there are bulk actions of a kind. do is the action of those on work items.
func Bulk(kind workflow.Kind, do workitem.Action) bool {
	switch kind {
	case workflow.KindAct:
		return slices.Contains(bulk.ItemActions, do)
	case workflow.KindRetry, workflow.KindRetryIncident, workflow.KindSkip, workflow.KindGiveUp, workflow.KindGiveUpIncident:
		return true
	}
	return bulk.OfCases(kind)
}

// OnceLabel is the label of a bulk action with the idempotency key of the request that has started it.
const OnceLabel = "form"

// Begun returns the case of the action with an idempotency key; zero if there is none.
func Begun(ctx context.Context, v store.Viewer, key string) (id workitem.CaseID, err error) {
	err = v.View(ctx, func(r store.Reader) error {
		begun, err := r.Cases(ctx, store.CaseFilter{Workflow: bulk.Name, Labels: map[string]string{OnceLabel: key}, RootOnly: true})
		if len(begun) > 0 {
			id = begun[0].ID
		}
		return err
	})
	return id, err
}

// Find finds the targets.
func Find(ctx context.Context, v store.Viewer, c *Choice) (*Selection, error) {
	filter := maps.Clone(c.Filter)
	ids, chosen := filter[IDs]
	delete(filter, IDs)
	sel := &Selection{What: "incident"}
	matching := c.incidents
	switch {
	case bulk.OfCases(c.Kind):
		sel.What, matching = "case", c.cases
	case c.Kind == workflow.KindAct:
		sel.What, matching = "item", c.items
	}
	if chosen && sel.What != "incident" && len(filter) == 0 {
		matching = func(ctx context.Context, v store.Viewer, _ url.Values) iter.Seq2[match, error] {
			return c.named(ctx, v, ids)
		}
	}
	missing, err := c.missing(ctx, v)
	if err != nil {
		return nil, err
	}
	for one, err := range c.restarted(ctx, v, matching(ctx, v, filter)) {
		if err != nil {
			return nil, err
		}
		lack, err := c.lack(ctx, v, missing, &one)
		if err != nil {
			return nil, err
		}
		switch {
		case c.Until != "" && one.id > c.Until, chosen && !slices.Contains(ids, one.id), one.target == "":
			continue
		case lack != nil:
			sel.Lacking.Add(lack)
		case !c.User.Allowed(string(c.Kind), one.target):
			sel.Denied++
		case !one.restarted.Successor.IsZero():
			sel.Restarted = append(sel.Restarted, one.restarted)
		default:
			sel.Targets = append(sel.Targets, one.target)
		}
		sel.Until = max(sel.Until, one.id)
		if len(sel.Targets) > Most {
			return nil, fmt.Errorf("more than %d match, and %w", Most, ErrTooLarge)
		}
	}
	return sel, nil
}

// missing finds what is missing for the action; nil if nothing is.
func (c *Choice) missing(ctx context.Context, v store.Viewer) (m *Missing, err error) {
	err = v.View(ctx, func(r store.Reader) error {
		m, err = FindMissing(ctx, r, c.Here)
		return err
	})
	return m, err
}

// lack returns what is missing for the action on a row; nil for nothing.
func (c *Choice) lack(ctx context.Context, v store.Viewer, m *Missing, one *match) (l *Lack, err error) {
	if m == nil || one.target == "" {
		return nil, nil
	}
	err = v.View(ctx, func(r store.Reader) error {
		switch {
		case one.incident != nil:
			l, err = m.Incident(ctx, r, one.incident, string(c.Kind))
		case one.item != nil:
			l, err = m.Item(ctx, r, one.item, c.Do)
		default:
			l, err = m.Case(ctx, r, one.of, c.Kind)
		}
		return err
	})
	return l, err
}

// match is a row that matches the filter.
type match struct {
	id       string // of the row
	target   string // "" if the action cannot be executed on it
	incident *store.Incident
	item     *workitem.Item
	of       *state.Case // nil for an incident and an item

	restarted bulk.Restarted // zero unless the action is a restart, and the case was restarted already
}

func failing(err error) iter.Seq2[match, error] {
	return func(yield func(match, error) bool) { yield(match{}, err) }
}

func (c *Choice) incidents(ctx context.Context, v store.Viewer, filter url.Values) iter.Seq2[match, error] {
	q := query.Of(filter, c.Now)
	f, of := q.Incidents(), q.Case()
	q.Only(q.Names()...)
	err := q.Err()
	if err == nil {
		err = v.View(ctx, func(r store.Reader) (err error) {
			f.Root, err = query.RootOf(ctx, r, of)
			return err
		})
	}
	if err != nil {
		return failing(err)
	}
	return func(yield func(match, error) bool) {
		for i, err := range store.Incidents(ctx, v, f) {
			if err != nil {
				yield(match{}, err)
				return
			}
			m := match{id: i.ID.String(), incident: i}
			switch {
			case c.Kind == workflow.KindRetryIncident && i.Again(), c.Kind == workflow.KindGiveUpIncident && !i.Child.IsZero():
				m.target = m.id
			case c.Kind != workflow.KindRetryIncident && c.Kind != workflow.KindGiveUpIncident && !i.Item.IsZero() && (c.Kind != workflow.KindRetry || !i.Again()): // the item itself did not fail
				m.target = i.Item.String()
			}
			if !yield(m, nil) {
				return
			}
		}
	}
}

// cases selects root cases, since an action on one includes its child cases, and no bulk actions, which would
// otherwise cancel themselves.
func (c *Choice) cases(ctx context.Context, v store.Viewer, filter url.Values) iter.Seq2[match, error] {
	q := query.Of(filter, c.Now)
	f := ReadCases(q)
	q.Only(f.Names...)
	if err := q.Err(); err != nil {
		return failing(err)
	}
	f.RootOnly = true
	if c.ended() && len(f.States) == 0 {
		f.States = bulk.Ended
	}
	return func(yield func(match, error) bool) {
		for found, err := range f.all(ctx, v, c.Mask) {
			if cut := (*store.CutError)(nil); errors.As(err, &cut) {
				err = fmt.Errorf("the payloads of only %d cases were searched, and %w", cut.Rows, ErrTooLarge)
			}
			if err != nil {
				yield(match{}, err)
				return
			}
			m := match{id: found.ID.String(), of: found}
			if c.Until != "" && m.id > c.Until {
				return
			}
			if found.Workflow != bulk.Name && (found.State.Final() || !c.ended()) {
				m.target = m.id
			}
			if !yield(m, nil) {
				return
			}
		}
	}
}

// ended reports whether the action is one on cases that have ended.
func (c *Choice) ended() bool {
	return c.Kind == workflow.KindRestart || c.Kind == workflow.KindRemove
}

// named selects the cases or work items with the given ids, without a look at others.
func (c *Choice) named(ctx context.Context, v store.Viewer, ids []string) iter.Seq2[match, error] {
	return func(yield func(match, error) bool) {
		for _, text := range ids {
			var id workitem.CaseID
			if text == "" {
				continue
			}
			if err := id.UnmarshalText([]byte(text)); err != nil || id.IsZero() {
				yield(match{}, &query.Error{Param: IDs, Text: "has ids of 36 characters"})
				return
			}
			one, err := c.byID(ctx, v, id)
			if err != nil {
				yield(match{}, err)
				return
			}
			if one.id != "" && !yield(one, nil) {
				return
			}
		}
	}
}

// byID selects the case or the work item with an id; none if there is none, or if the action cannot be executed on it.
func (c *Choice) byID(ctx context.Context, v store.Viewer, id workitem.CaseID) (one match, err error) {
	err = v.View(ctx, func(r store.Reader) error {
		if c.Kind == workflow.KindAct {
			items, err := r.Items(ctx, store.ItemFilter{ID: workitem.ID(id)})
			if len(items) > 0 && c.acts(items[0]) {
				one = match{id: id.String(), target: id.String(), item: items[0].Item}
			}
			return err
		}
		cases, err := r.Cases(ctx, store.CaseFilter{ID: id, RootOnly: true})
		if len(cases) > 0 && cases[0].Workflow != bulk.Name && (cases[0].State.Final() || !c.ended()) {
			one = match{id: id.String(), target: id.String(), of: cases[0]}
		}
		return err
	})
	return one, err
}

// Cases is the filter of the list of cases. Bulk actions on cases read it with the same function, so that they
// select what the list shows.
type Cases struct {
	store.CaseFilter
	Names  []string // of the parameters
	of     workitem.CaseID
	search store.Search
}

// ReadCases reads the filter of a list of cases.
func ReadCases(q *query.Query) Cases {
	c := Cases{CaseFilter: q.Cases(), of: q.Case(), search: q.Search()}
	c.Names = q.Names()
	return c
}

// Read reads one page of the list.
func (c Cases) Read(ctx context.Context, r store.Reader, p store.Page, m mask.Mask) (_ []*state.Case, err error) {
	if c.Root, c.ID, err = query.Within(ctx, r, c.of); err != nil {
		return nil, err
	}
	c.Page = p
	return store.SearchCases(ctx, store.ViewerOf(r), c.CaseFilter, c.search, m.Case)
}

// all lists the cases that the filter selects, page by page, since their payloads may be large.
func (c Cases) all(ctx context.Context, v store.Viewer, m mask.Mask) iter.Seq2[*state.Case, error] {
	c.search.Spent = new(store.SearchSpent)
	p := store.Page{Limit: store.DefaultLimit}
	return func(yield func(*state.Case, error) bool) {
		for {
			var found []*state.Case
			err := v.View(ctx, func(r store.Reader) (err error) {
				found, err = c.Read(ctx, r, p, m)
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
