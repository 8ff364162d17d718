package builder

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/net"
)

func (d *draft) flowsOut(n *node) []*flow {
	return d.flowsWhere(func(f *flow) bool { return f.from == n })
}

func (d *draft) flowsIn(n *node) []*flow {
	return d.flowsWhere(func(f *flow) bool { return f.to == n })
}

func (d *draft) flowsWhere(match func(*flow) bool) []*flow {
	var flows []*flow
	for _, f := range d.flows {
		if match(f) {
			flows = append(flows, f)
		}
	}
	return flows
}

// chooses reports whether the split of a task has a choice.
func (n *node) chooses(out []*flow) bool { return (n.split == Xor || n.split == Or) && len(out) > 1 }

// checkGates finds joins and splits without a kind, and splits for which nothing, or more than one thing, decides where to
// go.
func (d *draft) checkGates() []net.Problem {
	var c problems
	for _, n := range d.nodes {
		out := d.flowsOut(n)
		if n.kind.condition() {
			c.checkStray(n, out, "a condition does not choose; the first task that starts takes its token")
			continue
		}
		c.checkRule(n, "Join", n.join, MissingJoin, d.flowsIn(n))
		switch {
		case !c.checkRule(n, "Split", n.split, MissingSplit, out):
		case n.chooses(out):
			c.checkChoice(n, out)
		default:
			c.checkStray(n, out, "its split takes every flow; give it a Split of Xor or Or and several flows")
		}
	}
	return c.found
}

func (p *problems) checkRule(n *node, side string, r Rule, missing net.Code, flows []*flow) bool {
	switch {
	case r > Or:
		p.at(n, BadRule, "the %s of task %q is %s; use And, Xor or Or", side, n.name, r)
	case r == 0 && len(flows) > 1:
		p.at(n, missing, "task %q has %d flows (%s) and no %s; give it And, Xor or Or",
			n.name, len(flows), flowNames(flows), side)
		p.other(flows[1].pos)
	default:
		return true
	}
	return false
}

// checkStray finds a choice where nothing is chosen.
func (p *problems) checkStray(n *node, out []*flow, why string) {
	for _, f := range out {
		if !f.chosen.IsZero() {
			p.problem(StrayRoute, f.name(), f.chosen, "flow %q has a condition, but nothing is chosen at %q: %s",
				f.name(), n.name, why)
			p.other(n.pos)
		}
	}
	if n.route != nil || n.routeByCaller {
		p.at(n, StrayRoute, "task %q has a Route, but nothing is chosen there: %s", n.name, why)
	}
}

func (p *problems) checkChoice(n *node, out []*flow) {
	conditional := slices.ContainsFunc(out, func(f *flow) bool { return !f.chosen.IsZero() })
	ways := 0
	for _, way := range []bool{n.route != nil, n.routeByCaller, conditional} {
		if way {
			ways++
		}
	}
	switch {
	case ways == 0:
		p.at(n, MissingRoute, "the %s-split of task %q does not know which of its flows (%s) to take; use "+
			"When, If and Otherwise on them, or Route", n.split, n.name, flowNames(out))
	case ways > 1:
		p.at(n, AmbiguousRoute, "the route of the %s-split of task %q is given in several ways; use one of "+
			"Route, RouteByCaller, and conditions on its flows", n.split, n.name)
	case n.routeByCaller && n.worker:
		p.at(n, MissingRoute, "task %q has RouteByCaller, but its items are completed by a worker or by "+
			"themselves, which choose no route; use Route", n.name)
	case conditional:
		p.checkConditions(n, out)
	}
}

func (p *problems) checkConditions(n *node, out []*flow) {
	var otherwise, without *flow
	for _, f := range out {
		switch {
		case f.chosen.IsZero():
			p.problem(MissingRoute, f.name(), f.pos, "flow %q has no When, If, Otherwise or WithoutOutput, as other flows of "+
				"%q have", f.name(), n.name)
			p.other(n.pos)
		case f.otherwise:
			otherwise = p.only(f, otherwise, "Otherwise")
		case f.without:
			without = p.only(f, without, "WithoutOutput")
			if n.alwaysGives() {
				p.problem(StrayRoute, f.name(), f.chosen, "flow %q is WithoutOutput, but with the policy %q task %q fails if too few of its items "+
					"complete, and never completes without an output; use a policy of your own that completes it, and an If of a source of the Tally",
					f.name(), n.task.Policy.Name(), n.name)
				p.other(n.pos)
			}
		}
	}
}

// only notes a problem if a task has a second flow of a kind, and returns the first one.
func (p *problems) only(f, first *flow, what string) *flow {
	if first == nil {
		return f
	}
	p.problem(AmbiguousDefault, f.name(), f.chosen, "flow %q is a second %s of task %q, beside %q",
		f.name(), what, f.from.name, first.name())
	p.other(first.chosen)
	return first
}

func flowNames(flows []*flow) string {
	names := make([]string, len(flows))
	for i, f := range flows {
		names[i] = f.name()
	}
	return strings.Join(names, ", ")
}

// router makes the function that says where a split goes; nil where there is no choice.
func (d *draft) router(n *node) Router {
	out := d.flowsOut(n)
	switch {
	case !n.chooses(out):
		return nil
	case n.route != nil:
		return n.route
	case n.routeByCaller:
		return askCaller(n, out)
	}
	return choose(n, out)
}

// askCaller is the route of a task whose caller chooses: it is asked only when the caller has not.
func askCaller(n *node, out []*flow) Router {
	return func(context.Context, *activities.Activation) ([]string, error) {
		return nil, fmt.Errorf("the caller that completes task %s must choose among its flows (%s): give workflow.Route",
			n.name, flowNames(out))
	}
}

// choose tries the conditions of the flows in order.
func choose(n *node, out []*flow) Router {
	var without *flow
	if i := slices.IndexFunc(out, func(f *flow) bool { return f.without }); i >= 0 {
		without = out[i]
	}
	return func(ctx context.Context, a *activities.Activation) ([]string, error) {
		var chosen, otherwise []string
		if without != nil && a.Tally().Completed == 0 {
			return []string{without.to.name}, nil
		}
		for _, f := range out {
			switch {
			case f.without:
				continue
			case f.otherwise:
				otherwise = []string{f.to.name}
				continue
			}
			ok, err := f.taken(ctx, a)
			if err != nil {
				return nil, err
			}
			if ok {
				chosen = append(chosen, f.to.name)
			}
			if ok && n.split == Xor {
				break
			}
		}
		if chosen == nil {
			chosen = otherwise
		}
		if chosen == nil {
			return nil, fmt.Errorf("no flow of the %s-split of task %s can be taken: no condition of %s is true, and there is no "+
				"Otherwise", n.split, n.name, flowNames(out))
		}
		return chosen, nil
	}
}

// routeNotes records in the document how a split chooses.
func (d *draft) routeNotes(n *node) []string {
	out := d.flowsOut(n)
	switch {
	case !n.chooses(out):
		return nil
	case n.route != nil:
		return []string{"route: code"}
	case n.routeByCaller:
		return []string{"route: caller"}
	}
	var notes []string
	for _, f := range out {
		how := ""
		switch {
		case f.otherwise:
			how = "otherwise"
		case f.without:
			how = "without output"
		default:
			how = "when " + f.when.String()
		}
		notes = append(notes, "route: "+how+": "+f.to.name)
	}
	return notes
}
