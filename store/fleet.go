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

// StaleError is the error of an Update with trees that another engine has changed since they were loaded. The Update was rolled
// back. Load the trees again and repeat it.
type StaleError struct {
	Roots []workitem.CaseID // the root cases that have changed; none if something else conflicted, such as an idempotency key
	Err   error             // what the database reported; may be nil

	// Locked says that another transaction has locked Roots for longer than the store waits for a lock. It may keep them for as long as it
	// likes, so the same is not repeated at once.
	Locked bool
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
		if e.Locked {
			text = "another transaction has locked case " + strings.Join(names, ", ")
		}
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

// SharedTx is implemented by the Tx of a store that several engines have open at once.
type SharedTx interface {
	// Expect makes the commit fail with a [StaleError] if the tree is not the newest state of its root case. It is for trees that
	// the transaction has read without appending to them; trees with appended entries are always checked.
	Expect(t *state.Tree)

	// LockCase locks a root case against commits of other engines until the transaction ends, and returns the position of its last
	// entry. A tree that was loaded before is current if its LastSeq is the same. The error is ErrNotFound if there is no such case, and a
	// Locked [StaleError] if another transaction has locked it: at once, or with wait after the time that the store waits for a lock.
	LockCase(ctx context.Context, root workitem.CaseID, wait bool) (last int64, err error)

	// Offer makes appended jobs available to all engines. Other jobs are assigned to this engine.
	Offer(jobs ...workitem.JobID)

	// Waiting lists the root cases with a step that waits for a topic, in the order of their ids.
	Waiting(ctx context.Context, topic string) ([]workitem.CaseID, error)

	// PrefetchKeys looks up idempotency keys together, which saves a query for each of them that is not in use.
	PrefetchKeys(ctx context.Context, keys []string) error
}

// ErrFenced says that another engine declared this one dead because its heartbeats stopped, or that this one rejoined by
// itself because the outcome of its last commits is uncertain. Transactions in progress were rolled back. The store has
// rejoined under a new number; the jobs that it held are free for any engine.
var ErrFenced = errors.New("another engine declared this one dead, since its heartbeats stopped")

// Fleet is a store that several engines have open at once, if it was opened with [Options.Shared]. Its transactions are [SharedTx].
// Its methods are safe for concurrent use.
type Fleet interface {
	// Shared reports whether the store was opened with Options.Shared.
	Shared() bool

	// Announce registers the fingerprints of the definitions that this engine has: it takes only their jobs.
	Announce(ctx context.Context, prints []string) error

	// Knows reports whether a live engine has the definition with a fingerprint.
	Knows(ctx context.Context, fingerprint string) (bool, error)

	// Take assigns jobs that no engine holds to this engine, the most urgent first, and returns them. A job in the state running
	// belonged to an engine that died. If Take fails, some jobs may have been assigned nevertheless: the next call returns them.
	Take(ctx context.Context, f TakeFilter) ([]*state.Job, error)

	// Waiting counts the pending jobs of functions and calls of some queues that this engine does not hold, each queue up to the number
	// given. It may miss some if this engine holds very many, or very many of other queues wait.
	Waiting(ctx context.Context, most map[string]int) (map[string]int, error)

	// Overdue returns jobs that this engine holds and that were due before a time, the earliest first, at most most. The engine compares
	// them with those that it knows.
	Overdue(ctx context.Context, due time.Time, most int) ([]*state.Job, error)

	// Tick sends a heartbeat, releases the jobs of engines that have died, and returns what has changed. The error wraps
	// ErrFenced, once, if this engine was declared dead since the previous call.
	Tick(ctx context.Context, s EngineState) (News, error)

	// Hints returns a channel that reports changes earlier than the next Tick. Hints may be lost. The channel is
	// closed with the store.
	Hints() <-chan Hint
}

// TakeFilter selects the jobs that an engine can run, among those of the definitions that it has announced. The queue of jobs that
// need no worker, such as timers, is ignored.
type TakeFilter struct {
	Only    []string // the only queues that this engine works; nil for all
	Without []string // queues without a free worker
	Max     int      // the most jobs to take

	// Aging is how long a job has to wait to be as urgent as a new one of the next higher priority; 0 if it always comes after that.
	Aging time.Duration

	// Workflows are the names of those that this engine can start; nil for all. A case that needs another one (workflow.Options.Needs)
	// is left to an engine that has it.
	Workflows []string
}

// EngineState is the state of an engine at a Tick.
type EngineState struct {
	Busy  bool                      // it needs to learn of changes soon
	Roots map[workitem.CaseID]int64 // root cases whose changes it needs to know, with the last position that it knows
	Clock time.Time                 // the engine's time
}

// News is the result of a Tick: what has changed since the previous one.
type News struct {
	Changed  []workitem.CaseID // those of EngineState.Roots that have changed
	Head     int64             // position of the last entry of the journal
	Settled  bool              // no entry will appear before Head; see JournalFilter
	Free     bool              // there are jobs that no engine holds
	Died     int               // how many engines were declared dead
	Others   int               // how many other engines are live
	Settings string            // the SettingsDigest of all settings
	Skew     time.Duration     // by how much the engine's clock is ahead of the server's
	Next     time.Duration     // when the next Tick is due
	Soon     time.Duration     // when it is due if the engine becomes busy before that; 0 for Next
}

// Hint is a notification of changes by another engine.
type Hint struct {
	Roots []workitem.CaseID // root cases that it changed
	Free  bool              // there are, or may be, new jobs for other engines
	Set   bool              // it changed settings
}

// Members is implemented by Readers of stores that several engines can have open.
type Members interface {
	// Members lists the engines that have it open, in the order in which they joined.
	Members(ctx context.Context) ([]Member, error)

	// Dead lists the engines that were declared dead within a day, the latest first, at most MaxDead.
	Dead(ctx context.Context) ([]DeadMember, error)
}

// DeadEngines is the collection in which a store records the engines that were declared dead. [Members] lists them; they are not copied to
// another database.
const DeadEngines = "tasq-engines"

// MaxDead bounds the list of dead engines: a process that crashes whenever it is started leaves thousands a day.
const MaxDead = 100

// DeadMember is an engine that was declared dead: its process ended without closing it, or its heartbeats had stopped. Times are by
// the server's clock.
type DeadMember struct {
	ID      int64
	Name    string // host and process
	Joined  time.Time
	Died    time.Time     // when it was declared dead
	By      string        // the process that did so: host and process
	Silent  time.Duration // since its last heartbeat, until now
	Held    int64         // live jobs that were assigned to it then, and are free since; at most 100,000 are counted
	Running int64         // of them, those with a worker
}

// Member is an engine that has a store open.
type Member struct {
	ID          int64
	Name        string        // host and process
	Joined      time.Time     // by the server's clock
	Silent      time.Duration // since its last heartbeat
	Pace        time.Duration // the interval of its heartbeats
	Busy        bool
	Skew        time.Duration // by how much its clock is ahead of the server's
	Held        int64         // live jobs that are assigned to it
	Running     int64         // of them, those with a worker
	Lag         time.Duration // for how long the earliest of those without a worker has been due; 0 if none is due
	Definitions int           // the number of its definitions

	// Fingerprints are those of its definitions; none if the database is its own, so that no other engine has to know them.
	Fingerprints []string
}

// Overdue reports whether the heartbeats of the engine have stopped, so that another engine may declare it dead.
func (m Member) Overdue() bool { return m.Silent > m.Pace*5/2+5*time.Second }
