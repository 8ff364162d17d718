package builder

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/net"
)

// FlowRef is the handle of a flow out of a node with output type Out: the output of its items for a task, [None] for
// any other node.
type FlowRef[Out any] struct{ f *flow }

// None is the output type of nodes without an output: conditions, routing tasks and composite tasks.
type None struct{}

// Origin is a Node with its output type, from which a flow can start. No other package can implement it.
type Origin[Out any] interface {
	Node
	gives(Out)
}

func (t *TaskRef[In, Out]) gives(Out) {}
func (r *ConditionRef) gives(None)    {}
func (r *RoutingRef) gives(None)      {}
func (r *CompositeRef) gives(None)    {}

// flow is a declared flow without its type.
type flow struct {
	d         *draft
	from, to  *node // nil in a flow that was refused
	pos       net.Pos
	when      *sourceOf // of a bool
	otherwise bool
	without   bool
	chosen    net.Pos // where its condition was given
}

func (f *flow) name() string { return net.ImplicitName(f.from.nameOf(), f.to.nameOf()) }

// refused reports whether an end of the flow was no node, which is a problem already.
func (f *flow) refused() bool { return f.from == nil || f.to == nil }

func (r *FlowRef[Out]) flow() *flow {
	if r == nil {
		return nil
	}
	return r.f
}

func (r *FlowRef[Out]) member() (*draft, string) {
	if r == nil {
		return nil, ""
	}
	return r.f.d, r.f.name()
}

// Path declares the flows along a line: b.Path(b.Start(), draft, review, b.End()) declares three. A flow that is
// already there stays as it is, so paths may share a part.
func (b *Builder[C]) Path(nodes ...Node) {
	d, pos := b.draft(), caller()
	if len(nodes) < 2 {
		d.problem(ShortPath, d.name, pos, "a path of workflow %q needs two nodes or more, and has %d", d.name, len(nodes))
		d.lacksFlow = true
	}
	var from *node
	for i, handle := range nodes {
		to := d.own(handle, fmt.Sprintf("node %d of a path", i+1), pos)
		if i > 0 {
			d.connect(from, to, pos)
		}
		from = to
	}
}

// Flow declares a flow, or returns the existing one, so that a condition can be set on it. A split tries its flows in
// the order of their first declaration.
//
//	builder.Flow(b, review, publish).When(func(v Verdict) bool { return v.OK })
//	builder.Flow(b, review, draft).Otherwise()
func Flow[C, Out any](b *Builder[C], from Origin[Out], to Node) *FlowRef[Out] {
	return &FlowRef[Out]{b.draft().flow(from, to, caller())}
}

func (d *draft) flow(from, to Node, pos net.Pos) *flow {
	return d.connect(d.own(from, "the origin of a flow", pos), d.own(to, "the target of a flow", pos), pos)
}

// connect declares a flow. An end that is nil is a problem already.
func (d *draft) connect(from, to *node, pos net.Pos) *flow {
	d.frozen("a flow", pos)
	f := &flow{d: d, pos: pos, from: from, to: to}
	if f.refused() {
		d.lacksFlow = true
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

// When makes the split take this flow if p returns true for the output of the task: a Xor split takes the first such
// flow, an Or split all of them. For a task with several items, it is the output of the item that completed last. To
// decide on anything else use [FlowRef.If].
func (r *FlowRef[Out]) When(p func(Out) bool) *FlowRef[Out] {
	pos := caller()
	switch from := r.f.from; {
	case p == nil:
		r.f.noFunction("When", pos)
	case from == nil: // which is a problem already
	case from.kind == taskNode:
		r.f.decide(mapped(outputSource[Out](from).s, p), pos)
		return r
	case !from.kind.condition(): // where nothing is chosen at all, which is a problem of its own
		r.f.d.problem(StrayRoute, r.f.name(), pos, "flow %q has a When, but %q gives no output; use If", r.f.name(), from.name)
		r.f.d.other(from.pos)
	}
	r.f.decide(sourceOf{read: never}, pos)
	return r
}

// If makes the split take this flow if the source is true when the task completes. [Map] makes a condition of any
// payload, [From] one of the activation:
//
//	builder.Flow(b, sort, pay).If(builder.Map(builder.CaseInput(b), func(c Claim) bool { return c.Cents < 500 }))
func (r *FlowRef[Out]) If(s Source[bool]) *FlowRef[Out] {
	pos := caller()
	if s.s.read == nil {
		r.f.noFunction("If", pos)
		s.s.read = never
	}
	r.f.decide(s.s, pos)
	return r
}

// Otherwise makes the split take this flow if it takes no other one.
func (r *FlowRef[Out]) Otherwise() *FlowRef[Out] {
	r.f.choose(caller())
	r.f.otherwise = true
	return r
}

// WithoutOutput makes the split take this flow, and no other one, if the task completes without an output: all its items
// were canceled, or its policy ignores those that failed. The conditions of the other flows are then only asked about an
// output that exists. For a composite task, it is taken if none of its cases completed.
//
//	builder.Flow(b, review, publish).When(func(v Verdict) bool { return v.OK })
//	builder.Flow(b, review, draft).Otherwise()
//	builder.Flow(b, review, remind).WithoutOutput()
func (r *FlowRef[Out]) WithoutOutput() *FlowRef[Out] {
	pos := caller()
	r.f.choose(pos)
	r.f.without = true
	if from := r.f.from; from != nil && from.kind == routingNode {
		r.f.d.problem(StrayRoute, r.f.name(), pos, "flow %q is WithoutOutput, but %q never gives an output; use If or "+
			"Otherwise", r.f.name(), from.name)
		r.f.d.other(from.pos)
	}
	return r
}

func (f *flow) noFunction(what string, pos net.Pos) {
	f.d.problem(NilFunction, f.name(), pos, "%s of flow %q is given no function", what, f.name())
}

func never(context.Context, *activities.Activation, *activities.Case) (json.RawMessage, error) {
	return json.RawMessage("false"), nil
}

// decide gives a flow its condition.
func (f *flow) decide(s sourceOf, pos net.Pos) {
	f.choose(pos)
	s.pos = pos
	f.when = &s
}

// choose notes that a flow has a condition, and a problem if it already had one.
func (f *flow) choose(pos net.Pos) {
	f.d.frozen("a condition of flow "+f.name(), pos)
	if !f.chosen.IsZero() {
		f.d.problem(AmbiguousFlow, f.name(), pos, "flow %q has a second condition; give it one of When, If, Otherwise and "+
			"WithoutOutput, or join two conditions in one If of a source, such as Map(OptionalOutput(task), func…)", f.name())
		f.d.other(f.chosen)
		return
	}
	f.chosen = pos
}

// taken asks the condition of a flow that has one.
func (f *flow) taken(ctx context.Context, a *activities.Activation) (bool, error) {
	raw, err := f.when.read(ctx, a, nil)
	if err != nil {
		return false, fmt.Errorf("condition of flow %s (%s): %w", f.name(), f.chosen, err)
	}
	return restore[bool](raw)
}
