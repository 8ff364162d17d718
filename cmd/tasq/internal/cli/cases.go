package cli

import (
	"cmp"
	"context"
	"reflect"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tasq-dev/tasq/internal/printable"
	"github.com/tasq-dev/tasq/internal/record"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
)

var (
	caseWords = []string{"started", "completed", "failed", "canceled"}
	itemWords = []string{"initialized", "started", "completed", "failed", "canceled"}
	jobWords  = []string{"pending", "running", "waiting", "done", "canceled", "failed"}
)

func (a *app) cases() *cobra.Command {
	l := listing{a: a, what: "cases"}
	var f store.CaseFilter
	cmd := &cobra.Command{
		Use: "cases", Short: "list cases",
		Long: paragraph("List cases, oldest first: those that were started, and the child cases of composite tasks."),
		Example: `  tasq cases --state started --workflow article --older 2h
  tasq cases --root-only --newest --limit 10 -o json | jq -r .id
  tasq cases --key C-4711
  tasq cases --label customer=ada --state failed
  tasq cases --payload C-4711 --newer 7d
  tasq cases --counts`,
		Args: exactly(),
	}
	l.flags(cmd)
	cmd.Flags().BoolVar(&f.RootOnly, "root-only", false, "no child cases")
	l.caseFilters(cmd, &f)
	l.searchFlag(cmd)
	l.runs(cmd, &f.Root, nil, nil, func(ctx context.Context, r store.Reader) error { return l.cases(ctx, r, f) })
	return cmd
}

// caseFilters declares the flags that select cases, except those for pages. The listing has the workflow and the ages.
func (l *listing) caseFilters(cmd *cobra.Command, f *store.CaseFilter) {
	l.caseSelection(cmd, f, "key")
	flags := cmd.Flags()
	flags.Var(words[state.CaseState]{&f.States, state.ParseCaseState, caseWords}, "state",
		"only those in these states: started, completed, failed, canceled")
	codeFlags(cmd, &f.Code, "only those with this `code` of their failure", "only those whose failure, or reason of a cancellation, has no code")
	flags.BoolVar(&f.Suspended, "suspended", false, "only those that are suspended")
}

// caseSelection declares the flags that select cases in any state, for lists and for commands on many. key is the name of the flag with the
// business key, since commands have another --key. [listing.selected] completes the filter.
func (l *listing) caseSelection(cmd *cobra.Command, f *store.CaseFilter, key string) {
	l.workflowFlag(cmd)
	l.ageFlags(cmd)
	flags := cmd.Flags()
	flags.StringVar(&f.Fingerprint, "fingerprint", "", l.when+"only those that run on the definition with this `fingerprint`, or its beginning, as tasq definitions shows it")
	flags.StringVar(&f.Key, key, "", l.when+"only those with this business `key`")
	flags.Var((*labels)(&f.Labels), "label", l.when+"only those with this label, as `name=value`; may be repeated")
	of := "only the case with this `id`, and, if it is a root case, its descendants"
	if l.when != "" { // an action on a case includes its descendants
		of = "only the root case with this `id`"
	}
	l.caseFlag(cmd, of)
}

// selected completes a filter whose Root is the case of --case.
func (l *listing) selected(ctx context.Context, r store.Reader, f *store.CaseFilter, at time.Time) (err error) {
	if f.Fingerprint, err = wholeFingerprint(ctx, r, f.Fingerprint); err != nil {
		return err
	}
	f.Root, f.ID, err = within(ctx, r, f.Root)
	f.Workflow, f.Before, f.Since = l.workflow, l.older.time(at), l.newer.time(at)
	return err
}

func (l *listing) cases(ctx context.Context, r store.Reader, f store.CaseFilter) (err error) {
	if err := l.known(ctx, r); err != nil {
		return err
	}
	if l.counts {
		return l.count(ctx, r, "case", inStates(f.States))
	}
	at := now()
	if err := l.selected(ctx, r, &f, at); err != nil {
		return err
	}
	names := l.a.namer(ctx, r)
	t := l.a.table("CASE", "WORKFLOW", "STATE", "AGE", "PARENT", "AS", "FAILURE")
	read := func(p store.Page) ([]*state.Case, error) {
		f.Page = p
		return store.SearchCases(ctx, store.ViewerOf(r), f, l.search, nil)
	}
	id := func(c *state.Case) string { return c.ID.String() }
	if l.a.output == "csv" {
		return l.casesAsCSV(read, id)
	}
	return rows(l, t, read, id, record.OfCase, func(c *state.Case) ([]string, error) {
		parent, as := "", ""
		if !c.Parent.IsZero() {
			parent, as = names.of(c.Parent), c.Label()
		}
		cells := []string{names.of(c.ID), c.Workflow, c.State.String(), printable.Duration(at.Sub(c.Created)), parent, as, l.a.failed(c.Failure)}
		return cells, names.err
	})
}

// casesAsCSV prints cases with the columns of the API, a column for each field of the JSON.
func (l *listing) casesAsCSV(read func(store.Page) ([]*state.Case, error), id func(*state.Case) string) error {
	write := record.CSV(l.a.Out, reflect.TypeFor[record.Case]())
	err := pages(l, read, id, func(found []*state.Case) error {
		for _, c := range found {
			if err := write(record.OfCase(c)); err != nil {
				return err
			}
		}
		return nil
	})
	return cmp.Or(err, write(nil)) // the same error comes again
}

// wholeFingerprint completes the beginning of the fingerprint of a definition; "" stays "".
func wholeFingerprint(ctx context.Context, r store.Reader, word string) (string, error) {
	if word == "" {
		return "", nil
	}
	defs, err := r.Definitions(ctx)
	if err != nil {
		return "", err
	}
	found := ""
	for _, d := range defs {
		switch {
		case !strings.HasPrefix(d.Fingerprint, word):
		case found != "" && found != d.Fingerprint:
			return "", usagef("--fingerprint %s is the beginning of several; give more of it", word)
		default:
			found = d.Fingerprint
		}
	}
	if found == "" {
		return "", exit(ExitNotFound, "no definition of the database has the fingerprint %s; tasq definitions lists them", printable.Line(word))
	}
	return found, nil
}
