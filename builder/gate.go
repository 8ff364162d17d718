package builder

import (
	"context"
	"fmt"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/net"
)

// Rule is how a task's inputs are combined (its join) or its outputs chosen (its split). The zero value is no rule,
// which is right for a task with a single flow on that side, and a problem for any other.
type Rule uint8

// The rules.
const (
	And Rule = iota + 1 // all flows
	Xor                 // exactly one flow
	Or                  // one flow or more; a join waits until no further token can come
)

// String returns "and", "xor" or "or"; "unset" for the zero value.
func (r Rule) String() string {
	switch r {
	case 0:
		return "unset"
	case And, Xor, Or:
		return r.gate().String()
	}
	return fmt.Sprintf("rule(%d)", uint8(r))
}

func (r Rule) gate() net.Gate {
	switch r {
	case Xor:
		return net.Xor
	case Or:
		return net.Or
	}
	return net.And
}

// Router chooses the flows of a split when a task completes. It returns the names of the tasks or conditions that they
// lead to: exactly one for Xor, one or more for Or. It runs in the transaction, and an error rolls the command back.
type Router = func(context.Context, *activities.Activation) ([]string, error)

// Gate describes a routing task: it has no work, and only joins and splits flows. It completes as soon as it is
// enabled.
type Gate struct {
	Join, Split Rule
	Route       Router // for a Split of Xor or Or; nil if its flows say

	OnEnabled   func(context.Context, *activities.Activation) error
	OnStarted   func(context.Context, *activities.Activation) error
	OnCompleted func(context.Context, *activities.Activation) error
}

// RoutingRef is the handle of a routing task.
type RoutingRef struct{ n *node }

// Name is the task's name.
func (r *RoutingRef) Name() string { return r.node().nameOf() }

func (r *RoutingRef) node() *node {
	if r == nil {
		return nil
	}
	return r.n
}

func (r *RoutingRef) member() (*draft, string) { return r.node().asMember() }

// Routing declares a routing task.
func (b *Builder[C]) Routing(name string, g Gate) *RoutingRef {
	n := b.draft().declare(name, routingNode, caller())
	n.join, n.split, n.route, n.worker = g.Join, g.Split, g.Route, true
	n.task.Hooks = activities.TaskHooks{OnEnabled: g.OnEnabled, OnStarted: g.OnStarted, OnCompleted: g.OnCompleted}
	return &RoutingRef{n}
}
