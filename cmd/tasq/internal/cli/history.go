package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tasq-dev/tasq/internal/printable"
	"github.com/tasq-dev/tasq/internal/record"
	"github.com/tasq-dev/tasq/internal/story"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
)

func (a *app) history() *cobra.Command {
	var after int64
	cmd := &cobra.Command{
		Use: "history CASE", Short: "show the history of a case",
		Long: paragraph("Show the history of a case and its descendants, from the journal: one change a line, below the command that " +
			"caused it, with the command's position in the journal, its time, and the time since the case began. As JSON, each " +
			"change is an object with its text, and with the journal's data as \"event\"."),
		Example: `  tasq history 0197a3c4-5d6e-7f80-9a1b-2c3d4e5f6071
  tasq history 0197a3c4-5d6e-7f80-9a1b-2c3d4e5f6071 -o json | jq -r .text`,
		Args: exactly("the id or business key of a CASE"),
	}
	cmd.Flags().Int64Var(&after, "after", 0, "only what came after this `position` of the journal")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := checkID(caseIDs, args[0]); err != nil {
			return err
		}
		return a.run(func(ctx context.Context, _ []string) error {
			return a.view(ctx, func(r store.Reader) error { return a.printHistory(ctx, r, args[0], after) })
		})(cmd, args)
	}
	return cmd
}

func (a *app) printHistory(ctx context.Context, r store.Reader, word string, after int64) error {
	c, err := caseByWord(ctx, r, word)
	if err != nil {
		return err
	}
	tree, err := r.Tree(ctx, c.Root)
	if err != nil {
		return fmt.Errorf("case %s: %w", c.ID, err)
	}
	lines := historyLines{a: a, story: story.New(tree, c.ID), begun: c.Created, after: after}
	filter := store.JournalFilter{Root: c.Root, Limit: pageSize}
	for {
		entries, err := r.Journal(ctx, filter)
		if err != nil {
			return err
		}
		for _, e := range entries {
			filter.After = e.Seq
			if err := lines.entry(e); err != nil {
				return err
			}
		}
		if len(entries) < filter.Limit {
			return nil
		}
	}
}

// historyLines prints the lines of a history.
type historyLines struct {
	a     *app
	story *story.Story
	begun time.Time
	after int64
}

func (t *historyLines) entry(e *store.Entry) error {
	var b strings.Builder
	shown := false
	for _, event := range e.Changes {
		line, ours := t.story.Describe(event, e.At)
		if !ours || e.Seq <= t.after {
			continue
		}
		if t.a.output == "json" {
			if e, ok := event.(*state.StepOpened); ok {
				event = &state.StepOpened{Step: record.WithoutSecret(e.Step)}
			}
			stored := state.AppendChanges(nil, []state.Change{event}, t.story.Tree())
			err := t.a.object(record.Change{Seq: e.Seq, At: e.At, Command: e.Command, By: e.By, Key: e.Key, Case: state.CaseOf(event),
				Text: line, Event: stored[1 : len(stored)-1]})
			if err != nil {
				return err
			}
			continue
		}
		if !shown {
			shown = true
			fmt.Fprintf(&b, "%d  %s  %s  %s\n", e.Seq, e.At.UTC().Format("2006-01-02T15:04:05.000Z"),
				"+"+e.At.Sub(t.begun).Round(time.Millisecond).String(), printable.Line(t.asked(e)))
		}
		b.WriteString("    " + printable.Line(line) + "\n")
	}
	_, err := io.WriteString(t.a.Out, b.String())
	return err
}

// asked describes the command of an entry.
func (t *historyLines) asked(e *store.Entry) string {
	if e.By != "" {
		return t.story.Naming(e.Command) + " (by " + e.By + ")"
	}
	return t.story.Naming(e.Command)
}
