package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/tasq-dev/tasq/internal/printable"
	"github.com/tasq-dev/tasq/internal/record"
	"github.com/tasq-dev/tasq/store"
)

func (a *app) processes() *cobra.Command {
	cmd := &cobra.Command{
		Use: "processes", Short: "list the engines that have the database open",
		Long: paragraph("List the engines that have a PostgreSQL database open, in the order in which they joined: since when, how many " +
			"live jobs each holds, how many of them run, for how long the earliest of the others has been due, the age of its last heartbeat, " +
			"by how much its clock is ahead of the server's, and its definitions, unless it has the database alone. An engine is overdue if its " +
			"heartbeats have stopped: another engine will declare it dead, or one that is opened. The engines that were declared dead within a " +
			"day follow, the latest first, with the jobs that each held then, and the process that declared it dead. A file has one engine at most."),
		Example: `  tasq processes -d postgres://app@db.example/article`,
		Args:    exactly(),
	}
	cmd.RunE = a.run(func(ctx context.Context, _ []string) error {
		return a.view(ctx, func(r store.Reader) error { return a.listProcesses(ctx, r) })
	})
	return cmd
}

func (a *app) listProcesses(ctx context.Context, r store.Reader) error {
	engines, ok, err := record.Engines(ctx, r)
	if err != nil {
		return err
	}
	if !ok {
		return exit(ExitUsage, "a file belongs to one process, which the error of a second one names; give a database of a server with -d postgres://...")
	}
	if a.output == "json" {
		return objects(a, engines)
	}
	live, dead := record.Living(engines)
	if len(live) == 0 {
		a.remark("no engine has the database open")
	}
	t := a.table("ID", "PROCESS", "STATE", "SINCE", "HELD", "RUNNING", "LATE", "SEEN", "CLOCK", "DEFINITIONS")
	for _, e := range live {
		t.add(number(e.ID), e.Name, e.State, printable.Time(e.Joined), number(e.Held), number(e.Running), e.Lag, e.Silent+" ago", e.Skew, e.Known(number(int64(e.Definitions))))
	}
	if err := t.flush(); err != nil || len(dead) == 0 {
		return err
	}
	t = a.table("ID", "PROCESS", "STATE", "SINCE", "HELD", "RUNNING", "SEEN", "DIED", "DECLARED BY")
	for _, e := range dead {
		t.add(number(e.ID), e.Name, e.State, printable.Time(e.Joined), number(e.Held), number(e.Running), e.Silent+" ago", printable.Time(e.Died), e.DeclaredBy)
	}
	return t.flush()
}
