package scenario

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// Compile returns the definitions of parsed workflows, in the same order. Composite tasks can name workflows of the
// list, or known ones. If a workflow is not well-formed, Compile returns no definitions, and all problems, sorted by
// code and subject.
func Compile(
	workflows []*Workflow, known map[string]*workflow.Definition,
) ([]*workflow.Definition, []net.Problem, error) {
	if problems := check(workflows, known); len(problems) > 0 {
		return nil, problems, nil
	}
	byName := make(map[string]*workflow.Definition)
	maps.Copy(byName, known)
	var defs []*workflow.Definition
	for _, w := range workflows {
		d, err := w.definition()
		if err != nil {
			return nil, nil, err
		}
		byName[d.Name] = d
		defs = append(defs, d)
	}
	for _, d := range defs {
		for t := range d.Tasks {
			for _, name := range d.Net.Task(net.TaskID(t)).Of {
				d.Tasks[t].Of[name] = byName[name]
			}
		}
	}
	return defs, nil, nil
}

// check returns the problems of each workflow, and those between workflows. A cycle of routing tasks is a problem only
// if it is never left, see [endless].
func check(workflows []*Workflow, known map[string]*workflow.Definition) []net.Problem {
	var problems []net.Problem
	var all []*net.Definition
	given := make(map[string]bool)
	for _, w := range workflows {
		problems = append(append(problems, w.Def.Check()...), w.Problems()...)
		all = append(all, w.Def)
		given[w.Def.Name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(known)) {
		if !given[name] {
			all = append(all, known[name].Net.Definition())
		}
	}
	problems = append(problems, net.CheckAll(all)...)
	problems = slices.DeleteFunc(problems, isRoutingCycle)
	for _, w := range workflows {
		problems = append(problems, endless(w.Def)...)
	}
	slices.SortStableFunc(problems, func(a, b net.Problem) int {
		return cmp.Or(cmp.Compare(a.Code, b.Code), cmp.Compare(a.Subject, b.Subject))
	})
	return problems
}

func isRoutingCycle(p net.Problem) bool { return p.Code == net.RoutingCycle }

// endless returns the cycles of routing tasks in which a token moves without end. The choices of routing tasks are
// always the defaults: the first flow of an xor-split, every flow of another split.
func endless(d *net.Definition) []net.Problem {
	first := *d
	first.Flows = nil
	choosing := make(map[string]bool) // routing tasks with an xor-split
	for _, t := range d.Tasks {
		choosing[t.Name] = t.Kind == net.Routing && t.Split == net.Xor
	}
	chosen := make(map[string]bool) // those whose chosen flow was seen
	for _, f := range d.Flows {
		if choosing[f.From] && chosen[f.From] {
			continue
		}
		chosen[f.From] = true
		first.Flows = append(first.Flows, f)
	}
	return slices.DeleteFunc(first.Check(), func(p net.Problem) bool { return !isRoutingCycle(p) })
}

// definition compiles one workflow, without the workflows of its composite tasks. The text is the document of the
// definition: it has no code, so any program can run cases of it.
func (w *Workflow) definition() (*workflow.Definition, error) {
	compiled, err := net.Compile(w.Def)
	if err != nil {
		return nil, err
	}
	doc, err := json.Marshal(map[string]string{"notation": Format([]*Workflow{w})})
	if err != nil {
		return nil, fmt.Errorf("workflow %s: %w", w.Def.Name, err)
	}
	sum := sha256.Sum256(doc)
	d := &workflow.Definition{
		Name: w.Def.Name, Net: compiled, Document: doc, Fingerprint: hex.EncodeToString(sum[:16]),
		Tasks: make([]workflow.Task, len(w.Tasks)),
	}
	for t := range w.Tasks {
		d.Tasks[t] = w.Tasks[t].task(&w.Def.Tasks[t])
	}
	return d, nil
}

// task converts the options of a task to those of a definition.
func (o TaskOptions) task(t *net.Task) workflow.Task {
	spec := workflow.Task{Auto: o.Auto, Policy: o.Policy.policy()}
	switch t.Kind {
	case net.Composite:
		spec.Of = make(map[string]*workflow.Definition)
		spec.Cases = func(context.Context, *activities.Activation) ([]activities.NewCase, error) {
			var cases []activities.NewCase
			for _, name := range t.Of {
				for range o.Cases {
					cases = append(cases, activities.NewCase{Workflow: name})
				}
			}
			return cases, nil
		}
	case net.Atomic:
		if o.Items != 1 {
			spec.Inputs = func(context.Context, *activities.Activation) ([]json.RawMessage, error) {
				return make([]json.RawMessage, o.Items), nil
			}
		}
		if o.Retry != nil {
			spec.Hooks.OnWorkItemStateChanged = activities.Retry(retry.Exponential(o.Retry.Attempts, o.Retry.Initial))
		}
		if o.Timeout != 0 {
			spec.Timers = []activities.Timer{activities.CancelAfter(o.Timeout)}
		}
	}
	return spec
}

func (p Policy) policy() workitem.Policy {
	switch p.Kind {
	case PolicyContinue:
		return workitem.ContinueOnFailure()
	case PolicyIncident:
		return workitem.Incident(workitem.Default())
	case PolicyQuorum:
		return workitem.Quorum(p.K)
	}
	return workitem.Default()
}
