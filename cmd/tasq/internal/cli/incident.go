package cli

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tasq-dev/tasq/internal/printable"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
)

// incident is the command "incident".
func (a *app) incident() *cobra.Command {
	cmd := &cobra.Command{
		Use: "incident", Short: "retry, skip or give up incidents, one or all that match", Args: cobra.ArbitraryArgs, RunE: a.group,
	}
	for _, c := range []struct {
		kind             workflow.Kind
		short, what, say string
	}{
		{workflow.KindRetry, "retry the work of incidents", "another input", "Their work items are replaced by new ones."},
		{workflow.KindSkip, "complete incidents without their work", "output", "Their tasks continue as if the work had returned the output."},
		{workflow.KindGiveUp, "fail the cases of incidents", "", "Their tasks fail, and their cases with them."},
	} {
		cmd.AddCommand(a.incidentAction(c.kind, c.short, c.what, c.say))
	}
	return cmd
}

func (a *app) incidentAction(kind workflow.Kind, short, what, say string) *cobra.Command {
	q := &asking{a: a}
	var s choosing
	all := false
	cmd := &cobra.Command{
		Use: string(kind) + " [INCIDENT | ITEM]", Short: short,
		Long: paragraph("Act on one incident, by its id or that of its work item" + also[kind] + ", or on those that the flags select. " + say + " Without --all, the incidents are only " +
			"counted." + alsoMany[kind] + " With --all, each gets its own command; a refusal is " +
			"reported and does not affect the others. " + helpOfBulk),
		Example: "  tasq incident " + string(kind) + " --code no-funds --older 1h\n  tasq incident " + string(kind) +
			" --code no-funds --older 1h --all --reason 'the account is filled'",
		Args: cobra.MaximumNArgs(1),
	}
	if what == "" {
		f := cmd.Flags()
		f.StringVar(&q.command.Actor, "by", "", "`name` of the actor, for the history (default: the environment variable USER)")
		f.StringVar(&q.reason, "reason", "", "`reason`, for the history")
		q.dryRunFlag(cmd)
		q.patience(cmd)
	} else {
		q.repairing(cmd, what)
	}
	s.flags(cmd, "business-key")
	cmd.Flags().BoolVar(&all, "all", false, "act on all matches")
	cmd.RunE = a.run(func(ctx context.Context, args []string) error {
		q.command.Kind = kind
		if len(args) == 1 {
			return a.oneIncident(ctx, q, args[0])
		}
		if q.command.Key != "" {
			return usagef("--key is the idempotency key of a command on one incident; --business-key selects those of cases")
		}
		var targets []string
		err := a.view(ctx, func(r store.Reader) error {
			f, err := s.filter(ctx, r)
			if err == nil {
				err = decidedOtherwise(f.Kind)
			}
			if err == nil {
				targets, err = q.incidents(ctx, r, f)
			}
			return err
		})
		if err != nil {
			return err
		}
		return a.countFirst(ctx, q, all, targets, "incident")
	})
	if kind == workflow.KindRetry {
		q.policyFlags(cmd)
	}
	return cmd
}

// decidedOtherwise returns an error for a kind of incidents that no command on an incident ends.
func decidedOtherwise(kind string) error {
	switch kind {
	case state.IncidentDefinition:
		return usagef("an incident of --kind %s ends when a program with the definition is opened; tasq incidents says which", kind)
	case state.IncidentOrJoin:
		return usagef("an incident of --kind %s ends when its case goes on and the or-join is decided, or when a token is moved; tasq why CASE names the command", kind)
	}
	return nil
}

// incidents returns the targets of the command: work items, or for a retry of timers, functions, handlers or child cases the ids of
// the incidents. Those of a kind such as crash may be about either; of both, the work items are first.
func (q *asking) incidents(ctx context.Context, r store.Reader, f store.IncidentFilter) (targets []string, err error) {
	var jobs, kinds []string
	for i, err := range store.Incidents(ctx, store.ViewerOf(r), f) {
		switch {
		case err != nil:
			return nil, err
		case q.byIncident(i) != "":
			if jobs = append(jobs, i.ID.String()); !slices.Contains(kinds, i.Kind) {
				kinds = append(kinds, i.Kind)
			}
		case !i.Item.IsZero():
			targets = append(targets, i.Item.String())
		}
	}
	switch {
	case len(jobs) == 0:
	case f.Kind == "":
		slices.Sort(kinds)
		q.a.remark("%s of timers, functions, handlers or child cases not counted here; act on them with --kind %s",
			printable.Plural(len(jobs), "incident"), strings.Join(kinds, "|"))
	case len(targets) == 0:
		q.command.Kind = incidentKinds[q.command.Kind]
		return jobs, nil
	default:
		q.a.remark("%s of timers, functions or handlers not counted here; repeat the command when those of work items are done",
			printable.Plural(len(jobs), "incident"))
	}
	return targets, nil
}

// incidentKinds are the kinds of commands on an incident instead of its work item.
var incidentKinds = map[workflow.Kind]workflow.Kind{workflow.KindRetry: workflow.KindRetryIncident, workflow.KindGiveUp: workflow.KindGiveUpIncident}

// byIncident returns the kind of command for an incident that is named by its own id; "" if its work item is named, or nothing can be done.
func (q *asking) byIncident(i *store.Incident) workflow.Kind {
	if q.command.Kind == workflow.KindRetry && i.Again() || q.command.Kind == workflow.KindGiveUp && !i.Child.IsZero() {
		return incidentKinds[q.command.Kind]
	}
	return ""
}

// ofItemOrIncident describes, in errors, the ids that a command on one incident takes.
var ofItemOrIncident = idKind{what: "work item or incident", lists: "tasq incidents"}

func (a *app) oneIncident(ctx context.Context, q *asking, item string) error {
	if err := checkID(ofItemOrIncident, item); err != nil {
		return err
	}
	q.about = item
	if err := a.view(ctx, func(r store.Reader) error { return q.ofIncident(ctx, r) }); err != nil {
		return err
	}
	o := owning{a: a}
	result, err := o.do(ctx, q)
	if err != nil || q.left() {
		return err
	}
	switch q.command.Kind {
	case workflow.KindRetryIncident:
		return a.say("incident %s of case %s is tried again", q.command.Job, result.Case)
	case workflow.KindGiveUpIncident:
		return a.say("incident %s of case %s is given up", q.command.Job, result.Case)
	}
	return a.showRepaired(ctx, q.command.Kind, result.Item)
}

// also is the help on what can be retried besides work items.
var also = map[workflow.Kind]string{
	workflow.KindRetry:  ", also if it is about a timer, a function, a completion handler or a child case",
	workflow.KindGiveUp: ", also if it is about a child case",
}

// alsoMany is the help on further uses of a selection.
var alsoMany = map[workflow.Kind]string{
	workflow.KindRetry:  " " + helpOfPolicy + " With --kind timer, function or handler, these jobs are retried themselves; with --kind case, the child cases are resumed.",
	workflow.KindGiveUp: " With --kind case, the tasks that hold failed child cases fail.",
}

// ofIncident makes a command that names an incident, by its id or the beginning of that, one on its job, its child case or its work item.
func (q *asking) ofIncident(ctx context.Context, r store.Finder) error {
	i, err := openIncident(ctx, r, q.about)
	switch {
	case err != nil || i == nil:
		return err
	case q.byIncident(i) != "":
		q.command.Kind, q.about = q.byIncident(i), i.ID.String()
	case !i.Item.IsZero() && !i.Job.Again():
		q.about = i.Item.String()
	case !i.Child.IsZero():
		return exit(ExitRefused, "incident %s (%s) is about a child case, which cannot be skipped; tasq incident retry %[1]s resumes it, and tasq incident give-up %[1]s "+
			"fails its task", i.ID, i.Kind)
	case i.Again():
		return exit(ExitRefused, "incident %s (%s) is about %s, which cannot be skipped or given up; tasq incident retry %[1]s retries it", i.ID, i.Kind, jobNouns[i.Job.Kind])
	default:
		return exit(ExitRefused, "incident %s (%s) is about no work item; tasq why %s says what the case waits for", i.ID, i.Kind, i.Case)
	}
	return nil
}

// jobNouns are what the jobs are called that can be retried themselves.
var jobNouns = map[string]string{state.JobTimer: "a timer", state.JobCall: "a function", state.JobHandler: "a completion handler"}

// countFirst prints how many targets are selected or, with all, acts on them. what is the noun for one.
func (a *app) countFirst(ctx context.Context, q *asking, all bool, targets []string, what string) error {
	switch {
	case len(targets) == 0:
		return a.say("there is no %s that matches", what)
	case all && q.dryRun:
		return a.say("%s would be acted on", printable.Plural(len(targets), what))
	case !all:
		return a.say("%s would be acted on; repeat the command with --all", printable.Plural(len(targets), what))
	}
	return a.many(ctx, q, targets, what)
}
