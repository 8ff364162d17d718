package retention

import (
	"errors"
	"time"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

const (
	// PageSize is how many root cases are removed in one transaction at most, so that other commands do not wait long behind it.
	PageSize = 256

	// RetryAfter is how long a case that could not be removed, though the store works, is left alone.
	RetryAfter = time.Minute

	// minPause is the time between two passes of which the first one left a case that is due.
	minPause = time.Second
)

// endOfTime is later than any time that a case is kept until.
var endOfTime = time.Date(200_000, 1, 1, 0, 0, 0, 0, time.UTC)

// pass removes all that is due, and returns when the next pass is; zero if there is none to arrange.
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

// removeDue removes all that is due, page by page. It returns when the next case is due, zero if there is none, and why cases were
// left that could not be removed. The last error is that of the store; other cases may be left because of it.
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
		if len(left) > 0 { // a case that was removed is no position to continue from
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

// removePage removes cases in one transaction, or, if one of them cannot be removed, each in its own. It returns those that were
// left, why, and the error of the store if it took none of this.
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

// unavailable reports whether an error ends the pass, and not only the removal of a case.
func (c *Cleaner) unavailable(err error) bool {
	return c.o.Cases.Unavailable(err) || c.ctx.Err() != nil
}
