package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tasq-dev/tasq/internal/describe"
	"github.com/tasq-dev/tasq/internal/printable"
	"github.com/tasq-dev/tasq/internal/record"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
)

// past has the flags that select entries of a history.
type past struct {
	store.JournalFilter // After and Until are bounds, whatever the order
	older, newer        bound
	newest, watch       bool
}

func (p *past) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.Int64Var(&p.After, "after", 0, "only what came after this `position` of the journal")
	f.Int64Var(&p.Until, "until", 0, "only what came up to this `position` of the journal")
	f.StringVar(&p.By, "by", "", "only what this `actor` asked for")
	f.StringVar(&p.Command, "command", "", "only commands that begin with these `words`: start, item, 'item complete'")
	f.Var(&p.older, "older", "only what happened at least this long ago (90s, 5m, 2h, 3d), or before this time (2026-11-22T12:00:00Z)")
	f.Var(&p.newer, "newer", "only what happened within this time, or since this time")
	f.BoolVar(&p.newest, "newest", false, "newest first")
	f.IntVar(&p.Limit, "limit", 0, "at most `n` commands; 0 for all")
}

func (a *app) history() *cobra.Command {
	var p past
	cmd := &cobra.Command{
		Use: "history CASE", Short: "show the history of a case",
		Long: paragraph("Show the history of a case and its descendants, from the journal: one change a line, below the command that " +
			"caused it, with the command's position in the journal, its time, and the time since the case began. As JSON, each " +
			"change is an object with its text, and with the journal's data as \"event\"."),
		Example: `  tasq history 0197a3c4-5d6e-7f80-9a1b-2c3d4e5f6071
  tasq history 0197a3c4-5d6e-7f80-9a1b-2c3d4e5f6071 --newest --by ann --limit 20
  tasq history 0197a3c4-5d6e-7f80-9a1b-2c3d4e5f6071 -o json | jq -r .text`,
		Args: exactly("the id or business key of a CASE"),
	}
	p.flags(cmd)
	watchEntries(cmd, &p.watch)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if p.Limit < 0 {
			return usagef("--limit %d: must not be negative; use 0 for all", p.Limit)
		}
		if err := checkID(caseIDs, args[0]); err != nil {
			return err
		}
		if err := checkWatched(cmd, p.watch, "newest", "until", "limit"); err != nil {
			return err
		}
		return a.run(func(ctx context.Context, _ []string) error {
			p.Before, p.Since = p.older.time(now()), p.newer.time(now())
			if p.watch {
				return a.watchHistory(ctx, args[0], p)
			}
			return a.view(ctx, func(r store.Reader) error { return a.printHistory(ctx, r, args[0], p) })
		})(cmd, args)
	}
	return cmd
}

// printHistory prints the selected part of a history. All entries before it are read too, since later changes refer to items and jobs
// by id only.
func (a *app) printHistory(ctx context.Context, r store.Reader, word string, p past) error {
	c, err := caseByWord(ctx, r, word)
	if err != nil {
		return err
	}
	tree, err := r.Tree(ctx, c.Root)
	if err != nil {
		return fmt.Errorf("case %s: %w", c.ID, err)
	}
	lines := historyLines{a: a, describer: describe.New(tree, c.ID), begun: c.Created, past: p}
	for e, err := range store.AllEntries(ctx, store.ViewerOf(r), store.JournalFilter{Root: c.Root, Until: p.Until}) {
		if err != nil {
			return err
		}
		if err := lines.entry(e); err != nil {
			return err
		}
		if !p.newest && p.Limit > 0 && lines.shown == p.Limit {
			return nil
		}
	}
	if lines.shown == 0 && len(lines.kept) == 0 && !p.watch {
		a.remark("no command matches")
	}
	for _, t := range slices.Backward(lines.kept) {
		if err := lines.print(t); err != nil {
			return err
		}
	}
	return nil
}

// historyLines prints the lines of a history.
type historyLines struct {
	a         *app
	describer *describe.Describer
	begun     time.Time
	past      past
	shown     int
	kept      []described // with the newest first, the last ones of those that were described
}

// described is an entry in words.
type described struct {
	*store.Entry
	asked   string
	changes []record.Change // events only as JSON
}

func (t *historyLines) entry(e *store.Entry) error {
	x := t.describe(e)
	switch {
	case len(x.changes) == 0 || !t.past.Selects(e):
		return nil
	case !t.past.newest:
		t.shown++
		return t.print(x)
	}
	if t.kept = append(t.kept, x); t.past.Limit > 0 && len(t.kept) > t.past.Limit {
		t.kept = t.kept[1:]
	}
	return nil
}

func (t *historyLines) describe(e *store.Entry) described {
	x := described{Entry: e}
	for _, event := range e.Changes {
		line, ours := t.describer.Describe(event, e.At)
		if !ours {
			continue
		}
		c := record.Change{Seq: e.Seq, At: e.At, Command: e.Command, By: e.By, Key: e.Key, Case: state.CaseOf(event), Text: line}
		if t.a.output == "json" {
			if e, ok := event.(*state.StepOpened); ok {
				event = &state.StepOpened{Step: record.WithoutSecret(e.Step)}
			}
			stored := state.AppendChanges(nil, []state.Change{event}, t.describer.Tree())
			c.Event = stored[1 : len(stored)-1]
		}
		x.changes = append(x.changes, c)
	}
	x.asked = t.asked(e)
	return x
}

func (t *historyLines) print(x described) error {
	if t.a.output == "json" {
		for _, c := range x.changes {
			if err := t.a.object(c); err != nil {
				return err
			}
		}
		return nil
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d  %s  %s  %s\n", x.Seq, x.At.UTC().Format("2006-01-02T15:04:05.000Z"),
		"+"+x.At.Sub(t.begun).Round(time.Millisecond).String(), printable.Line(x.asked))
	for _, c := range x.changes {
		b.WriteString("    " + printable.Line(c.Text) + "\n")
	}
	_, err := io.WriteString(t.a.Out, b.String())
	return err
}

// asked describes the command of an entry.
func (t *historyLines) asked(e *store.Entry) string {
	if e.By != "" {
		return t.describer.CommandText(e.Command) + " (by " + e.By + ")"
	}
	return t.describer.CommandText(e.Command)
}
