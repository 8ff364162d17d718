// Package command executes each kind of [workflow.Command] in a transaction of the writer. All callers use it: typed
// handles, functions of Update, other processes, the command line and completion handlers.
//
//	Execute ──▶ check ──▶ key used before? ── yes ──▶ the stored result
//	                        └─ no ──▶ open the tree ──▶ tx.On: mark the command, call the kernel ──▶ result
//	                                                      └─ the root case has ended: next case with its key, completion handlers
//
// Most results are known before the command runs, and are stored with its key by On. A result that the command
// determines, such as the id of a new item, is stored after it by Remember.
package command

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine/internal/commit"
	"github.com/tasq-dev/tasq/engine/internal/kernel"
	"github.com/tasq-dev/tasq/engine/internal/registry"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// Options are the parts of an engine that commands need besides a transaction. All fields are required.
type Options struct {
	Definitions *registry.Registry
	IDs         *workitem.Generator
	Topics      Topics
	Log         *slog.Logger
	MaxPayload  int // bytes of one input, output or event

	// Controls executes the commands that do not concern a case.
	Controls Controls
	// Public converts a transaction to the type that completion handlers get.
	Public func(*commit.Tx) builder.InTx
}

// Topics finds the cases that wait for a broadcast.
type Topics interface {
	// Waiting returns the root cases that wait for a topic, in the order of their ids.
	Waiting(topic string) []workitem.CaseID
}

// Controls changes the stored settings of engines, which belong to no case.
type Controls interface {
	// Control executes a command that does not concern a case; known is false for other kinds of commands.
	Control(tx *commit.Tx, c *workflow.Command) (result workflow.Result, known bool, err error)
}

// Executor executes commands. Make one with [New]; its methods are for the writer's goroutine.
type Executor struct{ o Options }

// New returns an executor.
func New(o Options) *Executor { return &Executor{o} }

// Do executes a command for code that is called in the transaction: a command that fails is rolled back
// alone.
func (x *Executor) Do(tx *commit.Tx, c workflow.Command) (workflow.Result, error) {
	var result workflow.Result
	err := tx.Command(func() (err error) {
		result, err = x.Execute(tx, &c)
		return err
	})
	if err != nil {
		return workflow.Result{}, err
	}
	return result, nil
}

// Execute is the single path of all commands: it validates the command, returns the stored result if its idempotency
// key was used before, and otherwise executes it.
func (x *Executor) Execute(tx *commit.Tx, c *workflow.Command) (workflow.Result, error) {
	var none workflow.Result
	if err := c.Check(); err != nil {
		return none, err
	}
	if c.Kind != workflow.KindDryRun { // its payload is a command, which is checked when it is tried
		if err := x.checkSizes(c); err != nil {
			return none, err
		}
	}
	o := commit.Operation{Command: c.String(), Actor: c.Actor, Key: c.Key}
	if c.Key != "" {
		var err error
		if o.Hash, err = c.Hash(); err != nil {
			return none, err
		}
		if result, done, err := tx.Answered(o); done || err != nil {
			return result, err
		}
	}
	return x.execute(tx, c, o)
}

// execute executes a valid command that was not executed before. The kinds that are not listed concern no case: they
// are settings of queues, limits and workflows, and questions to the engine.
func (x *Executor) execute(tx *commit.Tx, c *workflow.Command, o commit.Operation) (workflow.Result, error) {
	switch c.Kind {
	case workflow.KindStart:
		return x.start(tx, c, o)
	case workflow.KindAct:
		return x.act(tx, c, o)
	case workflow.KindAddItem:
		return x.addItem(tx, c, o)
	case workflow.KindSend:
		return x.send(tx, c, o)
	case workflow.KindToken:
		return x.sendToken(tx, c, o)
	case workflow.KindBroadcast:
		return x.broadcast(tx, c, o)
	case workflow.KindRestart:
		return x.restart(tx, c, o)
	case workflow.KindRemove:
		return x.remove(tx, c, o)
	case workflow.KindReclaim:
		return x.reclaim(tx, c, o)
	case workflow.KindCancel:
		return x.cancel(tx, c, o)
	case workflow.KindRetryIncident, workflow.KindGiveUpIncident:
		return x.repairIncident(tx, c, o)
	case workflow.KindFork:
		return x.fork(tx, c, o)
	case workflow.KindSuspend:
		return x.suspend(tx, c, o)
	case workflow.KindMove:
		return x.move(tx, c, o)
	case workflow.KindResume:
		return x.resume(tx, c, o)
	case workflow.KindRedrive:
		return x.redrive(tx, c, o)
	case workflow.KindRetry, workflow.KindSkip, workflow.KindGiveUp:
		return x.repairItem(tx, c, o)
	}
	if result, known, err := x.o.Controls.Control(tx, c); known {
		return result, err
	}
	return workflow.Result{}, fmt.Errorf("%w: no engine executes %q", workflow.ErrBadCommand, c.Kind)
}

// checkSizes returns an error for payloads that are larger than the configuration allows, or are not JSON that every
// database stores unchanged.
func (x *Executor) checkSizes(c *workflow.Command) error {
	err := x.CheckPayload("payload", c.Payload)
	if c.Reason != nil {
		err = errors.Join(err, x.CheckPayload("details of the reason", c.Reason.Details))
	}
	return err
}

// definition returns the definition for a new case of a workflow: the one with the fingerprint of the command, or else
// the last one of that name in the arguments of Open.
func (x *Executor) definition(c *workflow.Command) (*workflow.Definition, error) {
	d := x.o.Definitions.Named(c.Workflow)
	if c.Fingerprint != "" {
		d = x.o.Definitions.Definition(c.Fingerprint)
	}
	if d == nil || d.Name != c.Workflow {
		return nil, &workflow.UnknownError{Workflow: c.Workflow, Fingerprint: c.Fingerprint, Known: x.o.Definitions.Names()}
	}
	return d, nil
}

// start starts a root case. What the command says of it beyond its input is stored in its options, since the journal
// keeps only the text of a command: the turn of a queued case, the window of a debounced one, and a restart need them
// later.
func (x *Executor) start(tx *commit.Tx, c *workflow.Command, o commit.Operation) (workflow.Result, error) {
	d, err := x.definition(c)
	if err != nil {
		return workflow.Result{}, err
	}
	if err := c.Options.Check(d); err != nil {
		return workflow.Result{}, fmt.Errorf("start %s: %w", d.Name, err)
	}
	fresh := &state.Case{Priority: c.Priority, Key: c.BusinessKey, Labels: c.Labels}
	options := c.Options
	options.Trace, options.Queued, options.Debounced, options.Window = c.Trace, c.IfTaken == workflow.Queued, time.Time{}, c.Window
	options.Queue = c.Queue
	if fresh.Options, err = options.Encode(); err == nil {
		err = x.CheckPayload("options", fresh.Options)
	}
	if err != nil {
		return workflow.Result{}, fmt.Errorf("start %s: %w", d.Name, err)
	}
	return x.beginOrFind(tx, fresh, d, c, o)
}

// begin starts a root case. fresh holds its properties besides the input; steps are those of a case that it restarts.
// The cases in others may hold its business key.
func (x *Executor) begin(
	tx *commit.Tx, fresh *state.Case, d *workflow.Definition, c *workflow.Command, o commit.Operation, steps []*workitem.Step, others ...workitem.CaseID,
) (result workflow.Result, err error) {
	due, err := c.Due(tx.Now())
	if err != nil {
		return workflow.Result{}, fmt.Errorf("start %s: %w", d.Name, err)
	}
	key, err := c.KeyRequirements(due)
	if err != nil {
		return workflow.Result{}, fmt.Errorf("start %s: %w", d.Name, err)
	}
	key.Except = others
	if !key.Queued {
		return x.beginAs(tx, fresh, d, c, o, due, key, steps)
	}
	for {
		again := *fresh // what begins becomes a part of a tree
		err = tx.Savepoint(func() (err error) {
			result, err = x.beginAs(tx, &again, d, c, o, due, key, steps)
			return err
		})
		if !errors.Is(err, kernel.ErrBefore) { // else a waiting case has a greater id than this one; the next new id is greater than that
			return result, err
		}
	}
}

// beginAs is begin with a new id. The tree is made in the transaction: if the start fails, nothing is left of it.
func (x *Executor) beginAs(
	tx *commit.Tx, fresh *state.Case, d *workflow.Definition, c *workflow.Command, o commit.Operation, due time.Time, key workflow.KeyRequirements,
	steps []*workitem.Step,
) (workflow.Result, error) {
	fresh.ID = x.o.IDs.NewCaseID(tx.Now())
	tree := state.NewTree()
	tree.Root = fresh.ID
	result := workflow.Result{Case: fresh.ID}
	return tx.On(tx.Create(tree), o, result, func(m *kernel.Machine) error {
		m.RequireKey(key)
		if err := m.Start(fresh, d, c.Payload, due, steps); err != nil {
			return err
		}
		return m.NoteReason(fresh.ID, c.Reason)
	})
}

// act performs an action on a work item. The reason of a failure or of a cancellation is its payload, and becomes the
// Failure of the item; the reason of any other action is a note in the history.
func (x *Executor) act(tx *commit.Tx, c *workflow.Command, o commit.Operation) (workflow.Result, error) {
	u, at, err := x.openItem(tx, c)
	if err != nil {
		return workflow.Result{}, err
	}
	payload, ends := c.Payload, c.Action == workitem.Fail || c.Action == workitem.Cancel // whose reason is their effect
	if c.Reason != nil && ends {
		if payload, err = json.Marshal(c.Reason); err != nil {
			return workflow.Result{}, fmt.Errorf("%w: the reason: %w", workflow.ErrBadCommand, err)
		}
	}
	result := workflow.Result{Case: at.ID, Item: c.Item}
	return tx.On(u, o, result, func(m *kernel.Machine) error {
		if !ends {
			if err := m.NoteReason(at.ID, c.Reason); err != nil {
				return err
			}
		}
		return m.Act(c.Item, c.Action, payload, c.Route)
	})
}

// missing returns why an item is not in memory: it does not exist, or its activation ended earlier, so it is final.
func (x *Executor) missing(tx *commit.Tx, c *workflow.Command) error {
	row, err := tx.Store().Item(tx.Context(), c.Item)
	if err != nil {
		return err
	}
	return &workitem.TransitionError{Item: c.Item, Label: row.Workflow + "/" + row.Label(), From: row.State, Action: c.Action}
}

// addItem adds a work item to an activation that is enabled or started. Its delay counts from the transaction, as that
// of a start does.
func (x *Executor) addItem(tx *commit.Tx, c *workflow.Command, o commit.Operation) (workflow.Result, error) {
	due, err := c.Due(tx.Now())
	if err != nil {
		return workflow.Result{}, err
	}
	u, err := tx.OpenCase(c.Case)
	if err != nil {
		return workflow.Result{}, err
	}
	n := activities.NewItem{Input: c.Payload, After: due.Sub(tx.Now()), Queue: c.Queue, Priority: c.Priority}
	return thenRemember(tx, u, o, func(m *kernel.Machine) (workflow.Result, error) {
		it, err := m.OpenItem(c.Case, c.Task, n)
		if err != nil {
			return workflow.Result{}, err
		}
		return workflow.Result{Case: c.Case, Item: it.ID}, m.NoteReason(c.Case, c.Reason)
	})
}

// cancel cancels a case with everything below it. The reason becomes its Failure.
func (x *Executor) cancel(tx *commit.Tx, c *workflow.Command, o commit.Operation) (workflow.Result, error) {
	u, err := x.openRoot(tx, c)
	if err != nil {
		return workflow.Result{}, err
	}
	result := workflow.Result{Case: c.Case}
	return tx.On(u, o, result, func(m *kernel.Machine) error { return m.Cancel(c.Case, c.Reason) })
}

// remove removes a case. The command has no idempotency key, since the key would be removed with the case. Who removes it
// is noted outside of the journal, which keeps nothing of the case; the engine's own removals have no actor.
func (x *Executor) remove(tx *commit.Tx, c *workflow.Command, o commit.Operation) (workflow.Result, error) {
	u, err := x.openRoot(tx, c)
	if err != nil {
		return workflow.Result{}, err
	}
	if u.Tree.Root != c.Case {
		return workflow.Result{}, fmt.Errorf("case %s cannot be removed: it is a child case, and goes with case %s: %w",
			c.Case, u.Tree.Root, store.ErrNotFound)
	}
	o.Key = ""
	result, err := tx.On(u, o, workflow.Result{Case: c.Case}, (*kernel.Machine).Remove)
	if err != nil || o.Actor == "" {
		return result, err
	}
	reason := ""
	if c.Reason != nil {
		reason = c.Reason.String()
	}
	return result, store.NoteRemoval(tx.Context(), tx.Store(), c.Case, tx.Now(), o.Actor, reason)
}

// reclaim releases a running job from its worker; the scheduler cancels the worker's context after the commit.
func (x *Executor) reclaim(tx *commit.Tx, c *workflow.Command, o commit.Operation) (workflow.Result, error) {
	root, err := tx.Store().Root(tx.Context(), c.Job)
	if err != nil {
		return workflow.Result{}, fmt.Errorf("job %s: %w", c.Job, err)
	}
	u, err := tx.Open(root)
	if err != nil {
		return workflow.Result{}, err
	}
	return tx.On(u, o, workflow.Result{Case: root}, func(m *kernel.Machine) error {
		if err := m.NoteReason(root, c.Reason); err != nil {
			return err
		}
		return m.Leases().Reclaim(c.Job)
	})
}

// openRoot opens the tree of a command's case. If the command is restricted to a workflow, the case must be a root case
// of it.
func (x *Executor) openRoot(tx *commit.Tx, c *workflow.Command) (*commit.TreeWrite, error) {
	u, err := tx.OpenCase(c.Case)
	if err != nil || c.Workflow == "" {
		return u, err
	}
	at := u.Tree.Case(c.Case)
	switch {
	case at == nil:
		return nil, fmt.Errorf("case %s: %w", c.Case, store.ErrNotFound)
	case !at.Parent.IsZero():
		return nil, fmt.Errorf("case %s is a child case of %s, and no run of its own: %w", c.Case, at.Root, store.ErrNotFound)
	case at.Workflow != c.Workflow:
		return nil, fmt.Errorf("case %s is a run of %s, and not of %s: %w", c.Case, at.Workflow, c.Workflow, store.ErrNotFound)
	}
	return u, nil
}
