package cli

import (
	"context"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workitem"
)

// auditRow is the JSON form of a command with an actor.
type auditRow struct {
	Seq     int64           `json:"seq"`
	At      time.Time       `json:"at"`
	By      string          `json:"by"`
	Command string          `json:"command"`
	Root    workitem.CaseID `json:"root"`
}

// audit is the command "audit".
func (a *app) audit() *cobra.Command {
	var f store.JournalFilter
	var root string
	cmd := &cobra.Command{
		Use: "audit", Short: "list commands with their actors, newest first",
		Long: paragraph("List the commands with an actor, over all cases, newest first. The engine's own work has no actor, and is not " +
			"listed. tasq history shows the effects of a command on a case, and its reason."),
		Example: `  tasq audit --by ann --limit 20
  tasq audit --case 0197a3c4-5d6e-7f80-9a1b-2c3d4e5f6071 -o json`,
		Args: exactly(),
	}
	flags := cmd.Flags()
	flags.StringVar(&f.By, "by", "", "only what this `actor` asked for")
	flags.IntVar(&f.Limit, "limit", 100, "at most `n`; 0 for all")
	flags.Int64Var(&f.After, "before", 0, "only entries before this `position` of the journal, such as the last one of the previous page")
	flags.StringVar(&root, "case", "", "only those of the root case of the case with this `id`")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if f.Limit < 0 {
			return usagef("--limit %d: must not be negative; use 0 for all", f.Limit)
		}
		if root != "" {
			if err := checkID(caseIDs, root); err != nil {
				return err
			}
		}
		return a.run(func(ctx context.Context, _ []string) error {
			return a.view(ctx, func(r store.Reader) error {
				if root != "" {
					c, err := caseByWord(ctx, r, root)
					if err != nil {
						return err
					}
					f.Root = c.Root
				}
				return a.listActs(ctx, r, f)
			})
		})(cmd, args)
	}
	return cmd
}

// listActs prints the entries that have an actor.
func (a *app) listActs(ctx context.Context, r store.Reader, f store.JournalFilter) error {
	names := namer{ctx: ctx, r: r}
	t := a.table("SEQ", "TIME", "BY", "COMMAND", "CASE")
	left, found := f.Limit, 0
	if left == 0 {
		left = -1
	}
	for e, err := range store.AllEntries(ctx, store.ViewerOf(r), store.JournalFilter{Root: f.Root, By: f.By, Named: true, After: f.After, Desc: true}) {
		if err != nil {
			return err
		}
		if left == found {
			break
		}
		found++
		if a.output == "json" {
			if err := a.object(auditRow{Seq: e.Seq, At: e.At, By: e.By, Command: e.Command, Root: e.Root}); err != nil {
				return err
			}
			continue
		}
		t.add(strconv.FormatInt(e.Seq, 10), e.At.UTC().Format("2006-01-02T15:04:05Z"), e.By, e.Command, names.of(e.Root))
	}
	if found == 0 {
		a.remark("no command matches")
	}
	if names.err != nil {
		return names.err
	}
	return t.flush()
}
