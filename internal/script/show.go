package script

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workitem"
)

var errAmbiguous = errors.New("ambiguous")

// caseAt finds the case that a path names. The zero path is the root case last started.
func (r *runner) caseAt(ctx context.Context, path CasePath) (workitem.CaseID, error) {
	if path.Root == "" {
		path.Root = r.last
	}
	at, ok := r.roots[path.Root]
	if !ok || len(path.Steps) == 0 {
		if !ok {
			return at, fmt.Errorf("case %q: %w", path.Root, engine.ErrNotFound)
		}
		return at, nil
	}
	tree, err := r.engine.Tree(ctx, at)
	if err != nil {
		return at, err
	}
	for _, step := range path.Steps {
		i := slices.IndexFunc(tree.Case(at).Children, func(id workitem.CaseID) bool {
			c := tree.Case(id)
			return c.ParentTask == step.Task && c.Generation == step.Generation && c.Number == step.N
		})
		if i < 0 {
			return at, fmt.Errorf("case %s below %s: %w", step, path.Root, engine.ErrNotFound)
		}
		at = tree.Case(at).Children[i]
	}
	return at, nil
}

// view reads the case that a command addresses, with its tree and the name of its root.
func (r *runner) view(ctx context.Context, path CasePath) (*store.Tree, *store.Case, error) {
	id, err := r.caseAt(ctx, path)
	if err != nil {
		return nil, nil, err
	}
	tree, err := r.engine.Tree(ctx, id)
	if err != nil {
		return nil, nil, err
	}
	return tree, tree.Case(id), nil
}

// item finds the work item that a command names: "task.generation.number", or the one live item of a task.
func (r *runner) item(ctx context.Context, a Action) (workitem.ID, error) {
	var found []workitem.ID
	id, err := r.caseAt(ctx, a.Case)
	if err != nil {
		return workitem.ID{}, err
	}
	for row, err := range r.engine.Items(ctx, store.ItemFilter{Case: id, Task: a.Item.Task}) {
		if err != nil {
			return workitem.ID{}, err
		}
		if row.Task != a.Item.Task {
			continue
		}
		if a.Item.Bare && row.State.Live() || !a.Item.Bare && row.Generation == a.Item.Generation && row.Number == a.Item.N {
			found = append(found, row.ID)
		}
	}
	switch len(found) {
	case 0:
		return workitem.ID{}, fmt.Errorf("work item %s: %w", a.Item, engine.ErrNotFound)
	case 1:
		return found[0], nil
	}
	return workitem.ID{}, fmt.Errorf("task %s has %d items that are not final: %w", a.Item.Task, len(found), errAmbiguous)
}

func (r *runner) show(ctx context.Context, a Action) ([]string, error) {
	tree, c, err := r.view(ctx, a.Case)
	if err != nil {
		return nil, err
	}
	switch a.Subject {
	case SubjectCase:
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

func showTasks(c *store.Case) []string {
	var lines []string
	for t, task := range c.Tasks {
		lines = append(lines, fmt.Sprintf("%s %s %d", c.Net.TaskName(net.TaskID(t)), task.State, task.Generation))
	}
	return lines
}

func showMarking(c *store.Case) []string {
	var lines []string
	for p, n := range c.Marking {
		if n > 0 {
			lines = append(lines, fmt.Sprintf("%s %d", c.Net.ConditionName(net.ConditionID(p)), n))
		}
	}
	return lines
}

func showEnabled(c *store.Case) []string {
	var lines []string
	for t, task := range c.Tasks {
		if task.State.Active() {
			lines = append(lines, c.Net.TaskName(net.TaskID(t)))
		}
	}
	return lines
}

func (r *runner) showItems(ctx context.Context, c *store.Case) ([]string, error) {
	var lines []string
	for row, err := range r.engine.Items(ctx, store.ItemFilter{Case: c.ID}) {
		if err != nil {
			return nil, err
		}
		lines = append(lines, row.Label()+" "+row.State.String())
	}
	return lines, nil
}

func (r *runner) showCases(tree *store.Tree) []string {
	paths := make(map[workitem.CaseID]string)
	for name, id := range r.roots {
		paths[id] = name
	}
	var lines []string
	tree.Each(func(c *store.Case) {
		if !c.Parent.IsZero() {
			paths[c.ID] = paths[c.Parent] + "/" + c.Label()
		}
		lines = append(lines, paths[c.ID]+" "+c.State.String())
	})
	return lines
}

func (r *runner) showJobs(c *store.Case) []string {
	jobs := slices.DeleteFunc(c.Jobs.Slice(), func(j *store.Job) bool { return j.State != store.JobPending })
	slices.SortStableFunc(jobs, func(a, b *store.Job) int {
		return cmp.Or(a.Due.Compare(b.Due), strings.Compare(a.ID.String(), b.ID.String()))
	})
	var lines []string
	for _, j := range jobs {
		owner := "case"
		if it := c.Item(j.Item); it != nil {
			owner = it.Label()
		} else if j.Task != "" {
			owner = j.Task
		}
		lines = append(lines, owner+" "+left(j.Due, r.clock.Now()))
	}
	return lines
}
