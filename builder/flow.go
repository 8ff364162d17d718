package builder

import (
	"context"
	"fmt"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/net"
)

// Predicate decides whether a split takes a flow. It runs in the transaction, as the task completes; an error rolls the
// command back.
type Predicate = func(context.Context, *activities.Activation) (bool, error)

// FlowRef is the handle of a flow.
type FlowRef struct {
	d         *draft
	from, to  *node // nil in a flow that was refused
	pos       net.Pos
	when      Predicate
	otherwise bool
	chosen    net.Pos // where When or Otherwise was called
}

func (f *FlowRef) name() string { return net.ImplicitName(f.from.nameOf(), f.to.nameOf()) }

func (f *FlowRef) member() (*draft, string) {
	if f == nil {
		return nil, ""
	}
	return f.d, f.name()
}

// refused reports whether an end of the flow was no node, which is a problem already.
func (f *FlowRef) refused() bool { return f.from == nil || f.to == nil }

// Path declares the flows along a line: b.Path(b.Start(), draft, review, b.End()) declares three. A flow that is
// already there stays as it is, so paths may share a part.
func (b *Builder[C]) Path(nodes ...Node) {
	pos := caller()
	if len(nodes) < 2 {
		b.d.problem(ShortPath, b.d.name, pos, "a path of workflow %q needs two nodes or more, and has %d",
			b.d.name, len(nodes))
	}
	for i := 1; i < len(nodes); i++ {
		b.d.flow(nodes[i-1], nodes[i], pos)
	}
}

// Flow declares a flow, or finds the one that is already there. A split tries its flows in the order of their first
// declaration.
func (b *Builder[C]) Flow(from, to Node) *FlowRef { return b.d.flow(from, to, caller()) }

func (d *draft) flow(from, to Node, pos net.Pos) *FlowRef {
	d.frozen("a flow", pos)
	f := &FlowRef{d: d, pos: pos}
	f.from, f.to = d.own(from, "the origin of a flow", pos), d.own(to, "the target of a flow", pos)
	if f.refused() {
		return f
	}
	for _, old := range d.flows {
		if old.from == f.from && old.to == f.to {
			return old
		}
	}
	d.flows = append(d.flows, f)
	return f
}

// When has the split of the flow's task take it if p is true: a [Xor] split takes the first such flow, an [Or] split
// all of them. See [WhenOutput] for a predicate on a payload.
func (f *FlowRef) When(p Predicate) *FlowRef {
	pos := caller()
	f.choose(pos)
	if p == nil {
		f.d.problem(NilFunction, f.name(), pos, "When of flow %q is given no function", f.name())
		p = func(context.Context, *activities.Activation) (bool, error) { return false, nil }
	}
	f.when = p
	return f
}

// Otherwise has the split of the flow's task take it if no other flow is taken.
func (f *FlowRef) Otherwise() *FlowRef {
	f.choose(caller())
	f.otherwise = true
	return f
}

// choose notes that a flow has a condition, and a problem if it already had one.
func (f *FlowRef) choose(pos net.Pos) {
	f.d.frozen("a condition of flow "+f.name(), pos)
	if !f.chosen.IsZero() {
		f.d.problem(AmbiguousFlow, f.name(), pos, "flow %q has a second condition; give it one When, or one Otherwise",
			f.name())
		f.d.other(f.chosen)
		return
	}
	f.chosen = pos
}

// WhenOutput is a predicate on the output that a task gave last: the task whose split it is, or an earlier one. It is
// an error if that task has given none.
func WhenOutput[In, Out any](t *TaskRef[In, Out], p func(Out) bool) Predicate {
	if t == nil || p == nil {
		return nil // which When reports
	}
	name := t.Name()
	return func(_ context.Context, a *activities.Activation) (bool, error) {
		raw, err := outputOf[Out](a.Case(), name)
		if err != nil {
			return false, err
		}
		out, err := restore[Out](raw)
		if err != nil {
			return false, fmt.Errorf("output of task %s: %w", name, err)
		}
		return p(out), nil
	}
}
