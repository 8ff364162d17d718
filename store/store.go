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

// The kinds of errors of a store. Wrapped errors name the object and say what to do.
var (
	ErrNotFound = workflow.ErrNotFound
	ErrConflict = errors.New("changed concurrently")
	ErrOwned    = errors.New("the database is already owned")
	ErrReadOnly = errors.New("the database is read-only")
	ErrCorrupt  = state.ErrCorrupt
	ErrNewer    = errors.New("the database was written by a newer version")

	// ErrForeign is the [ErrCorrupt] of a file that does not begin like a database of Tasq: most likely the wrong file was named. The file
	// was not changed.
	ErrForeign = fmt.Errorf("%w", ErrCorrupt)

	// ErrLost says that the process has lost its database: the files were removed, moved, replaced or truncated, or
	// another process has become the owner. The store acknowledges nothing after that, and its reads fail with this
	// error, too. Close it, repair the cause and open it again.
	ErrLost = errors.New("the database was lost while in use")

	// ErrUnavailable says that the store or the system below it fails: the disk is full or reports an error, another program
	// holds a lock, or memory ran out. The request itself may be valid, and may succeed later.
	ErrUnavailable = errors.New("the store is unavailable")

	// ErrUndone says that the user's SQL, run with [Tx.DB], made the database roll back the whole transaction. The Savepoint
	// in which it ran, those around it, and Update return this error.
	ErrUndone = errors.New("the whole transaction was rolled back")

	// ErrDisconnected says that the connection to the server ended while a statement of the user's SQL ran in it. The
	// transaction was rolled back. The server or the network may be the cause, or the statement itself, as
	// pg_terminate_backend: then it ends the next connection as well.
	ErrDisconnected = errors.New("the connection ended while an SQL statement of the command ran")

	// ErrNotCommitted says that the connection to the server ended, and that nothing of the transaction happened. SQL of the user is not the
	// cause. The same transaction may succeed, as its Update makes a new connection.
	ErrNotCommitted = errors.New("the connection ended, and nothing of the transaction happened")

	// ErrRefused says that the database rejects what a transaction wrote: a text or a number that it cannot represent, or a violation of
	// a deferred constraint of the user. The transaction was rolled back. One of its commands is the cause; the others may succeed in
	// another transaction.
	ErrRefused = errors.New("the database refused the data")

	// ErrHalfCopied says that a copy of another database into this one is incomplete, so cases are missing. Run the same "tasq copy"
	// again, which continues the copy, or drop the database.
	ErrHalfCopied = errors.New("a copy into the database is incomplete")

	// ErrOlder says that a database that was opened for reading needs a migration, which reading does not do. The error is an [OlderError].
	ErrOlder = errors.New("the database was written by an older version")
)

// Opener opens a store: it migrates the schema and recovers from a crash.
type Opener interface {
	Open(ctx context.Context, o Options) (Store, error)
}

// Options are the options with which an engine opens a store.
type Options struct {
	Now      func() time.Time // the engine's clock; time.Now if nil
	Logger   *slog.Logger     // for messages of the store; discarded if nil
	ReadOnly bool             // never write, not even a migration
	Shared   bool             // other engines may have the database open at the same time, if the store supports that
}

// Store stores cases. It is safe for concurrent use, but calls of Update are serialized.
type Store interface {
	// Update runs f in one transaction, and returns when everything that f appended is durable. If f returns an error,
	// or the commit fails, the transaction is rolled back.
	Update(ctx context.Context, f func(Tx) error) error

	// View runs f on a consistent snapshot, which includes everything that was acknowledged before the call. f
	// must not call the store.
	View(ctx context.Context, f func(Reader) error) error

	// Register records definitions, so that other programs can read the cases that run on them.
	Register(ctx context.Context, defs []*Definition) error

	// Limits are the rows of limits that all engines of the store share.
	Limits

	// Idle tells the store that nothing is queued, so that it can do housekeeping. It must not block for long.
	Idle(ctx context.Context) error

	// Close completes pending writes and releases the database.
	Close() error
}

// Tx is the transaction of one Update. It must not be used after the function of the Update has returned.
type Tx interface {
	Trees
	Inbox

	// Append ends the tree's command (see [state.Tree.End]) and makes the entry part of the transaction. It sets e.Seq.
	Append(ctx context.Context, e *Entry, t *state.Tree) error

	// Answered returns the entry that was committed, or appended, with the idempotency key; ErrNotFound if there is
	// none.
	Answered(ctx context.Context, key string) (*Entry, error)

	// KeyHolders lists the root cases of a workflow that hold a business key, see [state.Case.HoldsKey]; there is normally one at most.
	// It locks the key: until the transaction has ended, calls of other engines for the same key block.
	KeyHolders(ctx context.Context, workflow, key string) ([]workitem.CaseID, error)

	// KeyStarts lists the root cases of a workflow with a business key that were created after a time, in any state, oldest first. It
	// locks the key like KeyHolders.
	KeyStarts(ctx context.Context, workflow, key string, after time.Time) ([]KeyStart, error)

	// Successors lists the root cases that were started as a restart or a fork of a case, oldest first. It locks the case for this
	// purpose: until the transaction has ended, calls of other engines for the same case block.
	Successors(ctx context.Context, id workitem.CaseID) ([]workitem.CaseID, error)

	// Savepoint runs f, and rolls back only the changes of f if f returns an error. The error wraps ErrUndone,
	// whatever f returned, if the whole transaction was rolled back.
	Savepoint(ctx context.Context, f func() error) error

	// DB returns the connection for the user's own SQL in the transaction. Within a Savepoint it is valid until
	// the Savepoint's function returns.
	DB() domain.DB

	// Set stores a setting, replacing the previous value; nil removes it. See [Setting].
	Set(ctx context.Context, name string, value json.RawMessage) error

	// Setting returns the value of a setting, including changes of this transaction; nil if there is none. It locks the name: until the
	// transaction has ended, calls of other engines for the same name block, so that read-modify-write is safe.
	Setting(ctx context.Context, name string) (json.RawMessage, error)
}

// Trees is the part of a Tx that reads the objects that a command changes. Results include what the transaction has
// appended.
type Trees interface {
	// Load returns the tree of a root case. The error is ErrNotFound if there is none. The caller owns the tree, and
	// may cache it for later transactions as long as it applies all changes to it.
	Load(ctx context.Context, root workitem.CaseID) (*state.Tree, error)

	// Root finds the root case of any case, item or job by its id; ErrNotFound if there is none.
	Root(ctx context.Context, id [16]byte) (workitem.CaseID, error)

	// Item returns a work item, including those of earlier activations that the tree does not hold; ErrNotFound
	// if there is none.
	Item(ctx context.Context, id workitem.ID) (*ItemRow, error)

	// Steps lists the steps of a job, of all its runs, oldest first. The owner is the id of the work item whose run
	// the job is, and otherwise the id of the job; see [workitem.Step.Owner].
	Steps(ctx context.Context, owner [16]byte) ([]*workitem.Step, error)

	// History lists the journal entries of a loaded tree, oldest first, up to a position: those that were committed before the
	// transaction.
	History(ctx context.Context, t *state.Tree, until int64) ([]*Entry, error)
}

// Inbox is the part of a [Tx] that answers other processes.
type Inbox interface {
	// Requests lists up to max commands that other processes left, oldest first, with ids above after; 0 for all.
	// They stay until they are answered with Reply.
	Requests(ctx context.Context, after int64, max int) ([]Request, error)

	// Reply stores the answer to a request, for the process that waits for it.
	Reply(ctx context.Context, id int64, a Answer) error
}

// KeyStart is the start of a root case with a business key.
type KeyStart struct {
	Case workitem.CaseID
	At   time.Time
}

// Compare orders starts by time, then by case.
func (s KeyStart) Compare(other KeyStart) int {
	return cmp.Or(s.At.Compare(other.At), bytes.Compare(s.Case[:], other.Case[:]))
}

// Setting is stored configuration that is not part of a case: the numbers of a limit, the pause of a queue, or the suspension of a
// workflow. The name identifies the object, such as "limit/openai".
type Setting struct {
	Name  string
	Value json.RawMessage
}

// The prefixes of the names of settings; the name of the limit, queue or workflow, or a fingerprint, follows.
const (
	LimitSetting    = "limit/"    // the definition of a limit, and the number that was set instead
	QueueSetting    = "queue/"    // the pause of a queue, and the number of workers that was set
	TakesSetting    = "takes/"    // what the functions of a definition acquire of limits, by its fingerprint
	WorkflowSetting = "workflow/" // the suspension of a workflow: the Decision to suspend it
)

// Reader answers queries on one consistent snapshot.
type Reader interface {
	Finder
	Counter

	// Journal lists entries, oldest first, or the newest first.
	Journal(ctx context.Context, f JournalFilter) ([]*Entry, error)

	// Definitions lists every definition that was registered.
	Definitions(ctx context.Context) ([]*Definition, error)

	// Settings lists the settings that Set has stored, by name.
	Settings(ctx context.Context) ([]Setting, error)

	// LimitRows lists existing rows of limits by limit and key, for reading only. The Self of the view is 0.
	LimitRows(ctx context.Context, f LimitFilter) (LimitView, error)

	// DB returns a connection for the user's own queries on the same snapshot.
	DB() domain.DB
}

// Finder is the part of a [Reader] that finds cases and what belongs to them.
type Finder interface {
	// Tree returns a root case, active or ended, with its descendants; ErrNotFound if there is none.
	Tree(ctx context.Context, root workitem.CaseID) (*state.Tree, error)

	// Trees is Tree for several root cases, in the order of roots, with as many statements as for one tree. Missing ones are
	// omitted.
	Trees(ctx context.Context, roots []workitem.CaseID) ([]*state.Tree, error)

	// Root finds the root case of any case, item or job by its id; ErrNotFound if there is none.
	Root(ctx context.Context, id [16]byte) (workitem.CaseID, error)

	// Cases lists cases without their Items, Jobs and Children; Tree has those.
	Cases(ctx context.Context, f CaseFilter) ([]*state.Case, error)

	// Items lists work items of all activations, including final ones.
	Items(ctx context.Context, f ItemFilter) ([]*ItemRow, error)

	// Jobs lists jobs, including those that have ended.
	Jobs(ctx context.Context, f JobFilter) ([]*state.Job, error)

	// OpenIncidents lists the ids of the open incidents in the order in which they arose, at most so many; whole is false if there are
	// more. It costs a look at an entry of an index for each.
	OpenIncidents(ctx context.Context, most int) (ids []workitem.JobID, whole bool, err error)

	// IncidentHeads lists what incidents are about, by their ids, in no particular order. Missing ones are omitted.
	IncidentHeads(ctx context.Context, ids []workitem.JobID) ([]IncidentHead, error)

	// Steps lists the steps that jobs recorded, including those of earlier attempts.
	Steps(ctx context.Context, f StepFilter) ([]*workitem.Step, error)

	// Messages lists the events that were sent to cases, including those that a step has taken.
	Messages(ctx context.Context, f MessageFilter) ([]*state.Message, error)

	// Answered returns the entry of the journal that was committed with an idempotency key; ErrNotFound if there is none.
	Answered(ctx context.Context, key string) (*Entry, error)
}

// Counter is the part of a Reader that returns counts instead of lists.
type Counter interface {
	// Counts counts cases, items and jobs by workflow and state.
	Counts(ctx context.Context) ([]Count, error)

	// CountsByDefinition counts cases by definition and state, and live work items by definition and task. With live, it
	// counts only cases that have not ended, at a cost proportional to their number; otherwise it reads every case of the
	// database.
	CountsByDefinition(ctx context.Context, live bool) ([]DefinitionCount, error)

	// Backlog counts the live work items and jobs of each queue, sorted by its name, and the jobs that are due at now and have not begun. It
	// costs a look at each live item and job.
	Backlog(ctx context.Context, now time.Time) ([]QueueBacklog, error)

	// Queues counts the live work items of each queue, and the live jobs of workers, by state: at most so many of a queue, and so many
	// of its jobs in one state. Those in the queue without a name are counted among the first jobs that are due, three times as many. whole
	// is false if there are more, or more queues than [MaxQueues]. Its cost is proportional to the items and jobs that it may count.
	Queues(ctx context.Context, most int) (counts []QueueCount, whole bool, err error)

	// Ended counts ended work items, or cases if the filter says so, by hour or for all hours of the filter together, in no particular
	// order. Its cost is proportional to the number of counts in these hours, not to what ended.
	Ended(ctx context.Context, f RateFilter) ([]Ended, error)
}

// Entry is a journal entry: a command, its actor, and all changes that it made to one tree.
type Entry struct {
	Seq     int64 // position in the journal, above 0 and above those before it in its tree; set by Append
	Prev    int64 // position of the tree's entry before this one; 0 for the first; set by Append
	Root    workitem.CaseID
	At      time.Time
	Command string          // "start", "item complete", ...
	By      string          // the actor, as set by the caller
	Key     string          // idempotency key; "" if none was given
	Answer  json.RawMessage // the result of the command; stored only with a key
	Changes []state.Change

	// Setting is what the command has changed of a setting, which is not in the journal: Acts lists it, and Journal does not. nil for
	// commands on cases.
	Setting *SettingChange
}

// Definition is a stored workflow definition.
type Definition struct {
	Name        string
	Version     string
	Fingerprint string // hash of Document
	Net         *net.Definition
	Document    json.RawMessage // the content of the definition except code, in canonical form
	Code        bool            // it contains code, which only the program that defines it has
	Created     time.Time
}

// Request is a command from a process that does not own the database.
type Request struct {
	ID      int64
	Command json.RawMessage // encoded by the engine
	At      time.Time
}

// Answer is the reply to a request.
type Answer struct {
	Result json.RawMessage // nil after an error
	Code   string          // kind of the error; "" if there was none
	Error  string
}

// ItemRow is a work item with its root case and workflow.
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

// Watcher is a store in which other processes can leave commands. Changed takes microseconds, so an idle engine can call it
// several times a second; Inbox.Requests then returns the commands.
type Watcher interface {
	// Reachable reports whether other processes can leave commands at all, which they cannot in a database in memory. Changed
	// is not called if it returns false.
	Reachable() bool

	// Changed reports whether requests may have arrived since the last call that returned true.
	Changed(ctx context.Context) (bool, error)
}

// Killer is a store that can simulate the death of its process: pending writes are discarded, and the database
// is released. It is for tests of recovery.
type Killer interface {
	Kill() error
}
