package cli_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/cmd/tasq/internal/cli"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/store/sqlite"
)

// A retry of incidents without the program, which has the code of their workflow, says that this is missing, and not that nothing has failed.
func TestARetryOfIncidentsNeedsTheirCode(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.db")
	begun := make(chan struct{})
	deadly := builder.MustFunc("deadly", func(ctx context.Context, n int) (int, error) {
		begun <- struct{}{}
		<-ctx.Done()
		return 0, ctx.Err()
	})
	t.Run("it arises", func(t *testing.T) {
		e := enginetest.Open(t, sqlite.File(path), engine.Config{}, deadly)
		_, err := deadly.Run(t.Context(), e, 1)
		require.NoError(t, err)
		for range 4 {
			<-begun
			require.NoError(t, e.Update(t.Context(), func(*engine.Tx) error { return nil })) // the claim is durable
			e.Crash()
		}
		e.Drain()
	})
	code, out, errs := call(t.Context(), "incident", "retry", "--kind", "crash", "--all", "--db", path)
	require.Equal(t, cli.ExitRefused, code)
	require.Equal(t, "0 incidents done, 1 refused\n", out)
	require.Contains(t, errs, "not opened with")
	require.NotContains(t, errs, "has not failed")
	code, out, _ = call(t.Context(), "incidents", "--kind", "crash", "--db", path)
	require.Equal(t, cli.ExitOK, code)
	require.Contains(t, out, "run.1.1")
}
