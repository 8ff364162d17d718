package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/tasq-dev/tasq/engine/bulk"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
)

// helpOfMany is the part of the help that manyCases adds.
const helpOfMany = "Without a CASE, the cases that the flags select are only counted; with --all, each gets its own command; a refusal is " +
	"reported and does not affect the others."

// endedWords are the states of cases that have ended.
var endedWords = []string{"completed", "failed", "canceled"}

// helpOfEnded is the part of the help of commands on cases that have ended.
const helpOfEnded = " " + helpOfMany + " Only root cases that have ended are selected, and no bulk actions. "

// manyCases lets a command on one case act on all root cases that flags select, if it has no argument.
func (a *app) manyCases(cmd *cobra.Command, q *asking, kind workflow.Kind) {
	var f store.CaseFilter
	l := listing{a: a, what: "cases", when: "without a CASE: "}
	all := false
	cmd.Use = string(kind) + " [CASE]"
	cmd.Args = cobra.MaximumNArgs(1)
	l.caseSelection(cmd, &f, "business-key")
	l.searchFlag(cmd)
	flags := cmd.Flags()
	flags.BoolVar(&all, "all", false, "act on all matches")
	switch kind {
	case workflow.KindResume:
		codeFlags(cmd, &f.Code, l.when+"only those that failed with this `code`", l.when+"only those that failed without a code")
		flags.BoolVar(&f.Suspended, "suspended", false, l.when+"those that are suspended, instead of those that failed")
	case workflow.KindRestart, workflow.KindRemove:
		flags.Var(words[state.CaseState]{&f.States, state.ParseCaseState, endedWords}, "state", l.when+"only those in these states: completed, failed, canceled")
		codeFlags(cmd, &f.Code, l.when+"only those with this `code` of their failure", l.when+"only those whose failure, or reason of a cancellation, has no code")
	case workflow.KindCancel:
		flags.BoolVar(&f.Suspended, "suspended", false, l.when+"only those that are suspended")
	}
	one := cmd.RunE
	many := a.run(func(ctx context.Context, _ []string) error {
		q.command.Kind = kind
		if err := errors.Join(l.checkIDs(), q.ofMany()); err != nil {
			return err
		}
		var targets []string
		err := a.view(ctx, func(r store.Reader) (err error) {
			targets, err = l.targets(ctx, r, kind, f)
			return err
		})
		if err != nil {
			return err
		}
		return a.countFirst(ctx, q, all, targets, "case")
	})
	cmd.RunE = oneOrMany(one, many)
}

// ofMany returns an error for flags of a command on one case that do not apply to many.
func (q *asking) ofMany() error {
	switch {
	case q.command.Key != "":
		return usagef("--key is the idempotency key of a command on one case; --business-key selects cases")
	case q.command.Kind == workflow.KindCancel && q.data.json != nil:
		return usagef("--data is the reason of a command on one case; give --reason")
	}
	return nil
}

// targets returns the cases that the flags select.
func (l *listing) targets(ctx context.Context, r store.Reader, kind workflow.Kind, f store.CaseFilter) ([]string, error) {
	if err := l.known(ctx, r); err != nil {
		return nil, err
	}
	if err := resolve(ctx, r, caseIDs, l.caseID, &f.Root); err != nil {
		return nil, err
	}
	if err := l.selected(ctx, r, &f, now()); err != nil {
		return nil, err
	}
	targets, err := bulk.Cases(ctx, store.ViewerOf(r), kind, f, l.search)
	return targets, l.whole(err)
}

// oneOrMany calls one for an argument, and many without one.
func oneOrMany(one, many func(*cobra.Command, []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return many(cmd, args)
		}
		return one(cmd, args)
	}
}
