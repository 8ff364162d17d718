package cli

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tasq-dev/tasq/engine/why"
	"github.com/tasq-dev/tasq/internal/printable"
	"github.com/tasq-dev/tasq/internal/record"
	"github.com/tasq-dev/tasq/internal/spelling"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// choosing has the flags that select incidents.
type choosing struct {
	f              store.IncidentFilter
	task, code     string
	noTask, noCode bool
	older, newer   bound
	caseID         string
	noted          bool // it was said that missing definitions are not known
}

// flags declares the flags. key is the name of the one for business keys: a command on an incident has an idempotency key, too.
func (s *choosing) flags(cmd *cobra.Command, key string) {
	f := cmd.Flags()
	f.StringVar(&s.f.Workflow, "workflow", "", "only those of the workflow with this `name`")
	f.StringVar(&s.task, "task", "", "only those of the task with this `name`")
	f.BoolVar(&s.noTask, "no-task", false, "only those without a task: of functions and handlers of a case")
	f.StringVar(&s.f.Kind, "kind", "", "only those of this `kind`: "+strings.Join(state.IncidentKinds, ", "))
	f.StringVar(&s.code, "code", "", "only those whose failure has this `code`")
	f.BoolVar(&s.noCode, "no-code", false, "only those whose failure has no code")
	oneOf(cmd, "task", "no-task")
	oneOf(cmd, "code", "no-code")
	f.Var(&s.older, "older", "only those that have been open for at least this long (90s, 5m, 2h, 3d), or since before this time")
	f.Var(&s.newer, "newer", "only those that began within this time, or since this time")
	f.StringVar(&s.f.Key, key, "", "only those of cases, or of their child cases, with this business `key`")
	f.Var((*labels)(&s.f.Labels), "label", "only those of cases, or of their child cases, with this label, as `name=value`; may be repeated")
	f.StringVar(&s.caseID, "case", "", ofCase)
}

// filter returns the filter for the flags.
func (s *choosing) filter(ctx context.Context, r store.Finder) (store.IncidentFilter, error) {
	if s.f.Kind != "" && !slices.Contains(state.IncidentKinds, s.f.Kind) {
		return s.f, usagef("unknown --kind %q; %s", s.f.Kind, spelling.Hint(s.f.Kind, state.IncidentKinds))
	}
	s.f.Task, s.f.Code = orNone(s.task, s.noTask), orNone(s.code, s.noCode)
	s.f.Before, s.f.Since = s.older.time(now()), s.newer.time(now())
	if s.caseID == "" {
		return s.f, nil
	}
	var id workitem.CaseID
	if err := resolve(ctx, r, caseIDs, s.caseID, &id); err != nil {
		return s.f, err
	}
	root, err := r.Root(ctx, id)
	s.f.Root = root
	return s.f, err
}

// orNone returns the value of a field of a filter that distinguishes none, "", from any, nil. An empty flag is an error, since
// the variable of a script may be unset, so none has a flag of its own.
func orNone(text string, none bool) *string {
	if text == "" && !none {
		return nil
	}
	return &text
}

func (a *app) incidents() *cobra.Command {
	var s choosing
	cmd := &cobra.Command{
		Use: "incidents", Short: "list incidents: work that waits for a person's decision",
		Long: paragraph("List incidents: work items without further attempts whose policy keeps their task open, child cases likewise, " +
			"abandoned jobs, undecided or-joins; and definitions that live cases need and that no open program has had for a minute. An incident ends when its work is retried, skipped, given up or canceled (see tasq " +
			"incident), that of a definition when a program with it is opened. If no program answers which definitions it has, a line on standard error says so."),
		Example: `  tasq incidents --code no-funds --older 1h
  tasq incidents --label customer=ada --newer 1h
  tasq incidents --workflow order -o json`,
		Args: exactly(),
	}
	s.flags(cmd, "key")
	cmd.Flags().IntVar(&s.f.Limit, "limit", 100, "at most `n`; 0 for all")
	w := watch{a: a, poll: watchRefresh}
	w.flag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := w.check(cmd, &s.f.Limit, nil); err != nil {
			return err
		}
		return a.run(func(ctx context.Context, _ []string) error {
			return w.run(ctx, func(ctx context.Context, r store.Reader) error { return a.listIncidents(ctx, r, &s) })
		})(cmd, args)
	}
	return cmd
}

func (a *app) listIncidents(ctx context.Context, r store.Reader, s *choosing) error {
	f, err := s.filter(ctx, r)
	if err != nil {
		return err
	}
	names, none := a.namer(ctx, r), true
	t := a.table("INCIDENT", "KIND", "CASE", "OF", "ITEM", "SINCE", "FAILURE")
	var here why.Here
	unknown := false
	if why.SelectsDefinitions(f) {
		if here, err = a.here(ctx, r); err != nil {
			return err
		}
		unknown = here.Unknown()
	}
	for i, err := range why.Incidents(ctx, store.ViewerOf(r), f, here, now()) {
		if err != nil {
			return err
		}
		none = false
		if a.output == "json" {
			if err := a.object(record.OfIncident(i)); err != nil {
				return err
			}
			continue
		}
		if d := i.Definition; d != nil {
			t.add(i.ID.String(), i.Kind, "", strings.TrimSpace(d.Workflow+" "+d.Version), "", printable.Duration(now().Sub(i.Since)), a.failed(i.Failure))
			continue
		}
		owner, err := ownerOf(ctx, r, &state.Job{Item: i.Item, Task: i.Task})
		if err != nil {
			return err
		}
		t.add(names.job(i.ID), i.Kind, names.of(i.Case), owner, names.item(i.Item), printable.Duration(now().Sub(i.Since)), a.failed(i.Failure))
		if names.err != nil {
			return names.err
		}
	}
	if a.output == "json" {
		if unknown && !s.noted { // once while it is watched
			a.remark(why.Unanswered)
		}
		s.noted = unknown
		return nil
	}
	if none {
		a.remark("no incidents")
	}
	if unknown {
		a.remark(why.Unanswered)
	}
	return t.flush()
}
