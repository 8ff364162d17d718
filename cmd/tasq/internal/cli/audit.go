package cli

import (
	"context"
	"errors"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/tasq-dev/tasq/internal/printable"
	"github.com/tasq-dev/tasq/internal/record"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workitem"
)

// audit is the command "audit".
func (a *app) audit() *cobra.Command {
	var f store.JournalFilter
	var older, newer bound
	var root string
	cmd := &cobra.Command{
		Use: "audit", Short: "list commands with their actors, newest first",
		Long: paragraph("List the commands with an actor, over all cases, newest first, also the removals of cases, and what has changed the " +
			"settings of queues, limits and workflows, with the values before and after. The engine's own work has no actor, and is not listed. " +
			"tasq history shows the effects of a command on a case."),
		Example: `  tasq audit --by ann --limit 20
  tasq audit --command 'case cancel' --newer 2026-11-22T12:00:00Z
  tasq audit --command pause-queue --newer 7d
  tasq audit --case 0197a3c4-5d6e-7f80-9a1b-2c3d4e5f6071 -o json`,
		Args: exactly(),
	}
	flags := cmd.Flags()
	flags.StringVar(&f.By, "by", "", "only what this `actor` asked for")
	flags.StringVar(&f.Command, "command", "", "only commands that begin with these `words`: start, item, 'item complete'")
	flags.Var(&older, "older", "only commands of at least this long ago (90s, 5m, 2h, 3d), or before this time (2026-11-22T12:00:00Z)")
	flags.Var(&newer, "newer", "only commands within this time, or since this time")
	flags.IntVar(&f.Limit, "limit", 100, "at most `n`; 0 for all")
	flags.Int64Var(&f.After, "before", 0, "only entries before this `position` of the journal, such as the last one of the previous page")
	flags.StringVar(&root, "case", "", "only those of the root case of the case with this `id`")
	on := false
	watchEntries(cmd, &on)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if f.Limit < 0 {
			return usagef("--limit %d: must not be negative; use 0 for all", f.Limit)
		}
		if root != "" {
			if err := checkID(caseIDs, root); err != nil {
				return err
			}
		}
		if err := checkWatched(cmd, on, "before"); err != nil {
			return err
		}
		return a.run(func(ctx context.Context, _ []string) error {
			f.Before, f.Since = older.time(now()), newer.time(now())
			if on {
				return a.watchActs(ctx, f, root)
			}
			return a.view(ctx, func(r store.Reader) error {
				if err := a.ofRoot(ctx, r, root, &f); err != nil {
					return err
				}
				return a.listActs(ctx, r, f)
			})
		})(cmd, args)
	}
	return cmd
}

// ofRoot restricts a filter to the root case of a case, unless the word for that is empty.
func (a *app) ofRoot(ctx context.Context, r store.Reader, word string, f *store.JournalFilter) error {
	if word == "" {
		return nil
	}
	c, err := caseByWord(ctx, r, word)
	if err == nil {
		f.Root = c.Root
		return nil
	}
	if id, no := workitem.ParseCaseID(word); no == nil && exitCode(err) == ExitNotFound {
		var missing error
		if f.Root, missing = store.ActsRoot(ctx, r, id); missing == nil || !errors.Is(missing, store.ErrNotFound) {
			return missing
		}
	}
	return err
}

// acts prints entries that have an actor.
type acts struct {
	*table
	a     *app
	found int
}

func (a *app) acts() *acts {
	return &acts{table: a.table("SEQ", "TIME", "BY", "COMMAND", "CASE", "REASON"), a: a}
}

func (t *acts) add(names *namer, e *store.Entry) error {
	t.found++
	act := record.OfAct(e)
	if t.a.output == "json" {
		return t.a.object(act)
	}
	seq, about := "", ""
	if e.Seq != 0 { // the removal of a case has no position, and the case no short id; nor has the change of a setting
		seq, about = strconv.FormatInt(e.Seq, 10), names.of(e.Root)
	}
	t.table.add(seq, e.At.UTC().Format("2006-01-02T15:04:05Z"), e.By, act.Line(), about, printable.Line(act.Reason))
	return names.err
}

func (t *acts) flush() error {
	if t.a.output == "json" {
		return nil
	}
	return t.table.flush()
}

// listActs prints the entries that have an actor.
func (a *app) listActs(ctx context.Context, r store.Reader, f store.JournalFilter) error {
	names, t := a.namer(ctx, r), a.acts()
	left := f.Limit
	if left == 0 {
		left = -1
	}
	for more := true; more; {
		f.Limit = 0
		if left > 0 {
			f.Limit = min(left-t.found, store.DefaultLimit)
		}
		page, next, err := store.Acts(ctx, r, f)
		if err != nil {
			return err
		}
		for _, e := range page {
			if left == t.found {
				break
			}
			if err := t.add(&names, e); err != nil {
				return err
			}
		}
		if note := store.NoteOfActs(page); note != "" && left != t.found {
			a.remark("%s", note)
		}
		f.After, more = next, next != 0 && left != t.found
	}
	if t.found == 0 {
		a.remark("no command matches")
	}
	return t.flush()
}
