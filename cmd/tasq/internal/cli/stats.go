package cli

import (
	"context"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/tasq-dev/tasq/internal/printable"
	"github.com/tasq-dev/tasq/internal/record"
	"github.com/tasq-dev/tasq/internal/spelling"
	"github.com/tasq-dev/tasq/store"
)

// backlogRow is the JSON form of the backlog of a queue.
type backlogRow struct {
	Queue   string    `json:"queue"`
	Items   int       `json:"items"`
	Started int       `json:"started"`
	Jobs    int       `json:"jobs"`
	Running int       `json:"running"`
	Oldest  time.Time `json:"oldest"`
}

// statsBy are the values of --by.
var statsBy = []string{"queue", "workflow", "task", "hour"}

func (a *app) stats() *cobra.Command {
	var f store.RateFilter
	var older bound
	newer := bound{ago: age(24 * time.Hour)}
	by := "queue"
	cmd := &cobra.Command{
		Use: "stats", Short: "count waiting work by queue, or ended work by workflow, task or hour",
		Long: paragraph("Count the live work items and jobs of each queue, with how many of them are started or running, and the age of " +
			"the oldest. With --by workflow, count the cases that completed and failed, with the median and the " +
			"95th percentile of the durations from creation to end of the completed ones, accurate to 6 %. --by task counts work items, from start to end, " +
			"and how long they had waited, from when they were due to their start; --by hour counts them by task and hour, or with --cases the cases by workflow and hour. The period is one day in whole " +
			"hours, or as --newer says. tasq cases, items and jobs --counts show counts by workflow, task and state."),
		Example: `  tasq stats
  tasq stats --by workflow --newer 7d
  tasq stats --by hour --task review --newer 7d -o csv`,
		Args: exactly(),
	}
	flags := cmd.Flags()
	flags.StringVar(&by, "by", by, "group by this `part`: queue (waiting work), or workflow, task, hour (ended work)")
	flags.BoolVar(&f.Cases, "cases", false, "with --by hour, count cases instead of work items")
	flags.StringVar(&f.Workflow, "workflow", "", "only the workflow with this `name`")
	flags.StringVar(&f.Task, "task", "", "only the task with this `name`")
	flags.Var(&older, "older", "only what ended in hours that began at least this long ago (90s, 5m, 2h, 3d), or before this time (2026-11-22T12:00:00Z)")
	flags.Var(&newer, "newer", "only what ended since the beginning of the hour this long ago, or of this time")
	w := watch{a: a}
	w.flag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := w.check(cmd, new(int), nil); err != nil {
			return err
		}
		switch {
		case !slices.Contains(statsBy, by):
			return usagef("--by %q: %s", by, spelling.Hint(by, statsBy))
		case by == "workflow":
			f.Cases = true
		case f.Cases && by != "hour":
			return usagef("--cases needs --by hour or --by workflow: a %s has no cases of its own", by)
		}
		if f.Cases && f.Task != "" {
			return usagef("--task selects work items, and cases have none: leave it out, or count by task")
		}
		if w.keys = []string{"workflow", "task", "hour"}; by == "queue" {
			w.keys = []string{"queue"}
		}
		return a.run(func(ctx context.Context, _ []string) error {
			return w.run(ctx, func(ctx context.Context, r store.Reader) error {
				if by == "queue" {
					return a.backlog(ctx, r)
				}
				f.Before, f.Since, f.Hourly = older.time(now()), newer.time(now()), by == "hour"
				return a.rates(ctx, r, f)
			})
		})(cmd, args)
	}
	return cmd
}

// backlog lists the live work of each queue.
func (a *app) backlog(ctx context.Context, r store.Reader) error {
	queues, err := store.Backlog(ctx, store.ViewerOf(r))
	if err != nil {
		return err
	}
	t := a.table("QUEUE", "ITEMS", "STARTED", "JOBS", "RUNNING", "OLDEST")
	for _, q := range queues {
		if a.output == "json" {
			if err := a.object(backlogRow{q.Queue, q.Items, q.Started, q.Jobs, q.Running, q.Oldest}); err != nil {
				return err
			}
			continue
		}
		t.add(queueName(q.Queue), number(int64(q.Items)), number(int64(q.Started)), number(int64(q.Jobs)), number(int64(q.Running)),
			printable.Duration(now().Sub(q.Oldest)))
	}
	if len(queues) == 0 {
		a.remark("nothing waits in a queue")
	}
	return t.flush()
}

func (a *app) rates(ctx context.Context, r store.Reader, f store.RateFilter) error {
	if err := (&listing{a: a, workflow: f.Workflow, task: f.Task}).known(ctx, r); err != nil {
		return err
	}
	rates, err := store.Rates(ctx, store.ViewerOf(r), f)
	if err != nil {
		return err
	}
	shown := func(row ...string) []string {
		if f.Cases {
			row = row[:len(row)-2] // they do not wait
		}
		if !f.Hourly {
			row = slices.Delete(row, 2, 3)
		}
		if f.Cases {
			row = slices.Delete(row, 1, 2)
		}
		return row
	}
	t := a.table(shown("WORKFLOW", "TASK", "HOUR", "DONE", "FAILED", "P50", "P95", "WAITED P50", "WAITED P95")...)
	for _, rate := range rates {
		if a.output == "json" {
			if err := a.object(record.OfRate(rate)); err != nil {
				return err
			}
			continue
		}
		t.add(shown(rate.Workflow, rate.Task, rate.Hour.Format(time.RFC3339), number(int64(rate.Done)), number(int64(rate.Failed)),
			durationCell(rate.P50, rate.Done), durationCell(rate.P95, rate.Done),
			durationCell(rate.WaitedP50, rate.Started), durationCell(rate.WaitedP95, rate.Started))...)
	}
	if len(rates) == 0 {
		a.remark("nothing ended")
	}
	return t.flush()
}

// durationCell formats a percentile of n durations for a table, with milliseconds if it is short; "" if there are none.
func durationCell(d time.Duration, n int) string {
	switch {
	case n == 0:
		return ""
	case d < time.Minute:
		return d.Round(time.Millisecond).String()
	}
	return printable.Duration(d)
}
