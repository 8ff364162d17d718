package builder

import (
	"fmt"
	"slices"

	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/workflow"
)

// Node is an element of the net that flows can join: a *[ConditionRef], *[TaskRef], *[RoutingRef] or *[CompositeRef].
// No other package can implement it.
type Node interface {
	Member
	Name() string
	node() *node
}

// Member is an element that a cancellation region can contain: every Node, and a *FlowRef between two tasks, which
// stands for the implicit condition between them.
type Member interface {
	member() (of *draft, name string)
}

type kind uint8

const (
	startNode kind = iota
	endNode
	conditionNode
	taskNode
	routingNode
	compositeNode
)

func (k kind) condition() bool { return k <= conditionNode }

// node is a declared element, without its types.
type node struct {
	d      *draft
	name   string
	unique string // the name, or a stand-in where another element has it, so that one mistake is one problem
	kind   kind
	pos    net.Pos

	join, split   Rule
	route         Router
	routeByCaller bool
	of            []*workflow.Definition
	task          workflow.Task // closures that do not depend on flows
	notes         []string      // what its closures are, for the document
	worker        bool          // completed by a worker, or by itself: no caller can choose a route
}

func (d *draft) add(n *node) *node {
	n.d = d
	d.nodes = append(d.nodes, n)
	return n
}

func (d *draft) declare(name string, k kind, pos net.Pos) *node {
	what := "condition"
	if !k.condition() {
		what = "task"
	}
	d.frozen(what+" "+name, pos)
	d.checkName(what, name, pos)
	n := &node{name: name, unique: name, kind: k, pos: pos}
	if i := slices.IndexFunc(d.nodes, func(old *node) bool { return old.name == name }); i >= 0 {
		n.unique = fmt.Sprintf("%s#%d", name, len(d.nodes))
		d.problem(net.DuplicateName, name, pos, "%s %q has the name of another element; rename one of them", what, name)
		d.other(d.nodes[i].pos)
	}
	return d.add(n)
}

// ConditionRef is the handle of a condition.
type ConditionRef struct{ n *node }

// Name is the condition's name.
func (r *ConditionRef) Name() string { return r.node().nameOf() }

func (r *ConditionRef) node() *node {
	if r == nil {
		return nil
	}
	return r.n
}

func (r *ConditionRef) member() (*draft, string) { return r.node().asMember() }

func (n *node) nameOf() string {
	if n == nil {
		return ""
	}
	return n.name
}

func (n *node) asMember() (*draft, string) {
	if n == nil {
		return nil, ""
	}
	return n.d, n.name
}

// cancellation is one call of Cancels.
type cancellation struct {
	owner   *node
	members []string
}

// Cancels gives a task a cancellation region: when the task completes, and before it produces its tokens, the
// conditions in the region are emptied and the tasks in it are canceled. Further calls add to the region.
func (b *Builder[C]) Cancels(owner Node, members ...Member) {
	d, pos := b.draft(), caller()
	d.frozen("a cancellation region", pos)
	o := d.own(owner, "the owner of a cancellation region", pos)
	if o == nil {
		return
	}
	if o.kind.condition() {
		d.problem(BadRegion, o.name, pos, "condition %q cannot own a cancellation region; only tasks complete", o.name)
		return
	}
	if len(members) == 0 {
		d.problem(BadRegion, o.name, pos, "the cancellation region of %q has no members; name some, or leave the call out",
			o.name)
	}
	region := cancellation{owner: o}
	for _, m := range members {
		if name, ok := d.memberName(m, o, pos); ok {
			region.members = append(region.members, name)
		}
	}
	d.cancels = append(d.cancels, region)
}

func (d *draft) memberName(m Member, owner *node, pos net.Pos) (string, bool) {
	if m == nil {
		d.problem(NilHandle, owner.name, pos, "a member of the cancellation region of %q is nil", owner.name)
		return "", false
	}
	of, name := m.member()
	var f *flow
	if ref, ok := m.(interface{ flow() *flow }); ok {
		f = ref.flow()
	}
	switch isFlow := f != nil; {
	case of == nil:
		d.problem(NilHandle, owner.name, pos, "a member of the cancellation region of %q is nil", owner.name)
	case of != d:
		d.problem(ForeignHandle, name, pos, "%q, a member of the cancellation region of %q, belongs to workflow %q and not "+
			"to %q", name, owner.name, of.name, d.name)
		d.other(of.posOf(name))
	case isFlow && f.refused():
	case isFlow && (f.from.kind.condition() || f.to.kind.condition()):
		d.problem(BadRegion, name, pos, "flow %q has no condition of its own, so %q cannot cancel it; name the condition at "+
			"its end", name, owner.name)
		d.other(f.pos)
	default:
		return name, true
	}
	return "", false
}

func (d *draft) posOf(name string) net.Pos {
	for _, n := range d.nodes {
		if n.name == name {
			return n.pos
		}
	}
	for _, f := range d.flows {
		if f.name() == name {
			return f.pos
		}
	}
	return net.Pos{}
}

// own returns the node behind a handle, if there is one and it belongs to this draft; otherwise it notes a problem.
func (d *draft) own(handle Node, what string, pos net.Pos) *node {
	var n *node
	if handle != nil {
		n = handle.node()
	}
	switch {
	case n == nil:
		d.problem(NilHandle, d.name, pos, "%s of workflow %q is nil; declare it before it is used", what, d.name)
		return nil
	case n.d != d:
		d.problem(ForeignHandle, n.name, pos, "%q, %s, belongs to workflow %q and not to %q", n.name, what, n.d.name, d.name)
		d.other(n.pos)
		return nil
	}
	return n
}
