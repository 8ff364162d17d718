package query

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tasq-dev/tasq/internal/printable"
	"github.com/tasq-dev/tasq/internal/spelling"
	"github.com/tasq-dev/tasq/store"
)

// Known rejects the name of a workflow or a task that no definition in the database has, as the flags of the command
// do: an empty list would not reveal the mistake. "" is no name. The error is an [*Error]. Known reads all definitions,
// so lists call it only if they are empty.
func Known(ctx context.Context, r store.Reader, workflow, task string) error {
	if workflow == "" && task == "" {
		return nil
	}
	defs, err := r.Definitions(ctx)
	if err != nil {
		return err
	}
	var workflows, tasks []string
	for _, d := range defs {
		if !slices.Contains(workflows, d.Name) {
			workflows = append(workflows, d.Name)
		}
		for i := range d.Net.Tasks {
			if name := d.Net.Tasks[i].Name; (workflow == "" || d.Name == workflow) && !slices.Contains(tasks, name) {
				tasks = append(tasks, name)
			}
		}
	}
	switch {
	case workflow != "" && !slices.Contains(workflows, workflow):
		return &Error{"workflow", fmt.Sprintf("is %q, and the database has no such workflow; %s", workflow, spelling.Hint(workflow, workflows))}
	case task != "" && !slices.Contains(tasks, task):
		return &Error{"task", fmt.Sprintf("is %q, and there is no such task; %s", task, spelling.Hint(task, tasks))}
	}
	return nil
}

// Unread describes the parameters that were not read, each with a similar name of those that were; "" if there is none.
// The names in others are read by the caller.
func (q *Query) Unread(others ...string) string {
	var texts []string
	for _, name := range slices.Sorted(maps.Keys(q.v)) {
		if !q.read[name] && !slices.Contains(others, name) {
			texts = append(texts, fmt.Sprintf("%q is no filter of this list, and was left out; %s", printable.Line(name), spelling.Hint(name, q.Names())))
		}
	}
	return strings.Join(texts, " ")
}
