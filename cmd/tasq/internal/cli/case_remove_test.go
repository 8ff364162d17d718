package cli

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/internal/integrity"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workflow"
)

// The removal of a case that has ended calls no code of its workflow, so it needs no program.
func TestAnEndedCaseIsRemovedWithoutItsProgram(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, db store.Opener, at string) {
		f := builder.MustFunc("report", func(_ context.Context, s string) (string, error) { return s, nil })
		e, err := engine.Open(t.Context(), db, f)
		require.NoError(t, err)
		ended, err := f.Start(t.Context(), e, "x")
		require.NoError(t, err)
		_, err = e.Wait(t.Context(), ended)
		require.NoError(t, err)
		live, err := f.Start(t.Context(), e, "y", workflow.At(e.Now().AddDate(1, 0, 0)))
		require.NoError(t, err)
		require.NoError(t, e.Close())

		code, out, errs := tasq(t, at, "case", "remove", ended.String(), "--dry-run")
		require.Zero(t, code, errs)
		require.Contains(t, out, "removed")
		code, out, errs = tasq(t, at, "case", "remove", ended.String(), "--by", "ann", "--reason", "too old")
		require.Zero(t, code, errs)
		require.Equal(t, "case "+ended.String()+" is removed\n", out)
		code, _, errs = tasq(t, at, "case", "remove", live.String())
		require.Equal(t, ExitRefused, code)
		require.Contains(t, errs, "cannot be removed")
		code, _, _ = tasq(t, at, "show", ended.String())
		require.Equal(t, ExitNotFound, code)
		code, out, errs = tasq(t, at, "audit", "--case", ended.String())
		require.Zero(t, code, errs)
		require.Contains(t, out, "too old")

		e, err = engine.Open(t.Context(), db, f)
		require.NoError(t, err)
		require.NoError(t, integrity.Check(t.Context(), e))
		require.NoError(t, e.Close())
	})
}
