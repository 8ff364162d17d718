package cli

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/tasq-dev/tasq/internal/printable"
	"github.com/tasq-dev/tasq/internal/record"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workitem"
)

// listing has the common parts of the lists of cases, items and jobs.
type listing struct {
	a          *app
	what       string // plural
	limit      int
	after      string
	newest     bool
	counts     bool
	older      bound
	newer      bound
	workflow   string
	task       string
	caseID     string // flag --case
	itemID     string // flag --item
	watch      watch
	search     store.Search
	countFlags []string // the flags that are allowed with --counts
	when       string   // what the help of the flags that select rows begins with, as "without a CASE: "
}

func (l *listing) flags(cmd *cobra.Command) {
	l.pageFlags(cmd)
	cmd.Flags().BoolVar(&l.counts, "counts", false, "print the numbers by workflow and state instead of a list")
	l.countFlags = append(l.countFlags, "counts", "workflow", "db", "output", "state")
}

func (l *listing) workflowFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&l.workflow, "workflow", "", l.when+"only those of the workflow with this `name`")
}

func (l *listing) pageFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.IntVar(&l.limit, "limit", 100, "at most `n`; 0 for all")
	f.StringVar(&l.after, "after", "", "continue after the row with this `id`, the last one of the previous page")
	f.BoolVar(&l.newest, "newest", false, "newest first")
	l.watch.flag(cmd)
}

func (l *listing) ageFlags(cmd *cobra.Command) {
	cmd.Flags().Var(&l.older, "older", l.when+"only those created at least this long ago (90s, 5m, 2h, 3d), or before this time (2026-11-22T12:00:00Z)")
	cmd.Flags().Var(&l.newer, "newer", l.when+"only those created within this time, or since this time")
}

// searchFlag declares --payload. The newest rows are searched first, unless --newest=false is given.
func (l *listing) searchFlag(cmd *cobra.Command) {
	bounds := "; looks at the newest 100000, for 5s at most"
	if l.when != "" { // a selection is found whole, or not at all
		bounds = "; searches 100000, for 5s at most, and refuses to leave out the rest"
	}
	cmd.Flags().StringVar(&l.search.Payload, "payload", "", l.when+"only those with this `text` in an input, an output or a failure"+bounds)
	l.search.Time = 5 * time.Second
}

const ofCase = "only those of the case with this `id`, and, if it is a root case, of its descendants"

// caseFlag and itemFlag declare the flags that [listing.runs] parses.
func (l *listing) caseFlag(cmd *cobra.Command, text string) {
	cmd.Flags().StringVar(&l.caseID, "case", "", l.when+text)
}

func (l *listing) itemFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&l.itemID, "item", "", "only those of the work item with this `id`")
}

// runs returns the body of a command: it checks the flags, then reads the database. root and item get the ids of --case
// and --item, and are nil if the command does not have the flag. more checks the command's own flags, and may be nil.
func (l *listing) runs(
	cmd *cobra.Command, root *workitem.CaseID, item *workitem.ID, more func() error,
	body func(context.Context, store.Reader) error,
) {
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		if err := l.check(cmd); err != nil {
			return err
		}
		l.watch.a = l.a
		if err := l.watch.check(cmd, &l.limit, &l.newest); err != nil {
			return err
		}
		if err := l.checkIDs(); err != nil {
			return err
		}
		if more != nil {
			if err := more(); err != nil {
				return err
			}
		}
		return l.a.run(func(ctx context.Context, _ []string) error {
			return l.watch.run(ctx, func(ctx context.Context, r store.Reader) error {
				if err := resolve(ctx, r, caseIDs, l.caseID, root); err != nil {
					return err
				}
				if err := resolve(ctx, r, itemIDs, l.itemID, item); err != nil { // an empty --item is no filter
					return err
				}
				return body(ctx, r)
			})
		})(cmd, args)
	}
}

// checkIDs returns an error for invalid ids.
func (l *listing) checkIDs() error {
	if l.caseID != "" {
		if err := checkID(caseIDs, l.caseID); err != nil {
			return err
		}
	}
	if l.itemID != "" {
		return checkID(itemIDs, l.itemID)
	}
	return nil
}

// check validates combinations of flags.
func (l *listing) check(cmd *cobra.Command) error {
	if l.search.Payload != "" && !cmd.Flags().Changed("newest") {
		l.newest = true
	}
	if l.limit < 0 {
		return usagef("--limit %d: must not be negative; use 0 for all", l.limit)
	}
	if l.after != "" {
		if _, err := workitem.ParseID(l.after); err != nil {
			return usagef("--after %q is not the id of a row; use the id that the previous page printed", printable.Brief([]byte(l.after), 40))
		}
	}
	if !l.counts {
		return nil
	}
	for _, f := range changed(cmd) {
		if !slices.Contains(l.countFlags, f) {
			return usagef("--counts counts everything of a workflow, so it does not go with --%s; use --limit 0 -o json, "+
				"and count the lines", f)
		}
	}
	return nil
}

// known returns an error for a --workflow or a --task that the database does not have: an empty list would not show
// that.
func (l *listing) known(ctx context.Context, r store.Reader) error {
	names, err := namesOf(ctx, r)
	if err != nil {
		return err
	}
	return names.check(l.workflow, l.task)
}

// pageSize is the number of rows that are read and printed at a time.
const pageSize = 1000

// pages reads rows page by page, from one snapshot of the database, and prints each page.
func pages[T any](
	l *listing, read func(store.Page) ([]T, error), id func(T) string, show func([]T) error,
) error {
	page := store.Page{After: l.after, Desc: l.newest}
	left, seen := l.limit, 0
	l.search.Spent = new(store.SearchSpent) // the limits of a search apply to all pages together
	for {
		page.Limit = pageSize
		if l.limit > 0 {
			page.Limit = min(left, pageSize)
		}
		rows, err := read(page)
		cut := (*store.CutError)(nil)
		if err != nil && !errors.As(err, &cut) {
			return err
		}
		if err := show(rows); err != nil {
			return err
		}
		if cut != nil {
			l.a.remark("only %d %s were searched; go on with --after %s, or give another filter", cut.Rows, l.what, cut.After)
			return nil
		}
		seen += len(rows)
		left -= len(rows)
		if len(rows) < page.Limit {
			break
		}
		page.After = id(rows[len(rows)-1])
		if l.limit > 0 && left == 0 {
			if l.watch.on {
				return nil
			}
			return l.more(page, func(p store.Page) (int, error) {
				rows, err := read(p)
				if cut := (*store.CutError)(nil); errors.As(err, &cut) {
					return 1, nil // unknown
				}
				return len(rows), err
			})
		}
	}
	if seen == 0 {
		l.a.remark("no %s", l.what)
	}
	return nil
}

// rows prints rows: each as a row of the table or, for programs, as an object.
func rows[T, O any](
	l *listing, t *table, read func(store.Page) ([]T, error), id func(T) string, object func(T) O,
	cells func(T) ([]string, error),
) error {
	return pages(l, read, id, func(found []T) error {
		for _, v := range found {
			if l.a.output == "json" {
				if err := l.a.object(object(v)); err != nil {
					return err
				}
				continue
			}
			row, err := cells(v)
			if err != nil {
				return err
			}
			t.add(row...)
		}
		if l.limit > 0 && l.limit <= pageSize && len(t.rows) > 0 {
			t.hide()
		}
		return t.flush()
	})
}

// more prints how to continue if there are more rows.
func (l *listing) more(page store.Page, read func(store.Page) (int, error)) error {
	page.Limit = 1
	n, err := read(page)
	if n > 0 {
		l.a.remark("%d %s shown; go on with --after %s, or see all with --limit 0", l.limit, l.what, page.After)
	}
	return err
}

// count prints the counts for one kind of rows.
func (l *listing) count(ctx context.Context, r store.Counter, what string, wanted func(state string) bool) error {
	counts, err := r.Counts(ctx)
	if err != nil {
		return err
	}
	withTask := what != "case"
	head := []string{"WORKFLOW", "TASK", "STATE", "N"}
	if !withTask {
		head = slices.Delete(head, 1, 2)
	}
	t := l.a.table(head...)
	seen := false
	for _, c := range counts {
		if c.What != what || l.workflow != "" && c.Workflow != l.workflow || l.task != "" && c.Task != l.task {
			continue
		}
		if !wanted(c.State) {
			continue
		}
		seen = true
		if l.a.output == "json" {
			if err := l.a.object(record.Count{What: c.What, Workflow: c.Workflow, Task: c.Task, State: c.State, N: c.N}); err != nil {
				return err
			}
			continue
		}
		cells := []string{c.Workflow, c.Task, c.State, number(c.N)}
		if !withTask {
			cells = slices.Delete(cells, 1, 2)
		}
		t.add(cells...)
	}
	if !seen {
		l.a.remark("no %s", l.what)
	}
	return t.flush()
}

// inStates returns a filter of states for counts; an empty list selects all.
func inStates[S interface{ String() string }](states []S) func(string) bool {
	return func(word string) bool {
		return len(states) == 0 || slices.ContainsFunc(states, func(s S) bool { return s.String() == word })
	}
}
