package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/engine/internal/kernel"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// Do executes a command, and returns when it is durable. It is safe to repeat with the same [workflow.Key].
//
// If the context ends while the command is queued, the command is withdrawn; if it has begun by then, it may still happen, as the
// error says. [Code] has a word for each kind of error.
func (e *Engine) Do(ctx context.Context, c workflow.Command) (workflow.Result, error) {
	return submitFor(ctx, e, &request{}, func(tx *Tx) (workflow.Result, error) { return tx.execute(&c) })
}

// Do is like [Engine.Do], as part of the transaction. A command that fails is undone alone.
func (tx *Tx) Do(_ context.Context, c workflow.Command) (workflow.Result, error) {
	var result workflow.Result
	err := tx.command(func() (err error) {
		result, err = tx.execute(&c)
		return err
	})
	if err != nil {
		return workflow.Result{}, err
	}
	return result, nil
}

// operation is what the journal keeps of a command beside its changes.
type operation struct {
	command string
	actor   string
	key     string
	hash    string // of the command; "" without a key
}

// execute is the one path of every command: it is checked, answered if it was done before with its key, and else done.
func (tx *Tx) execute(c *workflow.Command) (workflow.Result, error) {
	var none workflow.Result
	if err := c.Check(); err != nil {
		return none, err
	}
	if err := tx.e.checkSizes(c); err != nil {
		return none, err
	}
	o := operation{command: c.String(), actor: c.Actor, key: c.Key}
	if c.Key != "" {
		var err error
		if o.hash, err = c.Hash(); err != nil {
			return none, err
		}
		if result, done, err := tx.answered(o); done || err != nil {
			return result, err
		}
	}
	switch c.Kind {
	case workflow.KindStart:
		return tx.start(c, o)
	case workflow.KindAct:
		return tx.act(c, o)
	case workflow.KindAddItem:
		return tx.addItem(c, o)
	case workflow.KindSend:
		return tx.send(c, o)
	case workflow.KindToken:
		return tx.sendToken(c, o)
	case workflow.KindBroadcast:
		return tx.broadcast(c, o)
	case workflow.KindRestart:
		return tx.restart(c, o)
	case workflow.KindRemove:
		return tx.remove(c, o)
	case workflow.KindReclaim:
		return tx.reclaim(c, o)
	case workflow.KindCancel:
		return tx.cancel(c, o)
	}
	return none, fmt.Errorf("%w: no engine executes %q", workflow.ErrBadCommand, c.Kind)
}

// checkSizes refuses what is larger than the configuration allows, or is no JSON that every database keeps as it is.
func (e *Engine) checkSizes(c *workflow.Command) error {
	err := e.checkPayload("payload", c.Payload)
	if c.Reason != nil {
		err = errors.Join(err, e.checkPayload("details of the reason", c.Reason.Details))
	}
	return err
}

// definition finds what a fresh case of a workflow runs on.
func (e *Engine) definition(c *workflow.Command) (*workflow.Definition, error) {
	d := e.byName[c.Workflow]
	if c.Fingerprint != "" {
		d = e.byPrint[c.Fingerprint]
	}
	if d == nil || d.Name != c.Workflow {
		return nil, e.unknown(c.Workflow)
	}
	return d, nil
}

func (e *Engine) unknown(workflow string) error {
	return fmt.Errorf("%w: %q; the engine was opened with %s", ErrUnknown, workflow, e.names())
}

func (e *Engine) names() string {
	if len(e.byName) == 0 {
		return "none"
	}
	names := make(map[string]bool, len(e.byName))
	for name := range e.byName {
		names[name] = true
	}
	return fmt.Sprint(sorted(names))
}

func (tx *Tx) start(c *workflow.Command, o operation) (workflow.Result, error) {
	d, err := tx.e.definition(c)
	if err != nil {
		return workflow.Result{}, err
	}
	if err := c.Options.Check(d); err != nil {
		return workflow.Result{}, fmt.Errorf("start %s: %w", d.Name, err)
	}
	fresh := &state.Case{Priority: c.Priority}
	if fresh.Options, err = c.Options.Encode(); err == nil {
		err = tx.e.checkPayload("options", fresh.Options)
	}
	if err != nil {
		return workflow.Result{}, fmt.Errorf("start %s: %w", d.Name, err)
	}
	return tx.begin(fresh, d, c, o, nil)
}

// begin starts a root case. The case given holds what it is to have beyond its input; the steps are those of a case that it
// restarts.
func (tx *Tx) begin(
	fresh *state.Case, d *workflow.Definition, c *workflow.Command, o operation, steps []*workitem.Step,
) (workflow.Result, error) {
	due, err := c.Due(tx.now)
	if err != nil {
		return workflow.Result{}, fmt.Errorf("start %s: %w", d.Name, err)
	}
	fresh.ID = tx.e.ids.NewCaseID(tx.now)
	tree := state.NewTree()
	tree.Root = fresh.ID
	result := workflow.Result{Case: fresh.ID}
	return tx.on(tx.newWrite(tree), o, result, func(m *kernel.Machine) error { return m.Start(fresh, d, c.Payload, due, steps) })
}

// on runs a command on a tree, and keeps its result for its key.
func (tx *Tx) on(u *treeWrite, o operation, result workflow.Result, f func(*kernel.Machine) error) (workflow.Result, error) {
	err := tx.mark(u, o, result)
	if err == nil {
		err = tx.do(u, o.actor, f)
	}
	if err != nil {
		return workflow.Result{}, err
	}
	return result, nil
}

func (tx *Tx) act(c *workflow.Command, o operation) (workflow.Result, error) {
	root, err := tx.root(c.Item)
	if err != nil {
		return workflow.Result{}, fmt.Errorf("work item %s: %w", c.Item, err)
	}
	u, err := tx.open(root)
	if err != nil {
		return workflow.Result{}, err
	}
	at, it := u.tree.Item(c.Item)
	if it == nil {
		return workflow.Result{}, tx.missing(c)
	}
	if c.Workflow != "" && at.Workflow != c.Workflow || c.Task != "" && it.Task != c.Task {
		return workflow.Result{}, fmt.Errorf("work item %s belongs to task %s/%s, and the action was asked of task %s/%s: %w",
			c.Item, at.Workflow, it.Task, c.Workflow, c.Task, ErrNotFound)
	}
	payload := c.Payload
	if c.Reason != nil {
		if payload, err = json.Marshal(c.Reason); err != nil {
			return workflow.Result{}, fmt.Errorf("%w: the reason: %w", workflow.ErrBadCommand, err)
		}
	}
	result := workflow.Result{Case: at.ID, Item: c.Item}
	return tx.on(u, o, result, func(m *kernel.Machine) error { return m.Act(c.Item, c.Action, payload, c.Route) })
}

// missing says why an item is not in memory: it never was, or its activation has been over for long, in which case it
// is final.
func (tx *Tx) missing(c *workflow.Command) error {
	row, err := tx.s.Item(tx.ctx, c.Item)
	if err != nil {
		return fmt.Errorf("work item %s: %w", c.Item, err)
	}
	return &workitem.TransitionError{Item: c.Item, Label: row.Workflow + "/" + row.Label(), From: row.State, Action: c.Action}
}

func (tx *Tx) addItem(c *workflow.Command, o operation) (workflow.Result, error) {
	due, err := c.Due(tx.now)
	if err != nil {
		return workflow.Result{}, err
	}
	u, err := tx.openAny(c.Case)
	if err != nil {
		return workflow.Result{}, err
	}
	n := newItem(c, due.Sub(tx.now))
	result := workflow.Result{Case: c.Case}
	unkeyed := operation{command: o.command, actor: o.actor}
	_, err = tx.on(u, unkeyed, result, func(m *kernel.Machine) error {
		it, err := m.OpenItem(c.Case, c.Task, n)
		if err == nil {
			result.Item = it.ID
		}
		return err
	})
	if err == nil {
		err = tx.remember(u, o, result)
	}
	return result, err
}

func (tx *Tx) cancel(c *workflow.Command, o operation) (workflow.Result, error) {
	u, err := tx.openRoot(c)
	if err != nil {
		return workflow.Result{}, err
	}
	result := workflow.Result{Case: c.Case}
	return tx.on(u, o, result, func(m *kernel.Machine) error { return m.Cancel(c.Case, c.Reason) })
}

// remove forgets a case. Its key would go with it, so it has none.
func (tx *Tx) remove(c *workflow.Command, o operation) (workflow.Result, error) {
	u, err := tx.openRoot(c)
	if err != nil {
		return workflow.Result{}, err
	}
	if u.tree.Root != c.Case {
		return workflow.Result{}, fmt.Errorf("case %s cannot be removed: it is a child case, and goes with case %s: %w",
			c.Case, u.tree.Root, ErrNotFound)
	}
	o.key = ""
	return tx.on(u, o, workflow.Result{Case: c.Case}, (*kernel.Machine).Remove)
}

// reclaim takes a running job from its worker; the scheduler cancels the worker's context once that is committed.
func (tx *Tx) reclaim(c *workflow.Command, o operation) (workflow.Result, error) {
	root, err := tx.s.Root(tx.ctx, c.Job)
	if err != nil {
		return workflow.Result{}, fmt.Errorf("job %s: %w", c.Job, err)
	}
	u, err := tx.open(root)
	if err != nil {
		return workflow.Result{}, err
	}
	return tx.on(u, o, workflow.Result{Case: root}, func(m *kernel.Machine) error { return m.Reclaim(c.Job) })
}

// openRoot opens the tree of a command's case. If the command is restricted to a workflow, the case must be a root case of it.
func (tx *Tx) openRoot(c *workflow.Command) (*treeWrite, error) {
	u, err := tx.openAny(c.Case)
	if err != nil || c.Workflow == "" {
		return u, err
	}
	at := u.tree.Case(c.Case)
	switch {
	case at == nil:
		return nil, fmt.Errorf("case %s: %w", c.Case, ErrNotFound)
	case !at.Parent.IsZero():
		return nil, fmt.Errorf("case %s is a child case of %s, and no run of its own: %w", c.Case, at.Root, ErrNotFound)
	case at.Workflow != c.Workflow:
		return nil, fmt.Errorf("case %s is a run of %s, and not of %s: %w", c.Case, at.Workflow, c.Workflow, ErrNotFound)
	}
	return u, nil
}

func newItem(c *workflow.Command, after time.Duration) activities.NewItem {
	return activities.NewItem{Input: c.Payload, After: after, Queue: c.Queue, Priority: c.Priority}
}
