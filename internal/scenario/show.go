package scenario

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

func (r *runner) show(ctx context.Context, a Action) ([]string, error) {
	tree, c, err := r.view(ctx, a.Case)
	if err != nil {
		return nil, err
	}
	switch a.Subject {
	case SubjectCase:
		if c.Suspended != nil {
			return []string{c.State.String() + " suspended"}, nil
		}
		return []string{c.State.String()}, nil
	case SubjectTasks:
		return showTasks(c), nil
	case SubjectMarking:
		return or(showMarking(c), "(empty)"), nil
	case SubjectItems:
		lines, err := r.showItems(ctx, c)
		return or(lines, "(none)"), err
	case SubjectCases:
		return r.showCases(tree), nil
	case SubjectJobs:
		return or(r.showJobs(c), "(none)"), nil
	case SubjectIncidents:
		return or(showIncidents(c), "(none)"), nil
	case SubjectEnabled:
		return or(showEnabled(c), "(none)"), nil
	}
	return nil, fmt.Errorf("%w: show %s", errSyntax, a.Subject)
}

func or(lines []string, nothing string) []string {
	if len(lines) == 0 {
		return []string{nothing}
	}
	return lines
}

func showTasks(c *state.Case) []string {
	var lines []string
	for t, task := range c.Tasks {
		lines = append(lines, fmt.Sprintf("%s %s %d", c.Net.TaskName(net.TaskID(t)), task.State, task.Generation))
	}
	return lines
}

func showMarking(c *state.Case) []string {
	var lines []string
	for p, n := range c.Marking {
		if n > 0 {
			lines = append(lines, fmt.Sprintf("%s %d", c.Net.ConditionName(net.ConditionID(p)), n))
		}
	}
	return lines
}

func showEnabled(c *state.Case) []string {
	var lines []string
	for t, task := range c.Tasks {
		if task.State.Active() {
			lines = append(lines, c.Net.TaskName(net.TaskID(t)))
		}
	}
	return lines
}

func (r *runner) showItems(ctx context.Context, c *state.Case) ([]string, error) {
	var lines []string
	for row, err := range store.AllItems(ctx, r.engine, store.ItemFilter{Case: c.ID}) {
		if err != nil {
			return nil, err
		}
		lines = append(lines, row.Label()+" "+row.State.String())
	}
	return lines, nil
}

func (r *runner) showCases(tree *state.Tree) []string {
	paths := make(map[workitem.CaseID]string)
	for name, id := range r.roots {
		paths[id] = name
	}
	var lines []string
	tree.Each(func(c *state.Case) {
		if !c.Parent.IsZero() {
			paths[c.ID] = paths[c.Parent] + "/" + c.Label()
		}
		lines = append(lines, paths[c.ID]+" "+c.State.String())
	})
	return lines
}

func (r *runner) showJobs(c *state.Case) []string {
	jobs := slices.DeleteFunc(c.Jobs.Slice(), func(j *state.Job) bool { return j.State != state.JobPending })
	slices.SortStableFunc(jobs, func(a, b *state.Job) int {
		return cmp.Or(a.Due.Compare(b.Due), strings.Compare(a.ID.String(), b.ID.String()))
	})
	var lines []string
	for _, j := range jobs {
		lines = append(lines, ownerOf(c, j)+" "+left(j.Due, r.clock.Now()))
	}
	return lines
}

// ownerOf returns the owner of a job: an item, a task, or the case.
func ownerOf(c *state.Case, j *state.Job) string {
	if it := c.Item(j.Item); it != nil {
		return it.Label()
	}
	return cmp.Or(j.Task, "case")
}

func showIncidents(c *state.Case) []string {
	var lines []string
	for j := range c.Jobs.All() {
		if j.Kind == state.JobIncident {
			lines = append(lines, ownerOf(c, j)+" "+j.Name)
		}
	}
	return lines
}
