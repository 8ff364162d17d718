package commit

import (
	"errors"
	"fmt"
	"time"

	"github.com/tasq-dev/tasq/engine/internal/fault"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workitem"
)

const (
	// conflictWindow is the time after a conflict on a root case in which another conflict on it makes requests lock
	// the case. Engines that change one case all the time then queue for its lock instead of starving each other.
	conflictWindow = time.Second

	// maxConflicts bounds the number of remembered conflicts.
	maxConflicts = 1000
)

// conflicts has the root cases that other transactions have changed or locked while requests of this engine worked on them.
//
// A transaction that keeps a lock for long, as one of another program can, is waited for once, by a commit and with it by all of its requests. After
// that, requests for the case try its lock first, and fail at once while it is locked; the first one that gets it ends that.
type conflicts struct {
	last   map[workitem.CaseID]time.Time // when another engine was faster, last
	locked map[workitem.CaseID]struct{}  // they were locked, and may be still
}

func newConflicts() conflicts {
	return conflicts{last: make(map[workitem.CaseID]time.Time), locked: make(map[workitem.CaseID]struct{})}
}

// note records a conflict on root cases, and returns those that had another one less than conflictWindow ago.
func (c *conflicts) note(roots []workitem.CaseID, now time.Time) map[workitem.CaseID]bool {
	// To forget a conflict costs at most one more run without a lock.
	if len(c.last) > maxConflicts {
		clear(c.last)
	}
	repeated := make(map[workitem.CaseID]bool)
	for _, root := range roots {
		if last, known := c.last[root]; known && now.Sub(last) < conflictWindow {
			repeated[root] = true
		}
		c.last[root] = now
	}
	return repeated
}

// noteLocked records that another transaction has locked root cases.
func (c *conflicts) noteLocked(roots ...workitem.CaseID) {
	if len(c.locked) > maxConflicts { // costs one more wait for each that is locked
		clear(c.locked)
	}
	for _, root := range roots {
		c.locked[root] = struct{}{}
	}
}

// wasLocked reports whether another transaction may have locked a root case.
func (c *conflicts) wasLocked(root workitem.CaseID) bool {
	_, locked := c.locked[root]
	return locked
}

// free records that a root case is no longer locked.
func (c *conflicts) free(root workitem.CaseID) { delete(c.locked, root) }

// lock locks a root case against other engines before it is opened, if the request locks cases, or if another transaction has locked this
// one. It drops the tree in memory if that is not current, which cannot happen again while the lock is held.
func (tx *Tx) lock(root workitem.CaseID) error {
	known := &tx.w.conflicts
	wasLocked := known.wasLocked(root)
	if !tx.locks && !wasLocked {
		return nil
	}
	last, err := tx.shared.LockCase(tx.ctx, root, !wasLocked)
	if isLocked(err) {
		known.noteLocked(root)
		return err
	}
	known.free(root)
	if err != nil {
		return fault.As(fmt.Errorf("case %s: %w", root, err))
	}
	if c := tx.w.trees.byRoot[root]; c != nil && c.tree.Case(root).LastSeq != last {
		tx.w.trees.evict(root)
	}
	return nil
}

// isLocked reports whether an error says that another transaction has locked a case for long.
func isLocked(err error) bool {
	var stale *store.StaleError
	return errors.As(err, &stale) && stale.Locked
}
