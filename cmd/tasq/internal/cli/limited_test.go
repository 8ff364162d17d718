package cli

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/limit"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/step"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workflow"
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

// Which key of a limit a job needs, only a program computes: the doctor names the keys that are set to 0. What a step needs is recorded.
func TestDoctorNamesKeysAndLimitsOfStepsThatAreSetToZero(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, db store.Opener, at string) {
		own := func(s string) string { return s }
		keyed := builder.MustFunc("keyed", func(_ context.Context, s string) (string, error) { return s, nil },
			builder.Limits(builder.TakesBy(limit.Resource("customers", 3), 1, own)))
		calls := limit.Resource("calls", 3)
		stepped := builder.MustFunc("stepped", func(ctx context.Context, s string) (string, error) {
			return step.Do(ctx, "ask", func(context.Context) (string, error) { return s, nil }, step.Limits(step.TakesBy(calls, 1, s)))
		}, builder.Limits(builder.TakenBySteps(calls)))
		e, err := engine.Config{Clock: anHourBehind{retry.SystemClock}}.Open(t.Context(), db, keyed, stepped)
		require.NoError(t, err)
		for _, key := range []string{"eve", "mallory", "trudy", "sybil"} {
			_, err = e.Do(t.Context(), workflow.SetLimitOf("customers", key, 0, workflow.By("ann")))
			require.NoError(t, err)
		}
		ada, err := stepped.Run(t.Context(), e, "ada") // defines its limit
		require.NoError(t, err)
		_, err = ada.Result(t.Context(), e)
		require.NoError(t, err)
		_, err = e.Do(t.Context(), workflow.SetLimitOf("calls", "eve", 0, workflow.By("ann")))
		require.NoError(t, err)
		kept, err := keyed.Start(t.Context(), e, "eve")
		require.NoError(t, err)
		held, err := stepped.Start(t.Context(), e, "eve")
		require.NoError(t, err)
		require.Eventually(t, func() bool {
			answer, err := e.Why(t.Context(), held)
			return err == nil && strings.Contains(answer.String(), "(of eve)")
		}, time.Minute, time.Millisecond)
		require.NoError(t, e.Close())

		code, out, _ := tasq(t, at, "doctor", "--live")
		require.Equal(t, ExitNo, code)
		require.Contains(t, out, "case "+held.String()+" of stepped (limited): ")
		require.Contains(t, out, "\n  to repair it: tasq limit set --key eve calls 3\n")
		require.Contains(t, out, "case "+kept.String()+" of keyed (no-workers): ")
		require.Contains(t, out, ", or, if it needs the limit, tasq limit set --key eve customers 3, tasq limit set --key mallory customers 3, "+
			"tasq limit set --key sybil customers 3, and 1 more key (tasq limits)\n")
		for _, name := range []string{"calls", "customers"} {
			code, _, errs := tasq(t, at, "limit", "set", "--key", "eve", name, "3")
			require.Zero(t, code, errs)
		}
		_, out, _ = tasq(t, at, "doctor", "--live")
		require.NotContains(t, out, "--key eve")
		code, out, _ = tasq(t, at, "doctor")
		require.Zero(t, code, out)
	})
}

// anHourBehind is the clock of a program that has closed its database since.
type anHourBehind struct{ retry.Clock }

func (anHourBehind) Now() time.Time { return retry.SystemClock.Now().Add(-time.Hour) }
