package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/schedules"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workflow"
)

// schedule is the command "schedule".
func (a *app) schedule() *cobra.Command {
	cmd := &cobra.Command{
		Use: "schedule", Short: "add, remove, pause, resume, run or backfill a schedule", Args: cobra.ArbitraryArgs, RunE: a.group,
	}
	cmd.AddCommand(a.scheduleAdd())
	for _, c := range []struct{ word, short, long string }{
		{"pause", "pause a schedule: no run starts until it is resumed", "Pause a schedule: no run starts until it is resumed, not even for a tick that waits for a run to end. Active runs continue."},
		{"resume", "resume a schedule with the next tick", "Resume a paused schedule with its next tick. Ticks that were missed during the pause are skipped; tasq schedule backfill runs them."},
		{"run", "start a run now, independent of ticks", "Start a run now, in addition to the ticks, even if the schedule is paused or a run is active."},
		{"remove", "remove a schedule", "Remove a schedule. Active runs continue."},
	} {
		cmd.AddCommand(a.scheduleCommand(c.word, c.short, c.long, nil))
	}
	var from, to string
	fill := a.scheduleCommand("backfill", "run the missed ticks of a period", "Run the ticks of a period that have no run: one "+
		"after the other, or all at once if the schedule allows overlaps.", func() (f, t time.Time, err error) {
		if err = errors.Join(parseTime("--from", from, &f), parseTime("--to", to, &t)); err != nil {
			err = usage(err)
		}
		return f, t, err
	})
	fill.Flags().StringVar(&from, "from", "", "start `time` of the period")
	fill.Flags().StringVar(&to, "to", "", "end `time` of the period, exclusive")
	cmd.AddCommand(fill)
	return cmd
}

// scheduleFlags declares the flags of all commands on a schedule.
func (q *asking) scheduleFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&q.command.Key, "key", "", "idempotency `key`: a second command with it does nothing")
	f.StringVar(&q.command.Actor, "by", "", "`name` of the actor, for the history (default: the environment variable USER)")
	f.StringVar(&q.reason, "reason", "", "`reason`, for the history")
	q.dryRunFlag(cmd)
	q.patience(cmd)
}

func (a *app) scheduleCommand(word, short, long string, period func() (from, to time.Time, err error)) *cobra.Command {
	q := asking{a: a}
	cmd := &cobra.Command{Use: word + " NAME", Short: short, Long: paragraph(long), Args: exactly("the NAME of a schedule")}
	q.scheduleFlags(cmd)
	cmd.RunE = a.run(func(ctx context.Context, args []string) error {
		var from, to time.Time
		if period != nil {
			var err error
			if from, to, err = period(); err != nil {
				return err
			}
		}
		if q.dryRun {
			if err := a.scheduleWould(ctx, args[0], word, from, to); err != nil {
				return err
			}
		}
		return a.onSchedule(ctx, q, args[0], func(ctx context.Context, v store.Viewer, opts ...workflow.Option) (workflow.Command, error) {
			return schedules.CommandFor(ctx, v, args[0], word, from, to, opts...)
		})
	})
	return cmd
}

// scheduleWould says what a command on a schedule would start.
func (a *app) scheduleWould(ctx context.Context, name, word string, from, to time.Time) error {
	return a.view(ctx, func(r store.Reader) error {
		i, err := schedules.Find(ctx, store.ViewerOf(r), name)
		if errors.Is(err, store.ErrNotFound) {
			return nil // the command says so
		}
		if err != nil {
			return err
		}
		words, err := i.Would(word, from, to, now())
		if err != nil {
			return err
		}
		for _, line := range words {
			if err := a.say("schedule %s: %s", name, line); err != nil {
				return err
			}
		}
		return nil
	})
}

func (a *app) scheduleAdd() *cobra.Command {
	q := asking{a: a}
	var s workflow.Scheduled
	var overlap, catchUp, start, end string
	cmd := &cobra.Command{
		Use: "add NAME WORKFLOW", Short: "add a schedule, or change an existing one",
		Long: paragraph("Start a case of a workflow at each tick of a cron expression or an interval. The database must belong to a " +
			"program that runs schedules. If the schedule exists, it is changed; its pause and its runs stay."),
		Example: `  tasq schedule add digest send-digest --cron '0 8 * * mon-fri' --zone Europe/Berlin --data '{"to":"all"}'
  tasq schedule add poll fetch --every 5m --overlap skip`,
		Args: exactly("the NAME of the schedule", "the name of a WORKFLOW"),
	}
	q.data.a = a
	q.scheduleFlags(cmd)
	f := cmd.Flags()
	f.Var(&q.data, "data", "input of the cases (as it is, @FILE, or - for standard input)")
	f.StringVar(&s.Schedule.Cron, "cron", "", "`expression` of five or six fields, or a name such as @daily")
	f.DurationVar(&s.Schedule.Every, "every", 0, "the interval, at least a second")
	f.StringVar(&s.Schedule.Zone, "zone", "", "time `zone` of the expression (default UTC)")
	f.DurationVar(&s.Schedule.Jitter, "jitter", 0, "delay each tick by a random part of this time")
	f.StringVar(&overlap, "overlap", "skip", "what to do while a run is active: skip, queue, cancel or allow")
	f.StringVar(&start, "start", "", "`time` before which there is no tick, and from which intervals count")
	f.StringVar(&end, "end", "", "`time` from which on there is no tick")
	f.StringVar(&catchUp, "catch-up", "none", "which missed ticks to run: none, last or all")
	f.IntVar(&s.Schedule.CatchUpMost, "catch-up-most", 0, "how many missed ticks --catch-up all runs at most, the latest ones (default 1000)")
	f.DurationVar(&s.Schedule.Grace, "grace", 0, "how late a tick may start before it is missed (default 1m)")
	f.BoolVar(&s.Schedule.Paused, "paused", false, "create the schedule paused")
	cmd.RunE = a.run(func(ctx context.Context, args []string) error {
		s.Schedule.Name, s.Start = args[0], workflow.Start(args[1], q.data.json)
		err := errors.Join(s.Schedule.Overlap.UnmarshalText([]byte(overlap)), s.Schedule.CatchUp.UnmarshalText([]byte(catchUp)))
		if start != "" {
			err = errors.Join(err, parseTime("--start", start, &s.Schedule.Start))
		}
		if end != "" {
			err = errors.Join(err, parseTime("--end", end, &s.Schedule.End))
		}
		if err = errors.Join(err, s.Check()); err != nil {
			return usage(err)
		}
		return a.onSchedule(ctx, q, args[0], func(ctx context.Context, v store.Viewer, opts ...workflow.Option) (workflow.Command, error) {
			return schedules.AddCommand(ctx, v, s, opts...)
		})
	})
	return cmd
}

// parseTime sets the time of a flag to its text.
func parseTime(name, text string, to *time.Time) error {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return fmt.Errorf("%s %q: write a time such as 2030-01-31T08:00:00+01:00", name, text)
	}
	*to = t
	return nil
}

// scheduleTries is how often a command is made again because a tick came first.
const scheduleTries = 5

// onSchedule executes a command on a schedule, and shows the schedule.
func (a *app) onSchedule(
	ctx context.Context, q asking, name string,
	command func(context.Context, store.Viewer, ...workflow.Option) (workflow.Command, error),
) error {
	if q.command.Actor == "" {
		q.command.Actor = os.Getenv("USER")
	}
	opts := []workflow.Option{workflow.By(q.command.Actor), workflow.Key(q.command.Key)}
	if q.reason != "" {
		opts = append(opts, workflow.Because(q.reason))
	}
	var err error
	for range scheduleTries {
		asked := q
		asked.made, asked.reason = true, ""
		if err = a.view(ctx, func(r store.Reader) (err error) {
			asked.command, err = command(ctx, store.ViewerOf(r), opts...)
			return err
		}); err != nil {
			break
		}
		if !asked.command.Case.IsZero() {
			asked.about = asked.command.Case.String()
		}
		o := owning{a: a}
		if _, err = o.do(ctx, &asked); !errors.Is(err, engine.ErrInactive) && !errors.Is(err, engine.ErrKeyReused) {
			break
		}
	}
	if errors.Is(err, schedules.ErrAdded) {
		err = nil // an add that is repeated changes nothing
	}
	if err != nil || q.left() {
		return err
	}
	return a.view(ctx, func(r store.Reader) error {
		i, err := schedules.Find(ctx, store.ViewerOf(r), name)
		if errors.Is(err, store.ErrNotFound) {
			return a.say("schedule %s is removed", name)
		}
		if err != nil {
			return err
		}
		return a.listSchedules(ctx, r, []*schedules.Info{i})
	})
}
