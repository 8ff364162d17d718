package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/tasq-dev/tasq/engine/bulk"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// helpOfManyItems is the part of the help that manyItems adds.
const helpOfManyItems = " Without an ITEM, the items that the flags select are only counted; with --all, each gets its own command; a refusal is " +
	"reported and does not affect the others. Only items on which the action can be executed are selected, and none of bulk actions. "

// manyItems lets an action on one work item act on all that flags select, if the command has no argument.
func (a *app) manyItems(cmd *cobra.Command, q *asking, do workitem.Action) {
	var f store.ItemFilter
	l := listing{a: a, what: "work items", when: "without an ITEM: "}
	all := false
	cmd.Use = do.String() + " [ITEM]"
	cmd.Args = cobra.MaximumNArgs(1)
	check := l.itemSelection(cmd, &f, "of-queue")
	cmd.Flags().BoolVar(&all, "all", false, "act on all matches")
	if do == workitem.Cancel {
		cmd.Flags().Var(words[workitem.State]{&f.States, workitem.ParseState, []string{"initialized", "started"}}, "state",
			l.when+"only those in these states: initialized, started")
	}
	one := cmd.RunE
	many := a.run(func(ctx context.Context, _ []string) error {
		q.command.Kind, q.command.Action = workflow.KindAct, do
		if err := errors.Join(check(), l.checkIDs(), q.ofManyItems()); err != nil {
			return err
		}
		var targets []string
		err := a.view(ctx, func(r store.Reader) (err error) {
			targets, err = l.itemTargets(ctx, r, do, f)
			return err
		})
		if err != nil {
			return err
		}
		return a.countFirst(ctx, q, all, targets, "work item")
	})
	cmd.RunE = oneOrMany(one, many)
}

// ofManyItems returns an error for flags of a command on one item that do not apply to many.
func (q *asking) ofManyItems() error {
	switch {
	case q.command.Key != "":
		return usagef("--key is the idempotency key of a command on one work item; leave it out")
	case q.command.Route != nil:
		return usagef("--to is the route of one work item; leave it out")
	}
	return nil
}

// itemTargets returns the work items that the flags select.
func (l *listing) itemTargets(ctx context.Context, r store.Reader, do workitem.Action, f store.ItemFilter) ([]string, error) {
	if err := l.known(ctx, r); err != nil {
		return nil, err
	}
	if err := resolve(ctx, r, caseIDs, l.caseID, &f.Root); err != nil {
		return nil, err
	}
	if err := l.selectedItems(ctx, r, &f, now()); err != nil {
		return nil, err
	}
	targets, err := bulk.Items(ctx, store.ViewerOf(r), do, f, l.search)
	return targets, l.whole(err)
}

// whole returns an error for a search that reached a bound before it has found all targets.
func (l *listing) whole(err error) error {
	switch cut := (*store.CutError)(nil); {
	case errors.As(err, &cut):
		return exit(ExitRefused, "the payloads of only %d %s were searched, and there are more; set a filter that selects less", cut.Rows, l.what)
	case errors.Is(err, workflow.ErrBadCommand):
		return usagef("--state: %w", err)
	}
	return err
}
