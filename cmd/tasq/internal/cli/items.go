package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/tasq-dev/tasq/internal/printable"
	"github.com/tasq-dev/tasq/internal/record"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workitem"
)

func (a *app) items() *cobra.Command {
	l := listing{a: a, what: "work items", countFlags: []string{"task"}}
	var f store.ItemFilter
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
	l.flags(cmd)
	flags := cmd.Flags()
	flags.Var(words[workitem.State]{&f.States, workitem.ParseState, itemWords}, "state",
		"only those in these states: initialized, started, completed, failed, canceled")
	codeFlags(cmd, &f.Code, "only those whose failure has this `code`", "only those whose failure, or reason of a cancellation, has no code")
	more := l.itemSelection(cmd, &f, "queue")
	l.runs(cmd, &f.Root, nil, more, func(ctx context.Context, r store.Reader) error { return l.items(ctx, r, f) })
	return cmd
}

// itemSelection declares the flags that select work items in any state, for lists and for commands on many. queue is the name of the flag with the queue,
// since commands have another --queue. The function that it returns checks them, and [listing.selectedItems] completes the filter.
func (l *listing) itemSelection(cmd *cobra.Command, f *store.ItemFilter, queue string) (check func() error) {
	l.workflowFlag(cmd)
	l.ageFlags(cmd)
	l.searchFlag(cmd)
	flags := cmd.Flags()
	flags.StringVar(&l.task, "task", "", l.when+"only those of the task with this `name`")
	of := flags.String(queue, "", l.when+"only those of the queue with this `name`; \"\" is the default queue")
	flags.StringVar(&f.Holder, "holder", "", l.when+"only started ones that the actor with this `name` holds")
	flags.IntVar(&f.Attempt, "attempt", 0, l.when+"only those of this attempt or a later one: a `number` from 1")
	l.caseFlag(cmd, ofCase)
	return func() error {
		if flags.Changed("attempt") && f.Attempt < 1 {
			return usagef("--attempt %d: attempts are counted from 1", f.Attempt)
		}
		if flags.Changed(queue) {
			f.Queue = of
		}
		return nil
	}
}

// selectedItems completes a filter whose Root is the case of --case.
func (l *listing) selectedItems(ctx context.Context, r store.Reader, f *store.ItemFilter, at time.Time) (err error) {
	f.Root, f.Case, err = within(ctx, r, f.Root)
	f.Workflow, f.Task, f.Before, f.Since = l.workflow, l.task, l.older.time(at), l.newer.time(at)
	return err
}

func (l *listing) items(ctx context.Context, r store.Reader, f store.ItemFilter) (err error) {
	if err := l.known(ctx, r); err != nil {
		return err
	}
	if l.counts {
		return l.count(ctx, r, "item", inStates(f.States))
	}
	at := now()
	if err := l.selectedItems(ctx, r, &f, at); err != nil {
		return err
	}
	names := l.a.namer(ctx, r)
	t := l.a.table("ITEM", "CASE", "NAME", "STATE", "ATTEMPT", "QUEUE", "AGE", "BY", "FAILURE")
	read := func(p store.Page) ([]*store.ItemRow, error) {
		f.Page = p
		return store.SearchItems(ctx, store.ViewerOf(r), f, l.search, nil)
	}
	id := func(it *store.ItemRow) string { return it.ID.String() }
	return rows(l, t, read, id, record.OfItem, func(it *store.ItemRow) ([]string, error) {
		cells := []string{names.item(it.ID), names.of(it.Case), names.path(it), it.State.String(),
			attempt(it.Attempt), it.Queue, printable.Duration(at.Sub(it.Created)), it.By, l.a.failed(it.Failure)}
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
