package cli

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/schedules"
	"github.com/tasq-dev/tasq/engine/why"
	"github.com/tasq-dev/tasq/internal/printable"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workflow"
)

// schedules is the command "schedules".
func (a *app) schedules() *cobra.Command {
	return &cobra.Command{
		Use: "schedules [NAME]", Short: "list schedules, or show one with its next five ticks",
		Long: paragraph("List the schedules of the database: their expression, zone and state, the outcome of the last run, and the next " +
			"tick. With a NAME, or as JSON, also the last and the next five ticks in the zone of the schedule, and the changes that " +
			"people made. The state is active, paused, waiting (a tick waits for a run to end), failing (the latest tick could not " +
			"begin) or over."),
		Example: "  tasq schedules\n  tasq schedules digest\n  tasq schedules -o json | jq -r .next[0]",
		Args:    between(0, "the NAME of a schedule"),
		RunE: a.run(func(ctx context.Context, args []string) error {
			return a.view(ctx, func(r store.Reader) error {
				if len(args) == 1 {
					i, err := schedules.Find(ctx, store.ViewerOf(r), args[0])
					if err != nil {
						return exit(ExitNotFound, "there is no schedule %q; tasq schedules lists them", args[0])
					}
					return errors.Join(a.showSchedule(ctx, r, i), a.unserved(ctx, r, i))
				}
				list, err := schedules.List(ctx, store.ViewerOf(r))
				if err != nil {
					return err
				}
				return a.listSchedules(ctx, r, list)
			})
		}),
	}
}

func (a *app) listSchedules(ctx context.Context, r store.Reader, list []*schedules.Info) error {
	t := a.table("NAME", "SPEC", "ZONE", "STATE", "LATEST", "OUTCOME", "NEXT")
	for _, i := range list {
		row, err := i.Describe(ctx, r, now())
		if err == nil && a.output == "json" {
			err = a.object(row)
		}
		if err != nil {
			return err
		}
		latest, next := "", ""
		if i.Latest != nil {
			latest = i.Latest.Tick.In(zoneOf(i)).Format(minutes)
		}
		if len(row.Next) > 0 && !i.Schedule.Paused {
			next = row.Next[0].Format(minutes)
		}
		t.add(row.Name, row.Spec, row.Zone, row.State, latest, row.Outcome, next)
	}
	if a.output == "json" {
		return nil
	}
	if len(list) == 0 {
		a.remark("no schedules")
	}
	return t.flush()
}

// minutes is the format of times in the list of schedules.
const minutes = "2006-01-02 15:04"

func zoneOf(i *schedules.Info) *time.Location {
	table, err := i.Schedule.Compile()
	if err != nil {
		return time.UTC
	}
	return table.Next(i.Last).Location()
}

// showSchedule prints all details of a schedule.
func (a *app) showSchedule(ctx context.Context, r store.Reader, i *schedules.Info) error {
	row, err := i.Describe(ctx, r, now())
	if err != nil {
		return err
	}
	if a.output == "json" {
		return a.object(row)
	}
	if err := a.say("schedule %s: %s in %s, starts %s, %s; overlap %s, catch-up %s; case %s", row.Name, row.Spec, row.Zone, row.Starts,
		row.State, row.Overlap, row.CatchUp, row.Case); err != nil {
		return err
	}
	if l := row.Latest; l != nil {
		if err := a.say("latest: tick %s %s %s", l.Tick.In(zoneOf(i)).Format(time.RFC3339), row.Outcome, a.failed(row.Failure)); err != nil {
			return err
		}
	}
	for _, part := range []struct {
		word  string
		ticks []time.Time
	}{{"last", row.Last}, {"next", row.Next}, {"waits", row.Waiting}} {
		for _, tick := range part.ticks {
			if err := a.say("%s: %s", part.word, tick.Format("Mon 2006-01-02 15:04:05 MST")); err != nil {
				return err
			}
		}
	}
	for _, c := range row.Changes {
		at := printable.Time(c.At)
		if c.At.IsZero() {
			at = "at the beginning"
		}
		line := at + ": " + c.What
		if c.By != "" {
			line += " by " + c.By
		}
		if c.Reason != "" {
			line += ": " + c.Reason
		}
		if err := a.say("%s", line); err != nil {
			return err
		}
	}
	return nil
}

// unserved says that no open engine has what a schedule needs, if that is known.
func (a *app) unserved(ctx context.Context, r store.Reader, i *schedules.Info) error {
	if a.output == "json" {
		return nil
	}
	here, err := a.here(ctx, r)
	if err != nil {
		return err
	}
	answer, err := why.Read(ctx, r, i.Case, now(), here)
	if err != nil {
		return err
	}
	for _, w := range answer.Waits {
		if w.Blocked == why.NotLoaded {
			return a.say("%s", w.Words(now()))
		}
	}
	return nil
}

// withSchedules adds the workflow of schedules to the code of this process, but only for a command on a schedule: an
// engine with that workflow also begins due ticks.
func (a *app) withSchedules(code []*workflow.Definition, c workflow.Command) []*workflow.Definition {
	if c.Workflow != schedules.Name {
		return code
	}
	return append(code, schedules.New(engine.Code).Untyped())
}
