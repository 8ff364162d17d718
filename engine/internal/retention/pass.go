package retention

import (
	"errors"
	"time"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

const (
	// PageSize is the maximum number of root cases removed in one transaction, so that other commands do not wait long
	// for it.
	PageSize = 64

	// RetryAfter is the wait before a case is tried again that could not be removed although the store works.
	RetryAfter = time.Minute

	// minPause is the wait after a pass that left a case which is due, since the case may not be removed yet.
	minPause = time.Second
)

// endOfTime is later than any KeepUntil, so a filter with it finds the case that is due first.
var endOfTime = time.Date(200_000, 1, 1, 0, 0, 0, 0, time.UTC)

// pass removes all cases that are due, and returns the time of the next pass; zero if none is needed.
func (c *Cleaner) pass() time.Time {
	var next time.Time
	var refused error
	err := c.o.Retry(c.ctx, func() (err error) {
		next, refused, err = c.removeDue()
		return err
	})
	switch {
	case err != nil:
		return time.Time{} // the engine closes
	case refused != nil:
		c.o.Logger.Error("cases could not be removed; they are kept, and it is tried again", "error", refused, "in", RetryAfter)
		return c.o.Now().Add(RetryAfter)
	}
	return next
}

// removeDue removes all cases that are due, page by page. It returns when the next case is due, zero if there is none.
// refused has the errors of cases that could not be removed; err is an error of the store that ended the pass.
func (c *Cleaner) removeDue() (next time.Time, refused, err error) {
	var after string
	for {
		due, err := c.o.Cases.Find(c.ctx, store.CaseFilter{Removable: c.o.Now(), Page: store.Page{After: after, Limit: PageSize}})
		if err != nil {
			return time.Time{}, refused, err
		}
		left, pageRefused, err := c.removePage(idsOf(due))
		if err != nil {
			return time.Time{}, refused, err
		}
		refused = errors.Join(refused, pageRefused)
		if len(due) < PageSize {
			break
		}
		if len(left) > 0 { // the next page starts after the last case that still exists: a removed case is no cursor
			after = left[len(left)-1].String()
		}
	}
	first, err := c.o.Cases.Find(c.ctx, store.CaseFilter{Removable: endOfTime, Page: store.Page{Limit: 1}})
	if err != nil || len(first) == 0 {
		return time.Time{}, refused, err
	}
	if next = first[0].KeepUntil; !next.After(c.o.Now()) {
		next = c.o.Now().Add(minPause)
	}
	return next, refused, nil
}

func idsOf(cases []*state.Case) []workitem.CaseID {
	ids := make([]workitem.CaseID, len(cases))
	for i, c := range cases {
		ids[i] = c.ID
	}
	return ids
}

// removePage removes cases in one transaction or, if that fails because of one of them, each in its own. It returns
// those that were left, with their errors in refused. err is an error of the store that ended the attempt.
func (c *Cleaner) removePage(ids []workitem.CaseID) (left []workitem.CaseID, refused, err error) {
	if len(ids) == 0 {
		return nil, nil, nil
	}
	left, err = c.o.Cases.Remove(c.ctx, ids)
	if err == nil || c.unavailable(err) {
		return left, nil, err
	}
	left = nil
	for _, id := range ids {
		one, err := c.o.Cases.Remove(c.ctx, []workitem.CaseID{id})
		switch {
		case c.unavailable(err):
			return left, refused, err
		case err != nil:
			left, refused = append(left, id), errors.Join(refused, err)
		default:
			left = append(left, one...)
		}
	}
	return left, refused, nil
}

// unavailable reports whether an error ends the whole pass, and not only the removal of one case.
func (c *Cleaner) unavailable(err error) bool {
	return c.o.Cases.Unavailable(err) || c.ctx.Err() != nil
}
