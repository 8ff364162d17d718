package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workitem"
)

var (
	caseWords = []string{"started", "completed", "failed", "canceled"}
	itemWords = []string{"initialized", "started", "completed", "failed", "canceled"}
	jobWords  = []string{"pending", "running", "waiting", "done", "canceled", "failed"}
)

func (a *app) cases() *cobra.Command {
	l := listing{a: a, what: "cases"}
	var f store.CaseFilter
	var of string
	cmd := &cobra.Command{
		Use: "cases", Short: "list cases",
		Long: paragraph("List cases, oldest first: those that were started, and the child cases of composite tasks."),
		Example: `  tasq cases --state started --workflow article --older 2h
  tasq cases --root-only --newest --limit 10 -o json | jq -r .id
  tasq cases --counts`,
		Args: exactly(),
	}
	l.flags(cmd)
	l.ageFlags(cmd)
	flags := cmd.Flags()
	flags.Var(words[store.CaseState]{&f.States, store.ParseCaseState, caseWords}, "state",
		"only those in these states: started, completed, failed, canceled")
	flags.BoolVar(&f.RootOnly, "root-only", false, "no child cases")
	flags.StringVar(&of, "case", "", "only the case with this `id`, and, if it is a root case, its descendants")
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		if err := l.check(cmd); err != nil {
			return err
		}
		if of != "" {
			if f.Root, err = parseID(workitem.ParseCaseID, "case", of); err != nil {
				return err
			}
		}
		return a.run(func(ctx context.Context, _ []string) error {
			return a.view(ctx, func(r store.Reader) error { return l.cases(ctx, r, f) })
		})(cmd, args)
	}
	return cmd
}

func (l *listing) cases(ctx context.Context, r store.Reader, f store.CaseFilter) error {
	known, err := namesOf(ctx, r)
	if err == nil {
		err = known.check(l.workflow, "")
	}
	if err != nil {
		return err
	}
	if l.counts {
		return l.count(ctx, r, "case", inStates(f.States))
	}
	if f.Root, f.ID, err = within(ctx, r, f.Root); err != nil {
		return err
	}
	at := now()
	f.Workflow, f.Before, f.Since = l.workflow, l.older.before(at), l.newer.before(at)
	t := l.a.table("CASE", "WORKFLOW", "STATE", "AGE", "CREATED", "PART OF", "FAILURE")
	read := func(p store.Page) ([]*store.Case, error) {
		f.Page = p
		return r.Cases(ctx, f)
	}
	return pages(l, read, func(c *store.Case) string { return c.ID.String() }, func(rows []*store.Case) error {
		for _, c := range rows {
			if l.a.output == "json" {
				if err := l.a.object(rowOfCase(c)); err != nil {
					return err
				}
				continue
			}
			part := ""
			if !c.Parent.IsZero() {
				part = c.Label() + " of " + c.Parent.String()
			}
			t.add(c.ID.String(), c.Workflow, c.State.String(), ago(at.Sub(c.Created)), iso(c.Created), part, failed(c.Failure))
		}
		return t.flush()
	})
}
