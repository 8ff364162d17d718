package cli

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tasq-dev/tasq/internal/printable"
	"github.com/tasq-dev/tasq/store"
)

func (a *app) processes() *cobra.Command {
	cmd := &cobra.Command{
		Use: "processes", Short: "list the engines that have the database open",
		Long: paragraph("List the engines that have a PostgreSQL database open, in the order in which they joined: since when, how many " +
			"live jobs each holds, how many of them run, for how long the earliest of the others has been due, the age of its last heartbeat, " +
			"by how much its clock is ahead of the server's, and its definitions. A file has one engine at most."),
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
	Lag         string    `json:"lag"`
	Definitions int       `json:"definitions"`
	Knows       []string  `json:"knows,omitempty"` // its definitions, as name and version; none if it has the database alone
	Silent      string    `json:"silent"`
	Skew        string    `json:"skew"`
}

func (a *app) listProcesses(ctx context.Context, r store.Reader) error {
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
	names, err := definitionNames(ctx, r)
	if err != nil {
		return err
	}
	t := a.table("ID", "PROCESS", "SINCE", "HELD", "RUNNING", "LATE", "SEEN", "CLOCK", "DEFINITIONS")
	for _, m := range members {
		row := processRow{ID: m.ID, Name: m.Name, Joined: m.Joined, Held: m.Held, Running: m.Running, Definitions: m.Definitions,
			Lag: m.Lag.Round(time.Millisecond).String(), Knows: known(m, names), Silent: m.Silent.Round(time.Millisecond).String(), Skew: m.Skew.Round(time.Millisecond).String()}
		if a.output == "json" {
			if err := a.object(row); err != nil {
				return err
			}
			continue
		}
		knows := number(int64(m.Definitions))
		if len(row.Knows) > 0 {
			knows += ": " + strings.Join(row.Knows, ", ")
		}
		t.add(number(m.ID), m.Name, printable.Time(m.Joined), number(m.Held), number(m.Running), row.Lag, row.Silent+" ago", row.Skew, knows)
	}
	return t.flush()
}

// definitionNames returns the name and version of each definition, by its fingerprint.
func definitionNames(ctx context.Context, r store.Reader) (map[string]string, error) {
	defs, err := r.Definitions(ctx)
	names := make(map[string]string, len(defs))
	for _, d := range defs {
		names[d.Fingerprint] = strings.TrimSpace(d.Name + " " + d.Version)
	}
	return names, err
}

// known returns the names of the definitions of an engine, sorted; for one that is not in the database, its fingerprint.
func known(m store.Member, names map[string]string) (all []string) {
	for _, print := range m.Fingerprints {
		all = append(all, cmp.Or(names[print], print))
	}
	slices.Sort(all)
	return all
}
