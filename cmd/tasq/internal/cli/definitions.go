package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tasq-dev/tasq/internal/printable"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
)

func (a *app) definitions() *cobra.Command {
	var workflow string
	cmd := &cobra.Command{
		Use: "definitions", Short: "list the definitions of workflows that the database knows",
		Long: paragraph("List the definitions that engines were opened with, by the name of the workflow, the oldest first. " +
			"A definition is code if only the program that has it can run it; otherwise any tasq can. It is listed with how " +
			"many of its cases go on and have ended, child cases among them, and with what makes it unsound and was allowed."),
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
	rows, err := definitionRows(ctx, r, known.defs)
	if err != nil {
		return err
	}
	t := a.table("WORKFLOW", "VERSION", "FINGERPRINT", "TASKS", "CODE", "LIVE", "ENDED", "REGISTERED", "ALLOWS")
	for _, d := range rows {
		switch {
		case workflow != "" && d.Workflow != workflow:
		case a.output == "json":
			if err := a.object(d); err != nil {
				return err
			}
		default:
			code := "no"
			if d.Code {
				code = "yes"
			}
			t.add(d.Workflow, d.Version, d.Fingerprint[:min(len(d.Fingerprint), 12)], number(int64(len(d.Tasks))), code, number(d.Live), number(d.Ended),
				printable.Time(d.Registered), strings.Join(d.Allows, ", "))
		}
	}
	if len(rows) == 0 {
		a.remark("no definitions")
	}
	return t.flush()
}

// definitionRow is the JSON form of a definition.
type definitionRow struct {
	Workflow    string    `json:"workflow"`
	Version     string    `json:"version,omitempty"`
	Fingerprint string    `json:"fingerprint"`
	Tasks       []string  `json:"tasks"`
	Code        bool      `json:"code"` // only the program that has it can run it
	Live        int64     `json:"live"` // cases that go on
	Ended       int64     `json:"ended"`
	Registered  time.Time `json:"registered"`
	Allows      []string  `json:"allows,omitempty"` // the ways in which it may be unsound
}

func definitionRows(ctx context.Context, r store.Reader, defs []*store.Definition) ([]*definitionRow, error) {
	rows := make([]*definitionRow, 0, len(defs))
	byPrint := make(map[string]*definitionRow, len(defs))
	for _, d := range defs {
		row := &definitionRow{
			Workflow: d.Name, Version: d.Version, Fingerprint: d.Fingerprint, Code: d.Code, Registered: d.Created,
		}
		for i := range d.Net.Tasks {
			row.Tasks = append(row.Tasks, d.Net.Tasks[i].Name)
		}
		var document struct{ Allows []string }
		if json.Unmarshal(d.Document, &document) == nil { // a definition that was given without one allows nothing
			row.Allows = document.Allows
		}
		rows, byPrint[d.Fingerprint] = append(rows, row), row
	}
	slices.SortStableFunc(rows, func(a, b *definitionRow) int {
		return cmp.Or(strings.Compare(a.Workflow, b.Workflow), a.Registered.Compare(b.Registered))
	})
	return rows, countCases(ctx, r, byPrint)
}

// countCases counts the cases of each definition. [store.Reader.Counts] is quicker, and counts all those of a workflow
// together.
func countCases(ctx context.Context, r store.Reader, byPrint map[string]*definitionRow) error {
	counts, err := r.CountsByDefinition(ctx, false)
	for _, c := range counts {
		switch d := byPrint[c.Fingerprint]; {
		case d == nil || c.State == "":
		case c.State == state.CaseStarted.String():
			d.Live += c.N
		default:
			d.Ended += c.N
		}
	}
	return err
}
