package builder

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/domain"
	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/schedule"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// Work describes the work of a task, with inputs of type In and outputs of type Out. The zero value of every field adds
// nothing; a task whose Work is the zero value has one item, for a person to do. Use any or struct{} for no payload.
type Work[In, Out any] struct {
	// Input is the input of the task's one item. It may be left out if a missing payload is a valid In.
	Input Source[In]
	// Items computes the inputs of several items, instead of Input: one item for each. An empty list creates none: the task stays
	// enabled, and the case waits until a callback or workflow.AddItem adds an item. If a list may be empty and nothing adds items,
	// let an xor-split before the task bypass it.
	Items func(context.Context, *activities.Activation) ([]In, error)

	// Run does the work in a worker, outside any transaction, at least once; nil leaves the work to a person or another program.
	// Its error fails the item; [workitem.FailureOf], [workitem.Fatal], retry.After and retry.Permanent describe what an error
	// can say. [WorkFrom] returns the job that it is called for.
	Run        func(context.Context, In) (Out, error)
	Limits     []Need          // what each attempt of Run acquires before it starts; see [Limits]
	Hours      schedule.Window // when Run may start; the zero value is always; see [Hours]
	FairBy     func(In) string // the key for fair scheduling; nil is the same key for all; see [FairBy]
	RunTimeout time.Duration   // the time limit of one run, which then fails with the code "timeout"; 0 is no limit
	// Batch processes several items in one call, instead of Run. What is said of Run applies to each of them.
	Batch Batched[In, Out]
	// Retry replaces a failed item with a new one after a backoff, until the policy gives up. It is the same as
	// [activities.Retry] in OnWorkItemStateChanged, and can be combined with a function there. The policy is part of the
	// definition and its fingerprint. The zero value does not retry.
	Retry retry.Policy
	// DeadLetter is the workflow of which an item that failed for good starts a case, see [DeadLetter]; nil for none.
	DeadLetter Startable[workflow.Letter]
	Auto       bool // every item starts and completes at once, in the transaction that created it

	// Actions run in the transaction, before the state of the item changes; an error rolls the command back.
	Initialize func(context.Context, *activities.Item, In) error
	Start      func(context.Context, *activities.Item) error
	Complete   func(context.Context, *activities.Item, Out) error
	Fail       func(context.Context, *activities.Item, *workitem.Failure) error // the failure is nil if none was given
	Cancel     func(context.Context, *activities.Item, *workitem.Failure) error // the reason is nil if none was given
	Reset      func(context.Context, *activities.Item) error

	// Activities react to changes, in the transaction, after the change; see package activities.
	OnEnabled              func(context.Context, *activities.Activation) error
	OnStarted              func(context.Context, *activities.Activation) error
	OnCompleted            func(context.Context, *activities.Activation) error
	OnFailed               func(context.Context, *activities.Activation) error
	OnCanceled             func(context.Context, *activities.Activation) error
	OnDisabled             func(context.Context, *activities.Activation) error
	OnWorkItemStateChanged func(context.Context, *activities.Change) error
	Item                   activities.ItemHooks

	Join, Split   Rule   // needed where several flows meet or part
	Route         Router // for a Split of Xor or Or; nil if its flows say
	RouteByCaller bool   // the caller that completes the item chooses, with the option [Route]

	Policy   workitem.Policy // what an item's final state means for the task; the zero value is workitem.Default
	Queue    string          // who may do the work; "" is the default queue
	Priority int             // higher goes first

	// Timeout fails an item that has not ended this long after it became due, with the code "timeout", which
	// OnWorkItemStateChanged and Policy handle like any failure. CancelAfter cancels the item instead, so that the task
	// can complete without an output. 0 is no limit.
	Timeout, CancelAfter time.Duration
	Timers               []activities.Timer
}

// Task declares a task with work items. Its handle joins it with flows, and acts on its items later.
func Task[C, In, Out any](b *Builder[C], name string, w Work[In, Out]) *TaskRef[In, Out] {
	return newTask(b, name, caller(), w)
}

func newTask[C, In, Out any](b *Builder[C], name string, pos net.Pos, w Work[In, Out]) *TaskRef[In, Out] {
	d := b.draft()
	n := d.declare(name, taskNode, pos)
	onlyFailures := w.OnWorkItemStateChanged == nil // the policy answers nothing else
	w.OnWorkItemStateChanged = d.withRetry(n, w.Retry, w.OnWorkItemStateChanged)
	n.join, n.split, n.route, n.routeByCaller = w.Join, w.Split, w.Route, w.RouteByCaller
	n.worker = w.Run != nil || w.Auto
	n.task = workflow.Task{
		Queue: w.Queue, Priority: w.Priority, Policy: w.Policy, Auto: w.Auto,
		Accept: acceptTask[In, Out](), AcceptIsPlain: domain.IsPlain(reflect.TypeFor[In]()) && domain.IsPlain(reflect.TypeFor[Out]()),
		InputType: reflect.TypeFor[In](), OnlyFailures: onlyFailures,
		Actions: actionsOf(w), Hooks: hooksOf(w), ItemHooks: w.Item,
		Timers: timersOf(w.Timeout, w.CancelAfter, w.Timers), RunTimeout: w.RunTimeout,
		Retry: activities.RetryOf(w.OnWorkItemStateChanged), Function: activities.Function{Decode: decoderOf[In]()},
	}
	if w.Run != nil {
		n.task.Run, n.task.RunAccepts = runnerOf(w.Run), isAccepted[Out]()
	}
	if !w.Batch.isZero() {
		batched(d, n, w.Batch, w.Run != nil)
	}
	n.task.Limits, n.task.Hours = usesOf(w.Limits), w.Hours
	if w.FairBy != nil {
		n.task.FairBy = withInput(w.FairBy)
	}
	if w.DeadLetter != nil {
		n.task.DeadLetter = d.letters(w.DeadLetter, fmt.Sprintf("task %q", name), name, pos)
		n.notes = append(n.notes, "dead letter: "+lettersOf(n.task.DeadLetter))
	}
	d.checkNeeds(fmt.Sprintf("task %q", name), name, pos, reflect.TypeFor[In](), w.Limits)
	d.inputs(n, w.Input.s, itemsOf(w.Items))
	checkType[In](d, fmt.Sprintf("the input of task %q", name), name, pos)
	checkType[Out](d, fmt.Sprintf("the output of task %q", name), name, pos)
	d.checkNonNegative(n, "Timeout", w.Timeout)
	d.checkNonNegative(n, "CancelAfter", w.CancelAfter)
	d.checkQueue(fmt.Sprintf("task %q", name), name, pos, w.Queue)
	if err := workflow.CheckPriority(w.Priority); err != nil {
		d.problem(BadPriority, name, pos, "task %q: %s", name, oneLine(err))
	}
	d.checkWork(n)
	return &TaskRef[In, Out]{n}
}

// stateChanged is the type of OnWorkItemStateChanged.
type stateChanged = func(context.Context, *activities.Change) error

// withRetry adds a task's retry policy to what else answers its changes.
func (d *draft) withRetry(n *node, p retry.Policy, answer stateChanged) stateChanged {
	if reflect.ValueOf(p).IsZero() {
		return answer
	}
	n.notes = append(n.notes, "retry: "+p.String())
	if answer == nil {
		return activities.Retry(p)
	}
	if !reflect.ValueOf(activities.RetryOf(answer)).IsZero() {
		d.at(n, Conflict, "task %q has Retry, and another retry policy in OnWorkItemStateChanged, so each failure would make two items; "+
			"give it one of them", n.name)
	}
	return activities.All(answer, activities.Retry(p))
}

func hooksOf[In, Out any](w Work[In, Out]) activities.TaskHooks {
	return activities.TaskHooks{
		OnEnabled: w.OnEnabled, OnStarted: w.OnStarted, OnCompleted: w.OnCompleted, OnFailed: w.OnFailed,
		OnCanceled: w.OnCanceled, OnDisabled: w.OnDisabled, OnWorkItemStateChanged: w.OnWorkItemStateChanged,
	}
}

func timersOf(timeout, cancel time.Duration, timers []activities.Timer) []activities.Timer {
	var all []activities.Timer
	if timeout > 0 {
		all = append(all, activities.Timeout(timeout))
	}
	if cancel > 0 {
		all = append(all, activities.CancelAfter(cancel))
	}
	return append(all, timers...)
}

// inputs makes the payloads of an activation.
type inputs = func(context.Context, *activities.Activation) ([]json.RawMessage, error)

// inputs joins the two ways in which a task, or a composite task, gets its payloads.
func (d *draft) inputs(n *node, one sourceOf, several inputs) {
	one.pos = n.pos
	switch {
	case one.read != nil && several != nil:
		d.at(n, AmbiguousInput, "task %q has both Input and Items; give it one of them", n.name)
		n.task.Inputs = several
	case several != nil:
		n.task.Inputs, n.notes = several, append(n.notes, "items: code")
	case one.read != nil:
		d.sources = append(d.sources, use{by: n, sourceOf: one})
		n.notes = append(n.notes, "input: "+one.String())
		n.task.Inputs = func(ctx context.Context, a *activities.Activation) ([]json.RawMessage, error) {
			raw, err := one.read(ctx, a, nil)
			return []json.RawMessage{raw}, err
		}
		n.task.PlainInput = one.plain
	}
}

func itemsOf[In any](items func(context.Context, *activities.Activation) ([]In, error)) inputs {
	if items == nil {
		return nil
	}
	return func(ctx context.Context, a *activities.Activation) ([]json.RawMessage, error) {
		inputs, err := items(ctx, a)
		if err != nil {
			return nil, err
		}
		raw := make([]json.RawMessage, len(inputs))
		for i, in := range inputs {
			if raw[i], err = encode(in); err != nil {
				return nil, fmt.Errorf("input of item %d of %d: %w", i+1, len(inputs), err)
			}
		}
		return raw, nil
	}
}

type action = func(context.Context, *activities.Item, json.RawMessage) error

func actionsOf[In, Out any](w Work[In, Out]) map[workitem.Action]action {
	all := make(map[workitem.Action]action)
	for a, f := range map[workitem.Action]action{
		workitem.Initialize: typed(w.Initialize), workitem.Complete: typed(w.Complete),
		workitem.Start: plain(w.Start), workitem.Reset: plain(w.Reset),
		workitem.Fail: typed(w.Fail), workitem.Cancel: typed(w.Cancel),
	} {
		if f != nil {
			all[a] = f
		}
	}
	return all
}

func typed[P any](f func(context.Context, *activities.Item, P) error) action {
	if f == nil {
		return nil
	}
	return func(ctx context.Context, it *activities.Item, payload json.RawMessage) error {
		p, err := restore[P](payload)
		if err != nil {
			return err
		}
		return f(ctx, it, p)
	}
}

func plain(f func(context.Context, *activities.Item) error) action {
	if f == nil {
		return nil
	}
	return func(ctx context.Context, it *activities.Item, _ json.RawMessage) error { return f(ctx, it) }
}

// checkWork finds what cannot be right whatever the net looks like.
func (d *draft) checkWork(n *node) {
	t := &n.task
	d.checkTimers(n)
	d.checkNonNegative(n, "RunTimeout", t.RunTimeout)
	if t.RunTimeout > 0 && !t.HasWorker() {
		d.at(n, Conflict, "task %q has a RunTimeout but no Run; use Timeout to bound the work of others", n.name)
	}
	if len(t.Limits) > 0 && !t.HasWorker() {
		d.at(n, Conflict, "task %q has Limits but no Run; limits bound what workers do", n.name)
	}
	if t.Batch != nil && slices.ContainsFunc(t.Limits, func(u workflow.Use) bool { return u.Any != nil }) {
		d.at(n, BadLimit, "task %q is done in batches and takes of any of several keys, so each item of a batch might have another one; "+
			"give it Run in place of Batch, or let its limits have no AnyOf", n.name)
	}
	if !t.Hours.IsZero() && !t.HasWorker() {
		d.at(n, Conflict, "task %q has Hours but no Run; hours say when workers may begin", n.name)
	}
	if t.FairBy != nil && !t.HasWorker() {
		d.at(n, Conflict, "task %q has FairBy but no Run; turns are between the keys of what workers do", n.name)
	}
	if t.Auto && t.HasWorker() {
		d.at(n, Conflict, "task %q is Auto and has Run; an automatic item completes without being run", n.name)
	}
	if t.Auto {
		if _, err := t.Accept(workitem.Complete, nil); err != nil {
			d.at(n, MissingOutput, "task %q is Auto, so its items complete without an output, which its type "+
				"refuses: %s", n.name, oneLine(err))
		}
	}
	if t.Inputs == nil {
		if _, err := t.Accept(workitem.Initialize, nil); err != nil && !isTypeError(err) {
			d.at(n, MissingInput, "task %q has neither Input nor Items (a source made of nil is none), and its type refuses a missing input: %s",
				n.name, oneLine(err))
		}
	}
	d.checkPolicy(n)
}

// checkPolicy looks at what a task does when something of it has ended.
func (d *draft) checkPolicy(n *node) {
	if err := activities.Refused(n.task.Hooks.OnWorkItemStateChanged); err != nil {
		d.at(n, BadRetry, "the retry of task %q cannot work: %s", n.name, oneLine(err))
	}
	if wrong := n.task.Policy.Problem(); wrong != "" {
		d.at(n, BadPolicy, "the policy of task %q cannot be used: %s", n.name, wrong)
	} else if n.task.Policy.Name() == "" {
		d.at(n, BadName, "the policy of task %q has no name; give workitem.NewPolicy one, since it is part "+
			"of the fingerprint", n.name)
	}
}

// checkQueue refuses a text that cannot be the name of a queue.
func (d *draft) checkQueue(of, subject string, pos net.Pos, queue string) {
	if err := workflow.CheckName("queue", queue); err != nil {
		d.problem(BadQueue, subject, pos, "%s: %s", of, oneLine(err))
	}
}

func (d *draft) checkNonNegative(n *node, what string, t time.Duration) {
	if t < 0 {
		d.at(n, NegativeDuration, "the %s of task %q is %s; give zero or more", what, n.name, t)
	}
}

func (d *draft) checkTimers(n *node) {
	seen := make(map[string]bool)
	for _, timer := range n.task.Timers {
		switch {
		case timer.Name == "":
			d.at(n, BadName, "a timer of task %q has no name; the jobs table shows it", n.name)
		case seen[timer.Name]:
			d.at(n, DuplicateTimer, "task %q has two timers named %q; give each its own name (Timeout is "+
				"\"timeout\", CancelAfter \"cancel\")", n.name, timer.Name)
		}
		seen[timer.Name] = true
		d.checkNonNegative(n, fmt.Sprintf("timer %q", timer.Name), timer.After)
		if timer.Does != workitem.NoAction && timer.After == 0 {
			d.at(n, NegativeDuration, "timer %q of task %q ends its items after no time at all; give more than zero",
				timer.Name, n.name)
		}
		if (timer.Item == nil) == (timer.Task == nil) {
			d.at(n, NilFunction, "timer %q of task %q needs exactly one of Item and Task", timer.Name, n.name)
		}
		if n.kind == compositeNode && (timer.Item != nil || timer.Does != workitem.NoAction) {
			d.at(n, Conflict, "timer %q of composite task %q is for items, which it does not have; use a Timer "+
				"with a function of its own for the Task",
				timer.Name, n.name)
		}
	}
}

func isTypeError(err error) bool {
	var e *domain.TypeError
	return asError(err, &e)
}
