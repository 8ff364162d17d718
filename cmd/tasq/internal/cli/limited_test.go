package cli

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/limit"
	"github.com/tasq-dev/tasq/store"
)

// The doctor finds in the database alone that work needs a limit that is set to 0, and its command repairs that.
func TestDoctorFindsALimitThatIsSetToZero(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, db store.Opener, at string) {
		f := builder.MustFunc("ask", func(_ context.Context, s string) (string, error) { return s, nil }, builder.Limits(builder.Takes(limit.Resource("calls", 3), 1)))
		e, err := engine.Config{Workers: -1}.Open(t.Context(), db, f)
		require.NoError(t, err)
		run, err := f.Start(t.Context(), e, "x")
		require.NoError(t, err)
		require.NoError(t, e.Close())
		code, _, errs := tasq(t, at, "limit", "set", "calls", "0", "--by", "ann", "--reason", "the provider is down")
		require.Zero(t, code, errs)

		code, out, _ := tasq(t, at, "doctor", "--live")
		require.Equal(t, ExitNo, code)
		require.Contains(t, out, "case "+run.String()+" of ask (limited): ")
		require.Contains(t, out, "; limit calls is set to 0 by ann ")
		require.Contains(t, out, "\n  to repair it: tasq limit set calls 3\n")
		code, _, errs = tasq(t, at, "limit", "set", "calls", "3")
		require.Zero(t, code, errs)
		code, out, _ = tasq(t, at, "doctor", "--live")
		require.Zero(t, code, out)
		code, out, _ = tasq(t, at, "doctor")
		require.Zero(t, code, out)
	})
}
