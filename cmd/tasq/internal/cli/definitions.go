package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tasq-dev/tasq/internal/printable"
	"github.com/tasq-dev/tasq/internal/record"
	"github.com/tasq-dev/tasq/store"
)

func (a *app) definitions() *cobra.Command {
	var workflow string
	cmd := &cobra.Command{
		Use: "definitions", Short: "list the workflow definitions in the database",
		Long: paragraph("List the definitions that engines were opened with, by the name of the workflow, the oldest first. A definition " +
			"is code if only the program with that code can run it; otherwise any tasq can. The list has the numbers of active and " +
			"ended cases, including child cases, whether the workflow is suspended (see tasq workflow suspend), and the allowed findings of unsound definitions."),
		Example: `  tasq definitions
  tasq definitions --workflow article -o json | jq -r .fingerprint`,
		Args: exactly(),
	}
	cmd.Flags().StringVar(&workflow, "workflow", "", "only those of the workflow with this `name`")
	cmd.RunE = a.run(func(ctx context.Context, _ []string) error {
		return a.view(ctx, func(r store.Reader) error { return a.listDefinitions(ctx, r, workflow) })
	})
	return cmd
}

func (a *app) listDefinitions(ctx context.Context, r store.Reader, workflow string) error {
	known, err := namesOf(ctx, r)
	if err == nil {
		err = known.check(workflow, "")
	}
	if err != nil {
		return err
	}
	rows, err := record.Definitions(ctx, r, known.defs)
	if err != nil {
		return err
	}
	t := a.table("WORKFLOW", "VERSION", "FINGERPRINT", "TASKS", "CODE", "LIVE", "ENDED", "REGISTERED", "STATE", "ALLOWS")
	for _, d := range rows {
		switch {
		case workflow != "" && d.Workflow != workflow:
		case a.output == "json":
			if err := a.object(d); err != nil {
				return err
			}
		default:
			code, state := "no", "open"
			if d.Code {
				code = "yes"
			}
			if d.Suspended != nil {
				state = "suspended"
			}
			t.add(d.Workflow, d.Version, d.Fingerprint[:min(len(d.Fingerprint), 12)], number(int64(len(d.Tasks))), code, number(d.Live), number(d.Ended),
				printable.Time(d.Registered), state, strings.Join(d.Allows, ", "))
		}
	}
	if len(rows) == 0 {
		a.remark("no definitions")
	}
	return t.flush()
}
