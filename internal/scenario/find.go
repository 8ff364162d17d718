package scenario

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

var errAmbiguous = errors.New("ambiguous")

// caseAt returns the case with a path. The zero path is the root case that was started last.
func (r *runner) caseAt(ctx context.Context, path CasePath) (workitem.CaseID, error) {
	if path.IsZero() {
		path.Root = r.last
	}
	at, ok := r.roots[path.Root]
	switch {
	case path.IsZero():
		return at, fmt.Errorf("no case was started yet: %w", engine.ErrNotFound)
	case !ok:
		return at, fmt.Errorf("no case was started as %q: %w", path.Root, engine.ErrNotFound)
	case len(path.Steps) == 0:
		return at, nil
	}
	tree, err := store.TreeOf(ctx, r.engine, at)
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

// view returns the case of a command, with its tree and the name of its root.
func (r *runner) view(ctx context.Context, path CasePath) (*state.Tree, *state.Case, error) {
	id, err := r.caseAt(ctx, path)
	if err != nil {
		return nil, nil, err
	}
	tree, err := store.TreeOf(ctx, r.engine, id)
	if err != nil {
		return nil, nil, err
	}
	return tree, tree.Case(id), nil
}

// item returns the work item of a command: "task.generation.number", or the only live item of a task. The case has the
// items of the latest activation of each task. Earlier items, which are all final, are read only if none of these
// matches.
func (r *runner) item(ctx context.Context, a Action) (workitem.ID, error) {
	_, c, err := r.view(ctx, a.Case)
	if err != nil {
		return workitem.ID{}, err
	}
	var found []workitem.ID
	for it := range c.Items.All() {
		if a.Item.means(it) {
			found = append(found, it.ID)
		}
	}
	if len(found) == 0 && !a.Item.Bare {
		for row, err := range store.AllItems(ctx, r.engine, store.ItemFilter{Case: c.ID, Task: a.Item.Task}) {
			if err != nil {
				return workitem.ID{}, err
			}
			if a.Item.means(row.Item) {
				return row.ID, nil
			}
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return workitem.ID{}, fmt.Errorf("task %s has %d work items that are not final; name one as %s.GENERATION.N: %w",
			a.Item.Task, len(found), a.Item.Task, errAmbiguous)
	}
	return workitem.ID{}, fmt.Errorf("%s: %w", noItem(c, a.Item), engine.ErrNotFound)
}

// noItem returns the error for an item that does not exist.
func noItem(c *state.Case, item ItemRef) string {
	if _, ok := c.Net.TaskByName(item.Task); !ok {
		return fmt.Sprintf("workflow %s has no task %s; %s", c.Workflow, quote(item.Task),
			hint(item.Task, c.Net.TaskNames()))
	}
	if item.Bare {
		return fmt.Sprintf("task %s has no work item that is not final", item.Task)
	}
	return fmt.Sprintf("task %s has no work item %s", item.Task, item)
}

// means reports whether a reference matches an item.
func (r ItemRef) means(it *workitem.Item) bool {
	if r.Bare {
		return it.Task == r.Task && it.State.Live()
	}
	return it.Task == r.Task && it.Generation == r.Generation && it.Number == r.N
}
