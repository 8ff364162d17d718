package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

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

// ErrFenced says that another engine declared this one dead, because it sent no heartbeat, or that this one gave its
// place up, since the outcome of its last commits is not what it knows. Nothing that was under way has happened. The store
// has joined anew under a fresh number; the jobs that it held are free for any engine.
var ErrFenced = errors.New("another engine declared this one dead, since its heartbeats stopped")

// Fleet is a store that several engines have open at once, if it was opened with [Options.Shared]. Its transactions are [SharedTx].
// Its methods are safe for concurrent use.
type Fleet interface {
	// Shared reports whether the store was opened so.
	Shared() bool

	// Announce says which definitions this engine has, by their fingerprints: it takes jobs of no other ones.
	Announce(ctx context.Context, prints []string) error

	// Knows reports whether a live engine has the definition with a fingerprint.
	Knows(ctx context.Context, fingerprint string) (bool, error)

	// Take makes jobs this engine's that no engine holds, the most urgent first, and returns them. A running one was that of an engine
	// that died. After an error it may have made some this engine's: the next call returns them.
	Take(ctx context.Context, f TakeFilter) ([]*state.Job, error)

	// Tick sends a heartbeat, frees the jobs of engines that have died, and reports what an engine has to know. The error wraps
	// ErrFenced, once, if this engine was declared dead since the call before.
	Tick(ctx context.Context, s Standing) (News, error)

	// Hints reports changes before the next Tick does. A hint may be lost. The channel is closed with the store.
	Hints() <-chan Hint
}

// TakeFilter says which jobs an engine can do: all of the definitions that it has announced but for those given. Jobs that need no
// worker, such as timers, are not concerned by their queue.
type TakeFilter struct {
	Only    []string // the only queues that this engine works; nil for all
	Without []string // queues that have no worker free
	Max     int      // how many jobs at most
}

// Standing is what an engine does.
type Standing struct {
	Busy  bool                      // it is to be notified of changes soon
	Roots map[workitem.CaseID]int64 // root cases that it has to know the changes of, with the last position that it knows
	Clock time.Time                 // what time it is for the engine
}

// News is what has happened.
type News struct {
	Changed  []workitem.CaseID // of the roots of the Standing
	Head     int64             // position of the last entry of the journal
	Settled  bool              // no entry will appear before it any more; see JournalFilter
	Free     bool              // there are jobs that no engine holds
	Died     int               // how many engines were found dead
	Others   int               // how many other engines are live
	Settings string            // the SettingsDigest of all settings
	Skew     time.Duration     // by how much the engine's clock is ahead of the server's
	Next     time.Duration     // when the next Tick is due
	Soon     time.Duration     // when it is due if something begins before that; 0 for Next
}

// Hint is what another engine did.
type Hint struct {
	Roots []workitem.CaseID // root cases that it changed
	Free  bool              // it left jobs for others, or it is to be found out whether it did
	Set   bool              // it changed settings
}

// Members is a [Reader] of a store that several engines can have open.
type Members interface {
	// Members lists the engines that have it open, in the order in which they joined.
	Members(ctx context.Context) ([]Member, error)
}

// Member is an engine that has a store open.
type Member struct {
	ID          int64
	Name        string        // host and process
	Joined      time.Time     // by the server's clock
	Silent      time.Duration // since its last heartbeat
	Pace        time.Duration // how often it gives one
	Busy        bool
	Skew        time.Duration // by how much its clock is ahead of the server's
	Held        int64         // live jobs that it does when they are due
	Running     int64         // of them, those with a worker
	Definitions int           // how many it has
}
