package store

import (
	"context"
	"fmt"
	"strings"

	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// StaleError is the error of an Update that worked on trees which another engine has changed since they were loaded. Nothing of
// the Update happened. Load the trees again and repeat it.
type StaleError struct {
	Roots []workitem.CaseID // the root cases that have changed; none if it was something else, as an idempotency key
	Err   error             // what the database reported; may be nil
}

// Error names the root cases.
func (e *StaleError) Error() string {
	text := "another engine committed first"
	if len(e.Roots) > 0 {
		names := make([]string, len(e.Roots))
		for i, root := range e.Roots {
			names[i] = root.String()
		}
		text = "another engine changed case " + strings.Join(names, ", ")
	}
	if e.Err == nil {
		return text + ", so nothing of this happened"
	}
	return fmt.Sprintf("%s, so nothing of this happened: %v", text, e.Err)
}

// Unwrap returns [ErrConflict], and what the database reported.
func (e *StaleError) Unwrap() []error {
	if e.Err == nil {
		return []error{ErrConflict}
	}
	return []error{ErrConflict, e.Err}
}

// SharedTx is the transaction of a store that several engines have open at once. A [Tx] of such a store implements it.
type SharedTx interface {
	// Expect has the commit fail with a [StaleError] if the tree is not the newest one of its root case, though nothing is appended
	// to it: what was read or refused depends on it. A tree that something is appended to need not be given.
	Expect(t *state.Tree)

	// LockCase keeps other engines from committing changes of a root case until the transaction ends, and returns the position of its
	// last entry. A tree that was loaded before is the newest one if its LastSeq is the same. The error is ErrNotFound if there is
	// no such case.
	LockCase(ctx context.Context, root workitem.CaseID) (last int64, err error)

	// Offer has jobs that were appended be done by any engine that takes them. Without it they are this engine's.
	Offer(jobs ...workitem.JobID)

	// Waiting lists the root cases with a step that waits for a topic, in the order of their ids.
	Waiting(ctx context.Context, topic string) ([]workitem.CaseID, error)
}
