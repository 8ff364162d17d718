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
	"errors"
	"time"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
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
//
// It is made of parts, each of which is the life cycle of one thing. A part uses those below it, and knows of those above only what an
// interface says:
//
//	Repairs, Leases, Steps, Timers                          commands; nothing below asks them
//	cases         uses activations                          is asked by jobs (caseEnder), activations (activationCases)
//	activations   uses items, routes, joins, incidents      is asked by items (itemOwner)
//	items         uses jobs, recorded steps
//	incidents     uses jobs
//	Messages      uses jobs
//	jobs
//
// All of them change the tree by the record, and continue by the agenda.
type Machine struct {
	record
	agenda      agenda
	joins       joins
	keys        keys
	callbacks   callbacks
	definitions definitions

	jobs        jobs
	messages    Messages
	incidents   incidents
	recorded    recordedSteps
	items       items
	routes      routes
	activations activations
	cases       cases
	effects     effects

	leases  Leases
	steps   Steps
	timers  Timers
	repairs Repairs
}

// New returns a machine for one command. The tree must be between Begin and End.
func New(ctx context.Context, host Host, tree *state.Tree, now time.Time, by string) *Machine {
	m := new(Machine)
	m.connect()
	m.changes = make([]state.Change, 0, 12) // enough for most commands
	m.prepare(ctx, host, tree, now, by)
	return m
}

// connect gives each part the others that it uses. A machine stays where it is from then on.
func (m *Machine) connect() {
	r, a, b, d, j := &m.record, &m.agenda, &m.callbacks, &m.definitions, &m.jobs
	m.agenda.init(m.activations.sweepAll)
	m.callbacks = callbacks{record: r, effects: &m.effects}
	m.jobs = jobs{record: r, agenda: a, cases: &m.cases}
	m.messages = Messages{record: r, jobs: j}
	m.incidents = incidents{record: r, agenda: a, jobs: j, cases: &m.cases}
	m.recorded = recordedSteps{record: r}
	m.items = items{record: r, agenda: a, callbacks: b, definitions: d, jobs: j, recorded: &m.recorded, activations: &m.activations}
	m.routes = routes{callbacks: b}
	m.activations = activations{record: r, agenda: a, joins: &m.joins, callbacks: b, definitions: d, jobs: j, incidents: &m.incidents,
		items: &m.items, routes: &m.routes, cases: &m.cases}
	m.cases = cases{record: r, agenda: a, joins: &m.joins, callbacks: b, definitions: d, jobs: j, recorded: &m.recorded, keys: &m.keys,
		activations: &m.activations}
	m.leases = Leases{record: r, agenda: a, callbacks: b, definitions: d, jobs: j, incidents: &m.incidents, items: &m.items,
		recorded: &m.recorded}
	m.steps = Steps{record: r, agenda: a, callbacks: b, definitions: d, jobs: j, leases: &m.leases, messages: &m.messages,
		recorded: &m.recorded, cases: &m.cases}
	m.timers = Timers{record: r, agenda: a, callbacks: b, definitions: d, jobs: j, incidents: &m.incidents, items: &m.items,
		activations: &m.activations, cases: &m.cases}
	m.repairs = Repairs{record: r, agenda: a, joins: &m.joins, keys: &m.keys, callbacks: b, definitions: d, jobs: j,
		incidents: &m.incidents, recorded: &m.recorded, items: &m.items, routes: &m.routes, activations: &m.activations, cases: &m.cases}
	m.effects = effects{record: r, agenda: a, callbacks: b, definitions: d, jobs: j, items: &m.items, cases: &m.cases}
}

// Reuse is like [New], with the memory of a machine whose command has ended; nil is allowed. A machine that a callback
// has seen is not reused: the callback may have kept it, and would have control of another command. Machines
// were a tenth of what a case of one item allocates.
func Reuse(m *Machine, ctx context.Context, host Host, tree *state.Tree, now time.Time, by string) *Machine {
	if m == nil || m.IsLent() {
		return New(ctx, host, tree, now, by)
	}
	m.reset()
	m.prepare(ctx, host, tree, now, by)
	return m
}

// reset forgets what was of a command, and keeps the memory.
func (m *Machine) reset() {
	m.agenda.reset()
	m.joins.reset()
	m.keys = keys{}
	m.recorded.copied, m.routes.choice = nil, nil
	m.activations.reset()
	clear(m.cases.ending)
}

// IsLent reports whether a callback may still have the machine.
func (m *Machine) IsLent() bool { return m.callbacks.lent }

func (m *Machine) prepare(ctx context.Context, host Host, tree *state.Tree, now time.Time, by string) {
	m.record.prepare(tree, now, by, host.IDs())
	m.callbacks.prepare(ctx, host)
	m.effects.host, m.definitions.host, m.recorded.host, m.messages.tokens = host, host, host, host
	m.cases.suspensions, m.keys.cases = host, host
}

// Leases returns what gives jobs to workers.
func (m *Machine) Leases() *Leases { return &m.leases }

// Steps returns what records the steps of functions.
func (m *Machine) Steps() *Steps { return &m.steps }

// Timers returns what executes jobs that are due.
func (m *Machine) Timers() *Timers { return &m.timers }

// Messages returns what sends events.
func (m *Machine) Messages() *Messages { return &m.messages }

// Repairs returns what a person does to a case that does not continue.
func (m *Machine) Repairs() *Repairs { return &m.repairs }

// Changes returns the changes of the command. The machine may reuse the slice.
func (m *Machine) Changes() []state.Change { return m.changes }
