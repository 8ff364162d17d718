package builder

import (
	"context"

	"github.com/tasq-dev/tasq/activities"
)

// Router chooses the flows of a split when a task completes. It returns the names of the tasks or conditions that they
// lead to: exactly one for Xor, one or more for Or. It runs in the transaction, and an error rolls the command back.
type Router = func(context.Context, *activities.Activation) ([]string, error)

// Routing describes a routing task: it has no work, and only joins and splits flows. It completes as soon as it is
// enabled.
type Routing struct {
	Join, Split Rule
	Route       Router // for a Split of Xor or Or; nil if its flows say

	OnEnabled   func(context.Context, *activities.Activation) error
	OnStarted   func(context.Context, *activities.Activation) error
	OnCompleted func(context.Context, *activities.Activation) error
}

// Gate is the former name of [Routing].
//
// Deprecated: use Routing.
type Gate = Routing

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
func (b *Builder[C]) Routing(name string, r Routing) *RoutingRef {
	n := b.draft().declare(name, routingNode, caller())
	n.join, n.split, n.route, n.worker = r.Join, r.Split, r.Route, true
	n.task.Hooks = activities.TaskHooks{OnEnabled: r.OnEnabled, OnStarted: r.OnStarted, OnCompleted: r.OnCompleted}
	return &RoutingRef{n}
}
