package store

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/tasq-dev/tasq/domain"
	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// The kinds of failure that a store reports. Wrapped errors say which thing was meant and what to do.
var (
	ErrNotFound = workflow.ErrNotFound
	ErrConflict = errors.New("changed concurrently")
	ErrOwned    = errors.New("the database is already owned")
	ErrReadOnly = errors.New("the database is read-only")
	ErrCorrupt  = state.ErrCorrupt
	ErrNewer    = errors.New("the database was written by a newer version")

	// ErrForeign is the [ErrCorrupt] of what begins as no database of Tasq's does: most likely the wrong file was named. It was not touched.
	ErrForeign = fmt.Errorf("%w", ErrCorrupt)

	// ErrLost is for a database that was taken from the process that owns it: its files were removed, moved, replaced
	// or cut off, or another process has become the owner. The store acknowledges nothing after that, and its reads fail
	// with this error, too. Close it, repair what happened and open it again.
	ErrLost = errors.New("the database was lost while in use")

	// ErrUnavailable says that the store, or what it stands on, fails: the disk is full or reports an error, another program
	// holds a lock, memory ran out. It says nothing of what was asked, which may succeed when the fault is over.
	ErrUnavailable = errors.New("the store is unavailable")

	// ErrUndone says that a transaction is gone as a whole: SQL of the user's, run by [Tx.DB], had the database undo it. The
	// Savepoint that it ran in and those around it return it, and so does Update, in which nothing happened.
	ErrUndone = errors.New("the whole transaction was rolled back")

	// ErrRefused says that the database refuses what a transaction wrote: a text or a number that it has no form for, or a constraint of
	// the user's that it checks at the end. Nothing of the transaction happened. It is about one of the commands in it, and another one
	// may be stored.
	ErrRefused = errors.New("the database refused the data")

	// ErrHalfCopied says that a copy of another database into this one is not complete: what runs on it would miss cases. Give the same
	// "tasq copy" again, which goes on where it was, or drop the database.
	ErrHalfCopied = errors.New("a copy into the database is incomplete")

	// ErrOlder is for a database that is opened for reading, which changes nothing, so that it is not migrated.
	ErrOlder = errors.New("the database was written by an older version")
)

// Opener makes a store ready for use: it migrates the schema and recovers what a crash left behind.
type Opener interface {
	Open(ctx context.Context, o Options) (Store, error)
}

// Options are what an engine gives the store that it opens.
type Options struct {
	Now      func() time.Time // the engine's clock; time.Now if nil
	Logger   *slog.Logger     // where the store reports; discarded if nil
	ReadOnly bool             // never write, not even a migration
	Shared   bool             // other engines may have the database open at the same time, if the store can do that
}

// Store holds cases. It is safe for concurrent use, but Update calls run one after the other.
type Store interface {
	// Update runs f in one transaction, and returns once everything that f appended is durable. If f returns an error,
	// or the commit fails, nothing of it happened.
	Update(ctx context.Context, f func(Tx) error) error

	// View runs f on one consistent state of everything that was acknowledged before the call. f must not call the
	// store.
	View(ctx context.Context, f func(Reader) error) error

	// Register records definitions, so that other programs can read the cases that run on them.
	Register(ctx context.Context, defs []*Definition) error

	// Limits are the rows of limits that all engines of the store share.
	Limits

	// Idle informs the store that nothing is queued, which is the time for housekeeping. It must not block for long.
	Idle(ctx context.Context) error

	// Close writes what is outstanding and gives the database free.
	Close() error
}

// Tx is the transaction of one Update. It must not be used after the function it was given to has returned.
type Tx interface {
	Trees
	Inbox

	// Append ends the tree's command (see [state.Tree.End]) and makes the entry part of the transaction. It sets e.Seq.
	Append(ctx context.Context, e *Entry, t *state.Tree) error

	// Answered returns the entry that was committed, or appended, with the idempotency key; ErrNotFound if there is
	// none.
	Answered(ctx context.Context, key string) (*Entry, error)

	// KeyHolders lists the root cases of a workflow that hold a business key, see [state.Case.HoldsKey]: there is one at most, unless
	// the journal was made otherwise. Until the transaction has ended, no transaction of another engine gets an answer for the same key.
	KeyHolders(ctx context.Context, workflow, key string) ([]workitem.CaseID, error)

	// KeyStarts lists the root cases of a workflow with a business key that were created after a time, oldest first, whatever became of
	// them. It keeps transactions of other engines from the key as KeyHolders does.
	KeyStarts(ctx context.Context, workflow, key string, after time.Time) ([]KeyStart, error)

	// Savepoint runs f and undoes alone what f did to the database, if f returns an error. The error wraps ErrUndone,
	// whatever f returned, if the transaction is gone.
	Savepoint(ctx context.Context, f func() error) error

	// DB runs the user's own SQL in the transaction. Within a Savepoint it is good until the Savepoint's function
	// returns.
	DB() domain.DB

	// Set keeps a value under a name, in place of the one that was there; nil removes it. See [Setting].
	Set(ctx context.Context, name string, value json.RawMessage) error

	// Setting is the value that is kept under a name, also by this transaction; nil if there is none. Until the transaction has ended, no transaction
	// of another engine gets an answer for the same name, so what is set by it overwrites nothing that was not read.
	Setting(ctx context.Context, name string) (json.RawMessage, error)
}

// Trees is the part of a [Tx] that finds what a command changes. All of it includes what the transaction has appended.
type Trees interface {
	// Load returns the tree of a root case. The error is ErrNotFound if there is none. The caller owns the tree, and
	// may keep it for later transactions as long as it applies every event itself.
	Load(ctx context.Context, root workitem.CaseID) (*state.Tree, error)

	// Root finds the root case of any case, item or job by its id; ErrNotFound if there is none.
	Root(ctx context.Context, id [16]byte) (workitem.CaseID, error)

	// Item returns a work item, also one that its tree keeps in memory no longer; ErrNotFound if there is none.
	Item(ctx context.Context, id workitem.ID) (*ItemRow, error)

	// Steps lists the steps of a job, of all that ever did it, oldest first. The owner is the id of the work item for
	// the run of one, and that of the job for every other; see [workitem.Step.Owner].
	Steps(ctx context.Context, owner [16]byte) ([]*workitem.Step, error)

	// History lists the entries of a tree that Load has returned, oldest first, up to a position: those that were committed before the
	// transaction.
	History(ctx context.Context, t *state.Tree, until int64) ([]*Entry, error)
}

// Inbox is the part of a [Tx] that answers other processes.
type Inbox interface {
	// Requests lists up to max commands that other processes left, oldest first: those whose ids are above the given
	// one, 0 for all. They stay until they are replied to.
	Requests(ctx context.Context, after int64, max int) ([]Request, error)

	// Reply records the answer to a request, for the process that waits for it.
	Reply(ctx context.Context, id int64, a Answer) error
}

// KeyStart is the start of a root case with a business key.
type KeyStart struct {
	Case workitem.CaseID
	At   time.Time
}

// Compare orders starts by time, and those of one moment by case.
func (s KeyStart) Compare(other KeyStart) int {
	return cmp.Or(s.At.Compare(other.At), bytes.Compare(s.Case[:], other.Case[:]))
}

// Setting is what an operator has decided and what engines remember, beside cases: the numbers of a limit, a queue that is paused.
// The name says of what it is, such as "limit/openai".
type Setting struct {
	Name  string
	Value json.RawMessage
}

// The beginnings of the names of settings; a name follows.
const (
	LimitSetting = "limit/" // how a limit is defined, and what was set instead of its number
	QueueSetting = "queue/" // a queue that is paused, or has another number of workers
	TakesSetting = "takes/" // what the functions of a definition take of limits, by its fingerprint
)

// Reader answers queries on one consistent state.
type Reader interface {
	Finder
	Counter

	// Journal lists entries, oldest first, or the newest first.
	Journal(ctx context.Context, f JournalFilter) ([]*Entry, error)

	// Definitions lists every definition that was registered.
	Definitions(ctx context.Context) ([]*Definition, error)

	// Settings lists what Set has kept, by name.
	Settings(ctx context.Context) ([]Setting, error)

	// LimitRows lists rows of limits that are there, by limit and key, for those who only look. The Self of the view is 0.
	LimitRows(ctx context.Context, f LimitFilter) (LimitView, error)

	// DB runs the user's own queries on the same state.
	DB() domain.DB
}

// Finder is the part of a [Reader] that finds cases and what belongs to them.
type Finder interface {
	// Tree returns a root case with its descendants; ErrNotFound if there is none. Ended ones can be read, too.
	Tree(ctx context.Context, root workitem.CaseID) (*state.Tree, error)

	// Trees is Tree for several root cases, in the order of roots. It takes as many statements as one tree does. Those that are not
	// there are left out.
	Trees(ctx context.Context, roots []workitem.CaseID) ([]*state.Tree, error)

	// Root finds the root case of any case, item or job by its id; ErrNotFound if there is none.
	Root(ctx context.Context, id [16]byte) (workitem.CaseID, error)

	// Cases lists cases without their Items, Jobs and Children; Tree has those.
	Cases(ctx context.Context, f CaseFilter) ([]*state.Case, error)

	// Items lists work items of all activations, also the final ones.
	Items(ctx context.Context, f ItemFilter) ([]*ItemRow, error)

	// Jobs lists jobs, also those that have ended.
	Jobs(ctx context.Context, f JobFilter) ([]*state.Job, error)

	// Steps lists what jobs recorded, also in earlier attempts.
	Steps(ctx context.Context, f StepFilter) ([]*workitem.Step, error)

	// Messages lists the events that were sent to cases, also those that a step has taken.
	Messages(ctx context.Context, f MessageFilter) ([]*state.Message, error)

	// Answered returns the entry of the journal that was committed with an idempotency key; ErrNotFound if there is none.
	Answered(ctx context.Context, key string) (*Entry, error)
}

// Counter is the part of a [Reader] that counts, without a list of what is counted.
type Counter interface {
	// Counts counts cases, items and jobs by workflow and state.
	Counts(ctx context.Context) ([]Count, error)

	// CountsByDefinition counts cases by the definition that they run on and their state, and live work items by definition
	// and task. With live, only cases that have not ended are counted, which costs what they are; all of them cost a look at
	// each case of the database.
	CountsByDefinition(ctx context.Context, live bool) ([]DefinitionCount, error)

	// Backlog counts the live work items and jobs of each queue, sorted by its name, and the jobs that are due at now and have not begun. It
	// costs a look at each live item and job.
	Backlog(ctx context.Context, now time.Time) ([]QueueBacklog, error)

	// Ended counts the work items that ended, or the cases if the filter says so, in no order: by hour, or those of all hours of the filter
	// together. It costs a look at each count of these hours, however many ended.
	Ended(ctx context.Context, f RateFilter) ([]Ended, error)
}

// Entry is a command as the journal keeps it: who asked for what, and all that it did to one tree.
type Entry struct {
	Seq     int64 // position in the journal, above 0 and above those before it in its tree; set by Append
	Prev    int64 // position of the tree's entry before this one; 0 for the first; set by Append
	Root    workitem.CaseID
	At      time.Time
	Command string          // "start", "item complete", ...
	By      string          // who asked, as the caller named itself
	Key     string          // idempotency key; "" if none was given
	Answer  json.RawMessage // what the first caller got; kept with a key only
	Changes []state.Change
}

// Definition is a workflow as the database keeps it.
type Definition struct {
	Name        string
	Version     string
	Fingerprint string // hash of Document
	Net         *net.Definition
	Document    json.RawMessage // all that makes the definition what it is, in a canonical form
	Code        bool            // some of it is code, which only the program that defines it has
	Created     time.Time
}

// Request is a command from a process that does not own the database.
type Request struct {
	ID      int64
	Command json.RawMessage // as the engine encodes it
	At      time.Time
}

// Answer is the reply to a request.
type Answer struct {
	Result json.RawMessage // nil after an error
	Code   string          // kind of the error; "" if there was none
	Error  string
}

// ItemRow is a work item with the names that tell people where it belongs.
type ItemRow struct {
	*workitem.Item
	Root     workitem.CaseID
	Workflow string
}

// Count is a number of things in one state.
type Count struct {
	What     string // "case", "item" or "job"
	Workflow string
	Task     string // "" for cases
	State    string
	N        int64
}

// DefinitionCount is a number of cases in one state, or of live work items of one task, that run on one definition.
type DefinitionCount struct {
	Fingerprint string
	State       string // of the cases; "" for work items
	Task        string // of the work items; "" for cases
	N           int64
}

// Watcher is a store that other processes can leave commands in. Asking it costs microseconds, so an engine may do so a
// few times a second while it has nothing else to do; [Inbox.Requests] then gets what was left.
type Watcher interface {
	// Reachable reports whether other processes can leave commands at all. They cannot in a database in memory, which is then
	// not asked for changes.
	Reachable() bool

	// Changed reports whether requests may have come in since the last call that reported so.
	Changed(ctx context.Context) (bool, error)
}

// Killer is a store that can be left as a killed process would leave it: nothing outstanding is written, and the
// database is given free. It is for tests of recovery.
type Killer interface {
	Kill() error
}
