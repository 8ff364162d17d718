package builder

import (
	"context"
	"slices"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// Cases describes the child cases of a composite task. C is the input of the child workflow. The zero value runs one
// case, if a missing payload is a valid C.
type Cases[C any] struct {
	// Input is the input of the one child case.
	Input Source[C]
	// Items makes the inputs of several child cases, one each; it takes the place of Input. An empty list makes none: the task stays
	// enabled, and the case waits until a callback adds a child case. If a list may be empty and no callback adds cases, let an
	// xor-split before the task bypass it.
	Items func(context.Context, *activities.Activation) ([]C, error)

	OnEnabled              func(context.Context, *activities.Activation) error
	OnStarted              func(context.Context, *activities.Activation) error
	OnCompleted            func(context.Context, *activities.Activation) error
	OnFailed               func(context.Context, *activities.Activation) error
	OnCanceled             func(context.Context, *activities.Activation) error
	OnDisabled             func(context.Context, *activities.Activation) error
	OnWorkItemStateChanged func(context.Context, *activities.Change) error // of a child case

	Join, Split Rule               // needed where several flows meet or part
	Route       Router             // for a Split of Xor or Or; nil if its flows say
	Policy      workitem.Policy    // what the end of a child case means for the task
	Timers      []activities.Timer // of the task
}

// Choice describes the child cases of a dynamic composite task.
type Choice struct {
	// Of lists the workflows that the task may run.
	Of []Definition
	// Cases returns the child cases to create when the task is enabled: return
	// []activities.NewCase{small.Case(a), large.Case(b)}, nil.
	Cases func(context.Context, *activities.Activation) ([]activities.NewCase, error)

	OnEnabled              func(context.Context, *activities.Activation) error
	OnStarted              func(context.Context, *activities.Activation) error
	OnCompleted            func(context.Context, *activities.Activation) error
	OnFailed               func(context.Context, *activities.Activation) error
	OnCanceled             func(context.Context, *activities.Activation) error
	OnDisabled             func(context.Context, *activities.Activation) error
	OnWorkItemStateChanged func(context.Context, *activities.Change) error // of a child case

	Join, Split Rule               // needed where several flows meet or part
	Route       Router             // for a Split of Xor or Or; nil if its flows say
	Policy      workitem.Policy    // what the end of a child case means for the task
	Timers      []activities.Timer // of the task
}

// Definition is a built workflow of any type.
type Definition interface {
	Untyped() *workflow.Definition
}

// CompositeRef is the handle of a composite task.
type CompositeRef struct{ n *node }

// Name is the task's name.
func (r *CompositeRef) Name() string { return r.node().nameOf() }

func (r *CompositeRef) node() *node {
	if r == nil {
		return nil
	}
	return r.n
}

func (r *CompositeRef) member() (*draft, string) { return r.node().asMember() }

// Composite declares a task whose work is done by child cases of one workflow.
func Composite[C, CI any](b *Builder[C], name string, child *Workflow[CI], c Cases[CI]) *CompositeRef {
	d := b.draft()
	n := d.declare(name, compositeNode, caller())
	n.join, n.split, n.route, n.worker = c.Join, c.Split, c.Route, true
	n.task.Policy, n.task.Timers = c.Policy, c.Timers
	n.task.Hooks = activities.TaskHooks{
		OnEnabled: c.OnEnabled, OnStarted: c.OnStarted, OnCompleted: c.OnCompleted, OnFailed: c.OnFailed,
		OnCanceled: c.OnCanceled, OnDisabled: c.OnDisabled, OnWorkItemStateChanged: c.OnWorkItemStateChanged,
	}
	var of []Definition
	if child != nil {
		of = append(of, child)
	}
	d.children(n, of)
	d.inputs(n, c.Input.s, itemsOf(c.Items))
	n.task.Cases, n.task.Inputs = casesOf(n.task.Inputs), nil
	if child != nil && n.task.Cases == nil && child.Definition != nil && child.Accept != nil {
		if _, err := child.Accept(nil); err != nil {
			d.at(n, MissingInput, "composite task %q has neither Input nor Items (a source made of nil is none), and workflow %q refuses a "+
				"missing input: %s", name, child.Name, oneLine(err))
		}
	}
	d.checkTimers(n)
	d.checkPolicy(n)
	return &CompositeRef{n}
}

// casesOf makes a child case of every input.
func casesOf(in inputs) func(context.Context, *activities.Activation) ([]activities.NewCase, error) {
	if in == nil {
		return nil
	}
	return func(ctx context.Context, a *activities.Activation) ([]activities.NewCase, error) {
		raw, err := in(ctx, a)
		if err != nil {
			return nil, err
		}
		cases := make([]activities.NewCase, len(raw))
		for i := range raw {
			cases[i].Input = raw[i]
		}
		return cases, nil
	}
}

// Dynamic declares a composite task whose child cases are chosen when the task is enabled, among several
// workflows.
func (b *Builder[C]) Dynamic(name string, c Choice) *CompositeRef {
	d := b.draft()
	n := d.declare(name, compositeNode, caller())
	n.join, n.split, n.route, n.worker = c.Join, c.Split, c.Route, true
	n.task.Policy, n.task.Timers, n.task.Cases = c.Policy, c.Timers, c.Cases
	n.task.Hooks = activities.TaskHooks{
		OnEnabled: c.OnEnabled, OnStarted: c.OnStarted, OnCompleted: c.OnCompleted, OnFailed: c.OnFailed,
		OnCanceled: c.OnCanceled, OnDisabled: c.OnDisabled, OnWorkItemStateChanged: c.OnWorkItemStateChanged,
	}
	d.children(n, c.Of)
	if c.Cases == nil {
		d.at(n, NilFunction, "dynamic composite task %q has no Cases; nothing else can choose what it runs", name)
	}
	n.notes = append(n.notes, "cases: code")
	d.checkTimers(n)
	d.checkPolicy(n)
	return &CompositeRef{n}
}

// children notes the workflows that a composite task may run.
func (d *draft) children(n *node, of []Definition) {
	n.task.Of = make(map[string]*workflow.Definition, len(of))
	if len(of) == 0 {
		d.at(n, MissingWorkflow, "composite task %q has no workflow to run; build it first", n.name)
	}
	for _, w := range of {
		child := untypedOf(w)
		switch {
		case child == nil:
			d.at(n, MissingWorkflow, "a workflow of composite task %q is nil; build it first", n.name)
		case n.task.Of[child.Name] != nil:
			d.at(n, DuplicateWorkflow, "composite task %q has two workflows named %q, so that none can be "+
				"chosen by name", n.name, child.Name)
		default:
			n.task.Of[child.Name] = child
			n.of = append(n.of, child)
		}
	}
	slices.SortFunc(n.of, func(a, b *workflow.Definition) int { return compareText(a.Name, b.Name) })
}

// untypedOf bears with interfaces that hold a nil workflow.
func untypedOf(w Definition) *workflow.Definition {
	switch w := w.(type) {
	case nil:
		return nil
	case interface{ isNil() bool }:
		if w.isNil() {
			return nil
		}
	}
	d := w.Untyped()
	if d == nil || d.Net == nil {
		return nil
	}
	return d
}

func workflowsOf(n *node) []string {
	var names []string
	for _, d := range n.of {
		names = append(names, d.Name)
	}
	return names
}

func (n *node) netKind() net.Kind {
	switch n.kind {
	case routingNode:
		return net.Routing
	case compositeNode:
		return net.Composite
	}
	return net.Atomic
}
