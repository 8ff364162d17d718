// Package kernel is the only package that combines tokens and work items. It is a function that turns a command into
// changes:
//
//	(definition, tree of cases, command, now) -> changes, and the callbacks that ran on the way
//
// A command pushes steps on an agenda, a stack: each step does one small thing (move a task, call an activity, try an
// enabling) and may push others, which are done before what was there. So the order is depth first, without recursion,
// and the length of a command is bounded. Changes are applied to the tree as they are made; if a step fails, the caller
// rolls the tree back and nothing has happened.
//
// A worked case: the net start -> a -> c -> b -> end, with one work item in each task, and the command that completes
// the started item a.1.1. The top of the agenda is on the left; what a step has pushed stands before what was there:
//
//	agenda                                              changes
//	moveItem(a.1.1)                                     item a.1.1 completed
//	judgeItem(a.1.1)                                    the policy of a says: complete
//	complete(a)                                         task a completed
//	cancelOwned(a) region(a) split(a)                   a token in c
//	try(b) try(a) sweep endCheck                        b is enabled
//	populate(b) startTimers(b) try(a) sweep endCheck    item b.1.1 opened
//	try(a) sweep endCheck                               nothing: a has no token, no join was touched, end is empty
//
// Every step checks the tree again instead of relying on what was true when it was pushed, since the steps before it
// may have ended its case or its activation: a step whose subject is gone does nothing. An activation is named by its
// case, its task and its generation for that reason. A step that holds a *state.Case across another step would see an
// old one, as cases are copied before they change.
//
// The package does no I/O and starts nothing: callbacks are run through the [Host], which also gives ids and the user's
// database.
package kernel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// The kinds of failure of a command, beside *workitem.TransitionError, activities.ErrInactive and the errors of
// callbacks.
var (
	ErrNotFound  = store.ErrNotFound
	ErrBadRoute  = workflow.ErrBadRoute
	ErrRunaway   = workflow.ErrRunaway
	ErrLeaseLost = errors.New("the lease is lost")
	ErrUnknown   = workflow.ErrUnknown

	// ErrNotDue says that a suspended job still has to wait.
	ErrNotDue = errors.New("the job waits for its steps, and is not due yet")

	// ErrUnfinished says that a case has not ended, or still has jobs, although the command requires that.
	ErrUnfinished = workflow.ErrUnfinished
)

// MaxCrashes is how often a job may crash its process, without recording a step in between, before it is given up.
const MaxCrashes = 3

// Machine runs one command on one tree. Make one for each with [New] or [Reuse].
type Machine struct {
	record
	agenda agenda
	joins  joins
	loops  loops

	ctx       context.Context
	host      Host
	cause     activities.Cause
	ending    map[workitem.CaseID]bool // cases between endCase and closeCase, in which nothing is enabled
	choice    *choice
	child     workitem.CaseID          // the child case whose end the policy is asked about
	key       workflow.KeyRequirements // for the business key of the root case that Start opens
	exhausted []GivenUp                // work items without further attempts
	mustWait  bool                     // the root case waits, since others hold its key
	copied    []*workitem.Step         // for the first run of an item
	opened    *state.Case              // the case that the command has opened last; nil if it has opened none
	lent      bool                     // a callback was called, which may keep the machine
}

// choice is the route that the caller wants for the split of the completed task.
type choice struct {
	at workitem.CaseID
	t  net.TaskID
	to []string
}

// New returns a machine for one command. The tree must be between Begin and End.
func New(ctx context.Context, host Host, tree *state.Tree, now time.Time, by string) *Machine {
	m := new(Machine)
	m.agenda.init()
	m.changes = make([]state.Change, 0, 12) // enough for most commands
	m.prepare(ctx, host, tree, now, by)
	return m
}

// Reuse is like [New], with the memory of a machine whose command has ended; nil is allowed. A machine that a callback
// has seen is not reused: the callback may have kept it, and would have control of another command. Machines
// were a tenth of what a case of one item allocates.
func Reuse(m *Machine, ctx context.Context, host Host, tree *state.Tree, now time.Time, by string) *Machine {
	if m == nil || m.lent {
		return New(ctx, host, tree, now, by)
	}
	m.agenda.reset()
	m.joins.reset()
	clear(m.ending)
	*m = Machine{record: m.record, agenda: m.agenda, joins: m.joins, ending: m.ending}
	m.prepare(ctx, host, tree, now, by)
	return m
}

// IsLent reports whether a callback may still have the machine.
func (m *Machine) IsLent() bool { return m.lent }

func (m *Machine) prepare(ctx context.Context, host Host, tree *state.Tree, now time.Time, by string) {
	m.record.prepare(tree, now, by, host.IDs())
	m.ctx, m.host, m.cause = ctx, host, activities.CauseCaller
}

// Changes returns the changes of the command. The machine may reuse the slice.
func (m *Machine) Changes() []state.Change { return m.changes }

// run executes the agenda down to the given height; see [agenda.run]. The outermost run also evaluates the joins that
// were touched. An inner run does not: the joins of other cases would otherwise be enabled in the middle of a callback,
// before the steps that come first.
func (m *Machine) run(base int) error {
	for {
		if err := m.agenda.run(base); err != nil {
			return err
		}
		// A sweep puts the joins that it has to try on the agenda; when none is left, the command is complete.
		if base > 0 || !m.sweepAll() {
			return nil
		}
	}
}

// definition returns the definition of a case.
func (m *Machine) definition(c *state.Case) (*workflow.Definition, error) {
	if d := m.host.Definition(c.Fingerprint); d != nil {
		return d, nil
	}
	return nil, &NotLoadedError{Case: c.ID, Workflow: c.Workflow, Version: c.Version, Fingerprint: c.Fingerprint}
}

// NotLoadedError says that the engine was not opened with the definition of a case. It is an [ErrUnknown].
type NotLoadedError struct {
	Case     workitem.CaseID
	Workflow string
	Version  string // "" for a definition without one

	Fingerprint string // of the definition
}

// Error names the case, the definition, and what to do.
func (e *NotLoadedError) Error() string {
	return fmt.Sprintf("case %s runs on %s, which the engine was not opened with: open it with that too, or act through the program "+
		"that has it", e.Case, versioned(e.Workflow, e.Version))
}

// Is reports whether the target is [ErrUnknown].
func (e *NotLoadedError) Is(target error) bool { return target == ErrUnknown }

// versioned returns the name of a workflow with its version, if it has one, for errors.
func versioned(name, version string) string {
	if version == "" {
		return "workflow " + name
	}
	return "workflow " + name + " version " + version
}

// spec returns the part of a definition that concerns one task, besides the net: callbacks, policy, timers.
func (m *Machine) spec(c *state.Case, t net.TaskID) (*workflow.Task, error) {
	d, err := m.definition(c)
	if err != nil {
		return nil, err
	}
	return &d.Tasks[t], nil
}

// call runs a callback. Its error names the callback and the place where its task was declared.
//
// The callback has control during the call (see [Control]). An abandoned callback may still run when call returns: control is
// revoked then, so that it cannot touch a tree that another command works on.
func (m *Machine) call(c *state.Case, t net.TaskID, what string, f func(context.Context) error) error {
	m.lent = true
	control := m.host.Control()
	control.Give()
	err := m.host.Call(m.ctx, func(ctx context.Context) error {
		// A callback that creates an item or a child case comes back here; what it so calls runs within its own time.
		outer := m.ctx
		m.ctx = ctx
		defer func() { m.ctx = outer }()
		return f(ctx)
	})
	if errors.Is(err, ErrAbandoned) {
		control.Revoke()
	} else if in := control.Take(); in != nil {
		return in
	}
	return located(c, t, what, err)
}

// located adds its origin to an error; nil stays nil.
func located(c *state.Case, t net.TaskID, what string, err error) error {
	if err == nil {
		return nil
	}
	where := "case of " + c.Workflow
	if t >= 0 {
		where = c.Workflow + "/" + c.Net.TaskName(t)
		if pos := c.Net.Task(t).Pos.String(); pos != "" {
			where += " (" + pos + ")"
		}
	}
	return fmt.Errorf("%s of %s: %w", what, where, err)
}

// info is [Info] with what only the tree has, for callbacks in the transaction.
func (m *Machine) info(c *state.Case) activities.CaseInfo {
	info := Info(c)
	info.Children = func(task string) []activities.ChildOutput { return m.childOutputs(c, task) }
	return info
}

// childOutputs returns the outputs of the completed child cases of the latest activation of a composite task, oldest
// first. It searches backwards and stops at the first child of an earlier activation, since the children of a case are
// in the order of their creation: otherwise each round of a loop would visit the children of all rounds before it.
func (m *Machine) childOutputs(c *state.Case, task string) []activities.ChildOutput {
	t, ok := c.Net.TaskByName(task)
	if !ok {
		return nil
	}
	var list []activities.ChildOutput
	for _, id := range slices.Backward(c.Children) {
		child := m.tree.Case(id)
		if child == nil || child.ParentTask != task {
			continue
		}
		if child.Generation < c.Tasks[t].Generation {
			break // the rest belongs to earlier activations
		}
		if child.State == state.CaseCompleted {
			list = append(list, activities.ChildOutput{Case: id, Workflow: child.Workflow, Output: child.Output})
		}
	}
	slices.Reverse(list)
	return list
}

// Info returns the description of a case for callbacks. It refers to the case without copying, since a *state.Case
// never changes.
func Info(c *state.Case) activities.CaseInfo {
	return activities.CaseInfo{
		ID: c.ID, Root: c.Root, Parent: c.Parent, ParentTask: c.ParentTask, Workflow: c.Workflow, Version: c.Version,
		Fingerprint: c.Fingerprint, Input: c.Input, Options: c.Options, Predecessor: c.Predecessor, Key: c.Key, Labels: c.Labels, State: c.ItemState(),
		Output: c.Output, Failure: c.Failure,
		Outputs: func(task string) json.RawMessage {
			if t, ok := c.Net.TaskByName(task); ok {
				return c.Tasks[t].Output
			}
			return nil
		},
	}
}
