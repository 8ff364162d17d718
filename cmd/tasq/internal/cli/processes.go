package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/tasq-dev/tasq/internal/printable"
	"github.com/tasq-dev/tasq/store"
)

func (a *app) processes() *cobra.Command {
	cmd := &cobra.Command{
		Use: "processes", Short: "list the engines that have the database open",
		Long: paragraph("List the engines that have a PostgreSQL database open, in the order in which they joined: since when, how many " +
			"live jobs each holds, how many of them run, the number of its definitions, the age of its last heartbeat, and by how " +
			"much its clock is ahead of the server's. A file has one engine at most."),
		Example: `  tasq processes -d postgres://app@db.example/article`,
		Args:    exactly(),
	}
	cmd.RunE = a.run(func(ctx context.Context, _ []string) error {
		return a.view(ctx, func(r store.Reader) error { return a.listProcesses(ctx, r) })
	})
	return cmd
}

// processRow is an engine as JSON.
type processRow struct {
	ID          int64     `json:"id"`
	Name        string    `json:"name"` // host and process
	Joined      time.Time `json:"joined"`
	Held        int64     `json:"held"`
	Running     int64     `json:"running"`
	Definitions int       `json:"definitions"`
	Silent      string    `json:"silent"`
	Skew        string    `json:"skew"`
}

func (a *app) listProcesses(ctx context.Context, r store.Finder) error {
	fleet, ok := r.(store.Members)
	if !ok {
		return exit(ExitUsage, "a file belongs to one process, which the error of a second one names; give a database of a server with -d postgres://...")
	}
	members, err := fleet.Members(ctx)
	if err != nil {
		return err
	}
	if len(members) == 0 && a.output != "json" {
		a.remark("no engine has the database open")
	}
	t := a.table("ID", "PROCESS", "SINCE", "HELD", "RUNNING", "DEFINITIONS", "SEEN", "CLOCK")
	for _, m := range members {
		row := processRow{ID: m.ID, Name: m.Name, Joined: m.Joined, Held: m.Held, Running: m.Running, Definitions: m.Definitions,
			Silent: m.Silent.Round(time.Millisecond).String(), Skew: m.Skew.Round(time.Millisecond).String()}
		if a.output == "json" {
			if err := a.object(row); err != nil {
				return err
			}
			continue
		}
		t.add(number(m.ID), m.Name, printable.Time(m.Joined), number(m.Held), number(m.Running), number(int64(m.Definitions)), row.Silent+" ago", row.Skew)
	}
	return t.flush()
}
