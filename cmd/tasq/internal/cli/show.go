package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/tasq-dev/tasq/internal/printable"
	"github.com/tasq-dev/tasq/internal/record"
	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// show is the command "show".
func (a *app) show() *cobra.Command {
	var at, from, to string
	cmd := &cobra.Command{
		Use: "show CASE", Short: "show the current or a past state of a case",
		Long: paragraph("Show the state of a case, its tokens, tasks and work items: now, or at a past moment, rebuilt from the journal. " +
			"For each task, the items of the latest activation at that moment are shown. With --from, or --to, show what differs between two moments."),
		Example: `  tasq show 0197a3c4-5d6e-7f80-9a1b-2c3d4e5f6071
  tasq show 0197a3c4-5d6e-7f80-9a1b-2c3d4e5f6071 --at 17
  tasq show 0197a3c4-5d6e-7f80-9a1b-2c3d4e5f6071 --at 2026-11-22T12:00:00Z
  tasq show 0197a3c4-5d6e-7f80-9a1b-2c3d4e5f6071 --from 17 --to 20`,
		Args: exactly("the id or business key of a CASE"),
	}
	cmd.Flags().StringVar(&at, "at", "", "a `moment`: a position of the journal, as tasq history shows it, a time such as "+
		"2026-11-22T12:00:00Z, or how long ago: 90s, 5m, 2h, 3d")
	cmd.Flags().StringVar(&from, "from", "", "show what differs from this `moment`, written as that of --at (default: now)")
	cmd.Flags().StringVar(&to, "to", "", "show what differs up to this `moment` (default: now)")
	oneOf(cmd, "at", "from")
	oneOf(cmd, "at", "to")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := checkID(caseIDs, args[0]); err != nil {
			return err
		}
		var moments [3]store.Moment
		for i, text := range []string{at, from, to} {
			var err error
			if moments[i], err = momentOf([]string{"--at", "--from", "--to"}[i], text); err != nil {
				return err
			}
		}
		return a.run(func(ctx context.Context, _ []string) error {
			moment := moments[0]
			if from != "" || to != "" {
				return a.view(ctx, func(r store.Reader) error { return a.differences(ctx, r, args[0], moments[1], moments[2]) })
			}
			return a.view(ctx, func(r store.Reader) error { return a.showCase(ctx, r, args[0], moment) })
		})(cmd, args)
	}
	return cmd
}

// differences prints what differs in a case between two moments.
func (a *app) differences(ctx context.Context, r store.Reader, word string, from, to store.Moment) error {
	c, err := caseByWord(ctx, r, word)
	if err != nil {
		return err
	}
	all, err := store.Differences(ctx, store.ViewerOf(r), c.ID, from, to)
	if err != nil {
		return err
	}
	if a.output == "json" {
		return objects(a, all)
	}
	t := a.table("WHAT", "NAME", "FROM", "TO")
	for _, d := range all {
		t.add(d.What, printable.Line(d.Name), d.From, d.To)
	}
	if len(all) == 0 {
		a.remark("no differences")
	}
	return t.flush()
}

// momentOf parses the value of --at, --from or --to.
func momentOf(flag, text string) (store.Moment, error) {
	var m store.Moment
	if text == "" {
		return m, nil
	}
	if seq, err := strconv.ParseInt(text, 10, 64); err == nil {
		if m.Seq = seq; seq < 1 {
			return m, usagef("%s %d: positions of the journal are counted from 1", flag, seq)
		}
		return m, nil
	}
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		m.Time = t
		return m, nil
	}
	var ago age
	if err := ago.Set(text); err != nil {
		return m, usagef("%s %q is not a position of the journal, a time such as 2026-11-22T12:00:00Z, or an age such as 2h", flag, text)
	}
	m.Time = ago.before(now())
	return m, nil
}

func (a *app) showCase(ctx context.Context, r store.Reader, word string, m store.Moment) error {
	c, err := caseByWord(ctx, r, word)
	if err != nil {
		return err
	}
	tree, err := store.At(ctx, store.ViewerOf(r), c.ID, m)
	if err != nil {
		return err
	}
	c = tree.Case(c.ID)
	as, err := store.SuccessorOf(ctx, r, c)
	if err != nil {
		return err
	}
	if a.output == "json" {
		return a.object(record.OneCase{Case: record.OfCase(c), RestartedAs: as})
	}
	line := fmt.Sprintf("case %s of %s is %s", c.ID, c.Workflow, c.State)
	if c.Failure != nil {
		line += " (" + c.Failure.String() + ")"
	}
	if err := a.say("%s, at position %d of the journal", printable.Line(line), tree.Case(tree.Root).LastSeq); err != nil {
		return err
	}
	return errors.Join(a.showParts(c), a.showRestarted(as))
}

// showRestarted says that a case was restarted or forked, and as which case.
func (a *app) showRestarted(as workitem.CaseID) error {
	if as.IsZero() {
		return nil
	}
	return a.say("  restarted or forked as case %s", as)
}

// showParts prints the tokens, tasks and items of a case.
func (a *app) showParts(c *state.Case) error {
	for p, n := range c.Marking {
		if n > 0 {
			if err := a.say("  %s in %s", printable.Plural(int(n), "token"), c.Net.ConditionName(net.ConditionID(p))); err != nil {
				return err
			}
		}
	}
	for t := range c.Tasks {
		task := &c.Tasks[t]
		if task.Generation == 0 {
			continue
		}
		if err := a.say("  task %s is %s (activation %d)", c.Net.TaskName(net.TaskID(t)), task.State, task.Generation); err != nil {
			return err
		}
	}
	for it := range c.Items.All() {
		line := fmt.Sprintf("  item %s is %s", it.Label(), it.State)
		if it.Failure != nil {
			line += " (" + it.Failure.String() + ")"
		}
		if err := a.say("%s", printable.Line(line)); err != nil {
			return err
		}
	}
	return nil
}
