package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/tasq-dev/tasq/engine/bulk"
	"github.com/tasq-dev/tasq/internal/printable"
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
		if kind == workflow.KindRestart {
			flags.BoolVar(&q.force, "force", false, l.when+"also those that were restarted or forked already")
		}
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
			if targets, err = l.targets(ctx, r, kind, f); err == nil {
				targets, err = q.notRestarted(ctx, r, targets)
			}
			return err
		})
		if err != nil {
			return err
		}
		return a.countFirst(ctx, q, all, targets, "case")
	})
	cmd.RunE = oneOrMany(one, many)
}

// namedRestarts is how many cases that were restarted already are named.
const namedRestarts = 10

// notRestarted leaves out the targets of a restart that were restarted already, and says so, unless they are asked for.
func (q *asking) notRestarted(ctx context.Context, r store.Reader, targets []string) ([]string, error) {
	if q.command.Kind != workflow.KindRestart || q.force {
		return targets, nil
	}
	left, restarted, err := bulk.WithoutRestarted(ctx, store.ViewerOf(r), targets)
	if err != nil || len(restarted) == 0 {
		return left, err
	}
	q.a.remark("%s left out: restarted already; --force restarts them again", printable.Plural(len(restarted), "case"))
	for _, one := range restarted[:min(len(restarted), namedRestarts)] {
		q.a.remark("  %s was restarted as %s", one.Case, one.Successor)
	}
	if more := len(restarted) - namedRestarts; more > 0 {
		q.a.remark("  and %d more", more)
	}
	return left, nil
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
