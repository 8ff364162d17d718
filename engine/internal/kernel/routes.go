package kernel

import (
	"context"
	"fmt"
	"strings"

	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// choice is the route that the caller wants for the split of the completed task.
type choice struct {
	at workitem.CaseID
	t  net.TaskID
	to []string
}

// routes chooses the flows of a split: those that the caller gave for it, those of the definition's route, or those of its rule.
type routes struct {
	callbacks *callbacks
	choice    *choice // nil if the caller gave none
}

// of returns the outputs of a completed task that get a token, in flow order.
func (rt *routes) of(c *state.Case, t net.TaskID, generation int, spec *workflow.Task) ([]net.ConditionID, error) {
	outputs, rule := c.Net.Outputs(t), c.Net.Task(t).Split
	if rule == net.And {
		return outputs, rt.checkChoice(c, t)
	}
	targets, given := []string(nil), false
	if ch := rt.choice; ch != nil && ch.at == c.ID && ch.t == t {
		targets, given, rt.choice = ch.to, true, nil
	} else if spec.Route != nil {
		given = true
		a := rt.callbacks.activation(c, t, generation)
		err := rt.callbacks.call(c, t, "route", func(ctx context.Context) (err error) {
			targets, err = spec.Route(ctx, a)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	if !given {
		if rule == net.Xor {
			return outputs[:1], nil
		}
		return outputs, nil
	}
	return targetsOf(c, t, rule, targets)
}

// checkChoice refuses a route that the caller gave for an and-split, which puts a token into every flow. If it were
// ignored, the caller would assume that it had effect. It ignores a route for another task.
func (rt *routes) checkChoice(c *state.Case, t net.TaskID) error {
	ch := rt.choice
	if ch == nil || ch.at != c.ID || ch.t != t {
		return nil
	}
	rt.choice = nil
	return fmt.Errorf("%w: task %s of workflow %s has an and-split, which takes every flow (%s); complete it without a route",
		ErrBadRoute, c.Net.TaskName(t), c.Workflow, flowsOf(c, t))
}

// targetsOf returns the outputs that a route names, each once and in flow order, whatever the order of the names. A
// name is that of a condition, or that of the task behind an implicit condition. A route without names is refused too,
// since the token would be lost.
func targetsOf(c *state.Case, t net.TaskID, rule net.Rule, names []string) ([]net.ConditionID, error) {
	chosen := make(map[net.ConditionID]bool, len(names))
	for _, name := range names {
		p, ok := c.Net.Target(t, name)
		if !ok {
			return nil, fmt.Errorf("%w: task %s of workflow %s has no flow to %q; it flows to %s",
				ErrBadRoute, c.Net.TaskName(t), c.Workflow, name, flowsOf(c, t))
		}
		chosen[p] = true
	}
	if len(chosen) == 0 || rule == net.Xor && len(chosen) > 1 {
		return nil, fmt.Errorf("%w: the %s-split of task %s of workflow %s was given %d flows (%s); it flows to %s",
			ErrBadRoute, rule, c.Net.TaskName(t), c.Workflow, len(chosen), strings.Join(names, ", "), flowsOf(c, t))
	}
	var into []net.ConditionID
	for _, p := range c.Net.Outputs(t) {
		if chosen[p] {
			into = append(into, p)
		}
	}
	return into, nil
}

// flowsOf lists the targets of a task for an error, by the names that a definition uses: an implicit condition has the
// name of the task behind it.
func flowsOf(c *state.Case, t net.TaskID) string {
	var names []string
	for _, p := range c.Net.Outputs(t) {
		name := c.Net.ConditionName(p)
		if c.Net.Implicit(p) {
			name = c.Net.TaskName(c.Net.Consumers(p)[0])
		}
		names = append(names, name)
	}
	return strings.Join(names, ", ")
}
