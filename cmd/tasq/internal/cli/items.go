package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/tasq-dev/tasq/internal/printable"
	"github.com/tasq-dev/tasq/internal/record"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workitem"
)

func (a *app) items() *cobra.Command {
	l := listing{a: a, what: "work items", countFlags: []string{"task"}}
	var f store.ItemFilter
	var queue string
	cmd := &cobra.Command{
		Use: "items", Short: "list work items",
		Long: paragraph("List work items, oldest first; those of one queue (--queue) by priority, the highest first, then oldest first. " +
			"The default queue is listed by priority only with --state initialized or started. " +
			"The name of an item consists of its workflow, its child cases, its task, the activation of the task, and its number in " +
			"the activation."),
		Example: `  tasq items --state initialized,started --queue editors
  tasq items --state failed --code rate-limited --attempt 3
  tasq items --counts --workflow article`,
		Args: exactly(),
	}
	l.workflowFlag(cmd)
	l.flags(cmd)
	l.ageFlags(cmd)
	l.searchFlag(cmd)
	flags := cmd.Flags()
	flags.Var(words[workitem.State]{&f.States, workitem.ParseState, itemWords}, "state",
		"only those in these states: initialized, started, completed, failed, canceled")
	flags.StringVar(&l.task, "task", "", "only those of the task with this `name`")
	flags.StringVar(&queue, "queue", "", "only those of the queue with this `name`; \"\" is the default queue")
	flags.StringVar(&f.Holder, "holder", "", "only started ones that the actor with this `name` holds")
	flags.IntVar(&f.Attempt, "attempt", 0, "only those of this attempt or a later one: a `number` from 1")
	codeFlags(cmd, &f.Code, "only those whose failure has this `code`", "only those whose failure, or reason of a cancellation, has no code")
	l.caseFlag(cmd, ofCase)
	more := func() error {
		if flags.Changed("attempt") && f.Attempt < 1 {
			return usagef("--attempt %d: attempts are counted from 1", f.Attempt)
		}
		if flags.Changed("queue") {
			f.Queue = &queue
		}
		return nil
	}
	l.runs(cmd, &f.Root, nil, more, func(ctx context.Context, r store.Reader) error { return l.items(ctx, r, f) })
	return cmd
}

func (l *listing) items(ctx context.Context, r store.Reader, f store.ItemFilter) (err error) {
	if err := l.known(ctx, r); err != nil {
		return err
	}
	if l.counts {
		return l.count(ctx, r, "item", inStates(f.States))
	}
	if f.Root, f.Case, err = within(ctx, r, f.Root); err != nil {
		return err
	}
	at := now()
	f.Workflow, f.Task, f.Before, f.Since = l.workflow, l.task, l.older.time(at), l.newer.time(at)
	names := l.a.namer(ctx, r)
	t := l.a.table("ITEM", "CASE", "NAME", "STATE", "TRY", "QUEUE", "AGE", "BY", "FAILURE")
	read := func(p store.Page) ([]*store.ItemRow, error) {
		f.Page = p
		return store.SearchItems(ctx, store.ViewerOf(r), f, l.search, nil)
	}
	id := func(it *store.ItemRow) string { return it.ID.String() }
	return rows(l, t, read, id, record.OfItem, func(it *store.ItemRow) ([]string, error) {
		cells := []string{names.item(it.ID), names.of(it.Case), names.path(it), it.State.String(),
			number(int64(it.Attempt)), it.Queue, printable.Duration(at.Sub(it.Created)), it.By, l.a.failed(it.Failure)}
		return cells, names.err
	})
}

// within returns how to select the work of a case: of a root case with all its descendants, or of a single child case.
func within(ctx context.Context, r store.Finder, id workitem.CaseID) (root, alone workitem.CaseID, err error) {
	if id.IsZero() {
		return root, alone, nil
	}
	c, err := findCase(ctx, r, id)
	if err != nil {
		return root, alone, err
	}
	if c.Parent.IsZero() {
		return id, alone, nil
	}
	return root, id, nil
}
