package engine

import (
	"context"
	"errors"
	"time"

	"github.com/tasq-dev/tasq/engine/internal/commit"
	"github.com/tasq-dev/tasq/engine/internal/fault"
	"github.com/tasq-dev/tasq/engine/internal/kernel"
	"github.com/tasq-dev/tasq/engine/internal/retention"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// The cleaner decides what to remove and when; this file connects it to the engine. It finds cases in a view, and
// removes them by requests to the writer, so that removals and commands on a case are ordered, and observers are
// notified of both:
//
//	alarm ─▶ pass: Find a page of cases ─▶ Remove them in one commit ─▶ the next page ─▶ alarm for the next case that is due
//	                                        └ refused: one commit for each; a case that cannot be removed is left, and logged

// newCleaner returns the cleaner of an engine's store.
func (e *Engine) newCleaner() *retention.Cleaner {
	return retention.New(retention.Options{
		Cases: expired{e},
		Now:   e.now,
		Alarm: func(at time.Time, f func()) (stop func()) { return e.alarms.At(at.UnixMicro(), f) },
		Retry: func(ctx context.Context, f func() error) error {
			return e.retrier().Retry(ctx, func() error {
				err := f()
				if err == nil || fault.Is(err) {
					e.faults.Note("retention", err, "cases could not be removed; they are kept, and it is tried again")
				}
				return err
			})
		},
		Active: e.active.add,
		Logger: e.log,
	})
}

// expired implements retention.Cases.
type expired struct{ e *Engine }

// Find implements retention.Cases.
func (x expired) Find(ctx context.Context, f store.CaseFilter) (cases []*state.Case, err error) {
	err = x.e.View(ctx, func(r store.Reader) (err error) {
		cases, err = r.Cases(ctx, f)
		return err
	})
	if ctx.Err() != nil || errors.Is(err, ErrClosed) {
		return nil, ErrClosed
	}
	return cases, fault.As(err)
}

// Remove implements retention.Cases.
func (x expired) Remove(ctx context.Context, ids []workitem.CaseID) ([]workitem.CaseID, error) {
	trees, err := x.trees(ctx, ids)
	if err != nil {
		return nil, err
	}
	return commit.Query(ctx, x.e.writer, &commit.Request{}, func(tx *commit.Tx) (left []workitem.CaseID, err error) {
		tx.ReadAhead(trees)
		trees = nil // if it runs again, one of them has changed
		for _, id := range ids {
			removed, err := removeExpired(tx, id)
			if err != nil {
				return nil, err
			}
			if !removed {
				left = append(left, id)
			}
		}
		return left, nil
	})
}

// trees reads the trees of a page together, if the store is on a server: read one by one by the writer, they would keep
// other commands waiting for more than a thousand round trips.
func (x expired) trees(ctx context.Context, ids []workitem.CaseID) (trees []*state.Tree, err error) {
	if !x.e.isShared() {
		return nil, nil
	}
	err = x.e.View(ctx, func(r store.Reader) (err error) {
		trees, err = r.Trees(ctx, ids)
		return err
	})
	if ctx.Err() != nil || errors.Is(err, ErrClosed) {
		return nil, ErrClosed
	}
	return trees, fault.As(err)
}

// Unavailable implements retention.Cases.
func (x expired) Unavailable(err error) bool {
	return errors.Is(err, fault.ErrCommit) || errors.Is(err, ErrClosed)
}

// removeExpired removes a root case, unless it was removed already or must be kept: since the view that found it, a
// command may have resumed the case, or set another time until which it is kept.
func removeExpired(tx *commit.Tx, root workitem.CaseID) (removed bool, err error) {
	u, err := tx.Open(root)
	if errors.Is(err, ErrNotFound) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	err = tx.Internal(u, "case sweep", (*kernel.Machine).Remove)
	// The case was resumed since, or has a job that outlives it.
	if errors.Is(err, ErrUnfinished) {
		return false, nil
	}
	return err == nil, err
}
