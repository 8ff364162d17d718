package builder

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/domain"
	"github.com/tasq-dev/tasq/workflow"
)

// ChildOutputs is the list of results of the child cases of a composite task: of those that completed in the task's
// latest activation, in the order of their creation. It is empty if none has completed.
//
//	total := builder.Result(parcel, builder.Output(weigh))  // in the child workflow
//	ship := builder.Composite(b, "ship", parcels, ...)
//	builder.Task(b, "invoice", builder.Work[[]Weight, Invoice]{Input: builder.ChildOutputs(ship, total)})
func ChildOutputs[CI, Out any](t *CompositeRef, r *ResultRef[CI, Out]) Source[[]Out] {
	n := childNode(t, r)
	if n == nil {
		return Source[[]Out]{}
	}
	read := func(_ context.Context, a *activities.Activation, c *activities.Case) (json.RawMessage, error) {
		all, err := childOutputs(infoOf(a, c), n.name, r.d.name)
		if err != nil {
			return nil, err
		}
		for i, raw := range all {
			if raw == nil {
				all[i] = json.RawMessage("null")
			}
		}
		return domain.Encode(slices.Concat([]json.RawMessage{}, all))
	}
	return Source[[]Out]{sourceOf{read: read, of: n, optional: true, d: n.d}} // none is an empty list
}

// ChildOutput is the result of the only child case of a composite task. Exactly one child case of the workflow must
// have completed in the task's latest activation: with several, the command is rolled back; with none, the case fails
// with the code "no-output". Use [ChildOutputs] for several child cases, or for none.
func ChildOutput[CI, Out any](t *CompositeRef, r *ResultRef[CI, Out]) Source[Out] {
	n := childNode(t, r)
	if n == nil {
		return Source[Out]{}
	}
	read := func(_ context.Context, a *activities.Activation, c *activities.Case) (json.RawMessage, error) {
		info := infoOf(a, c)
		all, err := childOutputs(info, n.name, r.d.name)
		if err == nil && len(all) != 1 {
			err = fmt.Errorf("%d child cases of %s have completed in composite task %s of case %s (%s), and ChildOutput reads "+
				"the output of one; use ChildOutputs", len(all), r.d.name, n.name, info.ID, info.Workflow)
			if len(all) == 0 {
				err = fmt.Errorf("%w: composite task %s %w", err, n.name, activities.ErrNoOutput)
			}
		}
		if err != nil {
			return nil, err
		}
		return all[0], nil
	}
	return Source[Out]{sourceOf{read: read, of: n, d: n.d}}
}

// ChildOutputsOf returns the value of [ChildOutputs], for use in callbacks: builder.ChildOutputsOf(ship,
// total, a.Case()).
func ChildOutputsOf[CI, Out any](t *CompositeRef, r *ResultRef[CI, Out], c activities.CaseInfo) ([]Out, error) {
	if t.node() == nil || r == nil {
		return nil, errNoChild
	}
	all, err := childOutputs(c, t.Name(), r.d.name)
	outs := make([]Out, len(all))
	for i := range all {
		if outs[i], err = restore[Out](all[i]); err != nil {
			return nil, err
		}
	}
	return outs, err
}

var errNoChild = fmt.Errorf("child outputs: give the composite task and the result of its workflow")

// childNode returns the node of a composite task, and notes the problem if it runs no case of the result's workflow.
func childNode[CI, Out any](t *CompositeRef, r *ResultRef[CI, Out]) *node {
	n := t.node()
	if n == nil || r == nil {
		return nil
	}
	same := func(d *workflow.Definition) bool { return d == r.d.def }
	if r.d.def == nil || !slices.ContainsFunc(n.of, same) {
		n.d.at(n, BadSource, "the outputs of composite task %q are read as those of workflow %q, of which it runs no case; "+
			"give the result of the workflow that it runs, once that is built", n.name, r.d.name)
	}
	return n
}

// childOutputs lists the outputs of the completed child cases of one workflow.
func childOutputs(c activities.CaseInfo, task, workflow string) ([]json.RawMessage, error) {
	if c.Children == nil {
		return nil, fmt.Errorf("the child cases of task %s of case %s (%s) are known in its transactions only",
			task, c.ID, c.Workflow)
	}
	var all []json.RawMessage
	for _, child := range c.Children(task) {
		if child.Workflow == workflow {
			all = append(all, child.Output)
		}
	}
	return all, nil
}
