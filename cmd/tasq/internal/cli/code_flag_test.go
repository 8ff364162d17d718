package cli

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// Cases are found by the code of their failure, and those whose failure has none.
func TestCasesWithoutAFailureCode(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, db store.Opener, at string) {
		b := builder.New[any]("desk")
		b.Path(b.Start(), builder.Task(b, "check", builder.Work[any, any]{}), b.End())
		w, err := b.Build()
		require.NoError(t, err)
		e, err := engine.Config{Workers: -1}.Open(t.Context(), db, w)
		require.NoError(t, err)
		start := func(reason *workitem.Failure) string {
			id, err := w.Start(t.Context(), e, nil)
			require.NoError(t, err)
			if reason != nil {
				_, err = e.Do(t.Context(), workflow.Cancel(id, reason))
				require.NoError(t, err)
			}
			return id.String()
		}
		live, coded, none := start(nil), start(&workitem.Failure{Code: "late"}), start(&workitem.Failure{Message: "too late"})
		id, err := w.Start(t.Context(), e, nil)
		require.NoError(t, err)
		var bad workitem.ID
		for it, err := range store.AllItems(t.Context(), e, store.ItemFilter{Case: id}) {
			require.NoError(t, err)
			bad = it.ID
		}
		_, err = e.Do(t.Context(), workflow.Act(bad, workitem.Start, nil))
		require.NoError(t, err)
		_, err = e.Do(t.Context(), workflow.Fail(bad, &workitem.Failure{Message: "torn"}))
		require.NoError(t, err)
		require.NoError(t, e.Close())
		found := func(flags ...string) (all []string) {
			code, out, errs := tasq(t, at, append([]string{"cases", "-o", "json"}, flags...)...)
			require.Zero(t, code, errs)
			for _, id := range []string{live, coded, none} {
				if strings.Contains(out, id) {
					all = append(all, id)
				}
			}
			return all
		}
		require.Equal(t, []string{live, coded, none}, found())
		require.Equal(t, []string{coded}, found("--code", "late"))
		require.Equal(t, []string{none}, found("--no-code"))
		code, out, errs := tasq(t, at, "items", "--no-code", "-o", "json")
		require.Zero(t, code, errs)
		require.Contains(t, out, bad.String())
		require.Equal(t, 1, strings.Count(out, "\n"), "those that were canceled with their case have the code of that")
		for _, list := range []string{"cases", "items", "incidents"} {
			code, _, errs := tasq(t, at, list, "--no-code", "--code", "late")
			require.Equal(t, ExitUsage, code)
			require.Contains(t, errs, "--code and --no-code cannot be combined: give one of them")
		}
		code, _, errs = tasq(t, at, "cases", "--code", "")
		require.Equal(t, ExitUsage, code)
		require.Contains(t, errs, "--no-code")
	})
}
