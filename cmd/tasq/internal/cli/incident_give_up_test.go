package cli_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/cmd/tasq/internal/cli"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// The task that holds a failed child case is given up by the id of the incident, which tasq why says, and many by their kind.
func TestHeldChildCasesAreGivenUp(t *testing.T) {
	t.Parallel()
	c := builder.New[any]("child")
	c.Path(c.Start(), builder.Task(c, "pay", builder.Work[any, any]{}), c.End())
	p := builder.New[any]("parent")
	p.Path(p.Start(), builder.Composite(p, "kids", c.MustBuild(), builder.Cases[any]{Policy: workitem.Incident(workitem.Default()),
		Items: func(context.Context, *activities.Activation) ([]any, error) { return []any{1}, nil }}), p.End())
	parent := p.MustBuild()
	for name, open := range bothStores {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o, db := open(t)
			e, err := engine.Open(t.Context(), o, parent)
			require.NoError(t, err)
			says := func(args ...string) string {
				code, out, errs := call(t.Context(), append(args, "--db", db)...)
				require.Equal(t, cli.ExitOK, code, errs)
				return out
			}
			for range 3 {
				_, err := parent.Start(t.Context(), e, nil)
				require.NoError(t, err)
			}
			for it, err := range store.AllItems(t.Context(), e, store.ItemFilter{States: []workitem.State{workitem.Initialized}}) {
				require.NoError(t, err)
				says("item", "start", it.ID.String(), "--by", "ann")
				says("item", "fail", it.ID.String(), "--by", "ann", "--data", `{"code":"no-funds"}`)
			}
			open := func() (all []*store.Incident) {
				for i, err := range store.Incidents(t.Context(), e, store.IncidentFilter{Kind: state.IncidentCase}) {
					require.NoError(t, err)
					all = append(all, i)
				}
				return all
			}
			one := open()[0]
			give := "tasq incident give-up " + one.ID.String()
			require.Contains(t, says("why", one.Case.String()), give)
			require.Contains(t, says(append(strings.Fields(give)[1:], "--dry-run")...), "case failed: no-funds")
			require.Len(t, open(), 3)
			require.Contains(t, says(append(strings.Fields(give)[1:], "--reason", "too late")...), "of case "+one.Case.String()+" is given up")
			require.Contains(t, says("show", one.Case.String()), "is failed (no-funds)")
			require.Equal(t, "2 incidents would be acted on; repeat the command with --all\n", says("incident", "give-up", "--kind", "case"))
			require.Equal(t, "2 incidents done, 0 refused\n", says("incident", "give-up", "--kind", "case", "--all"))
			require.Empty(t, open())
			require.NoError(t, e.Close())
			says("doctor", "--quiet")
		})
	}
}
