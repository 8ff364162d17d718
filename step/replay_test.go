package step_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/step"
	"github.com/tasq-dev/tasq/step/steptest"
	"github.com/tasq-dev/tasq/workitem"
)

func TestANameIsUsedOnce(t *testing.T) {
	job, count := steptest.New(), calls{}
	out := job.Run(t.Context(), func(ctx context.Context) error {
		for i := range 2 {
			if _, err := count.do(ctx, "sync", i); err != nil {
				return err
			}
		}
		return nil
	})
	require.ErrorIs(t, out.Err, step.ErrDuplicate)
	require.Regexp(t, `^step "sync": its name is used twice in one run, at do_test.go:\d+ and at do_test.go:\d+; `+
		`give each step a name of its own, in a loop with the number or the id of what it is about$`, out.Err.Error())
	require.Equal(t, calls{"sync": 1}, count)
	require.True(t, retry.IsPermanent(out.Err), "only other code can mend it")

	out = steptest.New().Run(t.Context(), func(ctx context.Context) error {
		if err := step.Sleep(ctx, "x", 0); err != nil {
			return err
		}
		_, err := step.Now(ctx, "x")
		return err
	})
	require.ErrorIs(t, out.Err, step.ErrDuplicate, "also of another kind")
}

// A job whose steps are mixed up doesn't complete, even if its function ignores that.
func TestAMisuseOfStepsCannotBeIgnored(t *testing.T) {
	out := steptest.New().Run(t.Context(), func(ctx context.Context) error {
		_ = calls{}.fails(ctx, "x", nil)
		_ = calls{}.fails(ctx, "x", nil)
		return nil
	})
	require.ErrorIs(t, out.Err, step.ErrDuplicate)
}

// changed runs a job with one function until it waits, and then with another one.
func changed(t *testing.T, was, is func(context.Context) error) step.Outcome {
	job := steptest.New()
	require.True(t, job.Run(t.Context(), was).Suspended)
	job.Advance(time.Hour)
	return job.Run(t.Context(), is)
}

func nap(ctx context.Context) error { return step.Sleep(ctx, "nap", time.Hour) }

func TestChangedCodeIsNoticed(t *testing.T) {
	type order struct {
		ID    int
		Items []string
	}
	do := func(opts ...step.Option) func(context.Context) error {
		return func(ctx context.Context) error {
			if err := (calls{}).fails(ctx, "x", nil, opts...); err != nil {
				return err
			}
			return nap(ctx)
		}
	}
	call := func(workflow string, input any, opts ...step.Option) func(context.Context) error {
		return func(ctx context.Context) error {
			b := step.Go(ctx, func(ctx context.Context) (int, error) {
				return step.Call[int](ctx, "x", workflow, input, opts...)
			})
			if err := nap(ctx); err != nil {
				return err
			}
			_, err := b.Wait(ctx)
			return err
		}
	}
	await := func(event string, opts ...step.Option) func(context.Context) error {
		return func(ctx context.Context) error {
			b := step.Go(ctx, func(ctx context.Context) (int, error) {
				return step.Await[int](ctx, event, append(opts, step.Named("x"))...)
			})
			if err := nap(ctx); err != nil {
				return err
			}
			_, err := b.Wait(ctx)
			return err
		}
	}
	is := func(f func(context.Context) error) func(context.Context) error {
		return func(ctx context.Context) error {
			if err := f(ctx); err != nil {
				return err
			}
			return nap(ctx)
		}
	}
	for name, c := range map[string]struct {
		was, is func(context.Context) error
		text    string // "" if it is accepted
	}{
		"nothing":         {do(step.Input(order{7, nil})), do(step.Input(order{7, nil})), ""},
		"order of fields": {do(step.Input(order{7, nil})), do(step.Input(map[string]any{"Items": nil, "ID": 7})), ""},
		"input": {do(step.Input(order{7, nil})), do(step.Input(order{8, nil})),
			`it was recorded with the input {"ID":7,"Items":null}, and is now called with {"ID":8,"Items":null}`},
		"input, loose":    {do(step.Input(1)), do(step.Input(2), step.Loose()), ""},
		"no input":        {do(step.Input(1)), do(), "recorded with the input 1, and is now called with nothing"},
		"no input, loose": {do(step.Input(1)), do(step.Loose()), ""},
		"input added":     {do(), do(step.Input(1)), "with the input nothing, and is now called with 1"},
		"long input": {do(step.Input(strings.Repeat("x", 999))), do(step.Input(1)),
			"xxx... (1001 bytes), and is now called with 1"},
		"kind": {do(), is(func(ctx context.Context) error { return step.Sleep(ctx, "x", 0) }),
			"it was recorded as the call of a function, and is now called as a sleep"},
		"kind, loose": {do(), is(func(ctx context.Context) error {
			return second(step.Call[int](ctx, "x", "w", 1, step.Loose()))
		}), `and is now called as a case of the workflow "w"`},
		"kind to token": {do(), is(func(ctx context.Context) error { return second(step.Token(ctx, "x", "e")) }),
			`as a token for the event "e"`},
		"kind to value": {do(), is(func(ctx context.Context) error { return second(step.Now(ctx, "x")) }), "as a value"},
		"kind to tx": {do(), is(func(ctx context.Context) error { return second(step.Tx(ctx, "x", noTx)) }),
			"as a transaction"},
		"kind to race": {do(), is(func(ctx context.Context) error {
			return second(step.Race(ctx, "x", awaits(ctx, "e")))
		}), "as a choice of branches"},
		"workflow": {call("shipping", 1), call("billing", 1), `it was recorded as a case of the workflow "shipping", ` +
			`and is now called as a case of the workflow "billing"`},
		"workflow, loose":  {call("shipping", 1), call("billing", 1, step.Loose()), `a case of the workflow "billing"`},
		"call input":       {call("shipping", 1), call("shipping", 2), "with the input 1, and is now called with 2"},
		"call input loose": {call("shipping", 1), call("shipping", 2, step.Loose()), ""},
		"event": {await("paid"), await("payed"),
			`it was recorded as a wait for the event "paid", and is now called as a wait for the event "payed"`},
		"topic": {await("paid"), await("paid", step.Topic()), `and is now called as a wait for the topic "paid"`},
	} {
		t.Run(name, func(t *testing.T) {
			out := changed(t, c.was, c.is)
			if c.text == "" {
				require.NoError(t, out.Err)
				return
			}
			require.ErrorContains(t, out.Err, c.text)
			require.ErrorIs(t, out.Err, step.ErrChanged)
			require.ErrorContains(t, out.Err, `step "x": `)
			require.ErrorContains(t, out.Err, "_test.go:")
		})
	}
}

func TestAMisuseOfStepsIsReportedWithTheFunctionsError(t *testing.T) {
	out := steptest.New().Run(t.Context(), func(ctx context.Context) error {
		_ = calls{}.fails(ctx, "x", nil)
		_ = calls{}.fails(ctx, "x", nil)
		return errFlaky
	})
	require.ErrorIs(t, out.Err, step.ErrDuplicate)
	require.ErrorIs(t, out.Err, errFlaky)
	require.True(t, retry.IsPermanent(out.Err))
}

func TestChangedBranchesAreNoticed(t *testing.T) {
	race := func(n int) func(context.Context) error {
		return func(ctx context.Context) error {
			branches := []step.AnyBranch{sleeps(ctx, "quick", 0, 1)}
			for i := range n - 1 {
				branches = append(branches, awaits(ctx, fmt.Sprint("e", i)))
			}
			if _, err := step.Race(ctx, "which", branches...); err != nil {
				return err
			}
			return nap(ctx)
		}
	}
	out := changed(t, race(2), race(3))
	require.ErrorIs(t, out.Err, step.ErrChanged)
	require.ErrorContains(t, out.Err, `it was recorded with the input {"race":2}, and is now called with {"race":3}`)
}

func TestAResultThatIsNoLongerOfTheTypeIsNoticed(t *testing.T) {
	out := changed(t,
		func(ctx context.Context) error {
			_, _ = step.Do(ctx, "x", func(context.Context) (string, error) { return "seven", nil })
			return nap(ctx)
		},
		func(ctx context.Context) error { return second(calls{}.do(ctx, "x", 1)) })
	require.ErrorIs(t, out.Err, step.ErrChanged)
	require.ErrorContains(t, out.Err, `step "x": its result can't be read as the type that is asked for`)
}

// Steps are found by their names: two that change places are no change, and neither is done again.
func TestStepsMayChangePlaces(t *testing.T) {
	count := calls{}
	in := func(names ...string) func(context.Context) error {
		return func(ctx context.Context) error {
			for _, name := range names {
				if got, err := count.do(ctx, name, len(name)); err != nil || got != len(name) {
					return fmt.Errorf("%s is %d: %w", name, got, err)
				}
			}
			return nap(ctx)
		}
	}
	require.NoError(t, changed(t, in("a", "bb"), in("bb", "a")).Err)
	require.Equal(t, calls{"a": 1, "bb": 1}, count)
}

func TestHistoryThatIsLeftOverIsNoticed(t *testing.T) {
	six := func(ctx context.Context) error {
		for _, name := range []string{"a", "b", "c", "d", "e"} {
			if err := (calls{}).fails(ctx, name, nil); err != nil {
				return err
			}
		}
		return nap(ctx)
	}
	out := changed(t, six, func(ctx context.Context) error { return second(calls{}.do(ctx, "a", 1)) })
	require.ErrorIs(t, out.Err, step.ErrHistory)
	require.EqualError(t, out.Err, `the function returned without coming to what was recorded: `+
		`"b" (the call of a function, done), "c" (the call of a function, done), "d" (the call of a function, done), and 2 more; `+
		`let it come to them, or use step.Version to end old jobs as they began`)

	out = changed(t, nap, func(context.Context) error { return nil })
	require.ErrorContains(t, out.Err, `"nap" (a sleep, done); let`, "also if no step is left")

	out = changed(t, six, func(ctx context.Context) error { return errFlaky })
	require.ErrorIs(t, out.Err, errFlaky, "a function that fails need not come so far")
}

func TestAFunctionThatIgnoresItsSuspensionIsSuspendedAndGetsAnError(t *testing.T) {
	var log strings.Builder
	job := steptest.New()
	job.Info.Log = slog.New(slog.NewTextHandler(&log, nil))
	count := calls{}
	fn := func(ctx context.Context) error {
		_ = nap(ctx)
		_, err := count.do(ctx, "after", 1)
		require.True(t, job.Ready() == false)
		_ = err
		return nil
	}
	require.True(t, job.Run(t.Context(), fn).Suspended)
	require.Empty(t, count, "nothing is done after the suspension")
	require.Contains(t, log.String(), `level=WARN msg="step: a function went on after ErrSuspended; `)
	log.Reset()
	job.Advance(time.Hour)
	require.NoError(t, job.Run(t.Context(), fn).Err)
	require.Empty(t, log.String())
}

// A fresh item made by a retry has inherited what its predecessor had finished: the customer is charged once.
func TestInheritedStepsAreNotDoneAgain(t *testing.T) {
	job, count := steptest.New(), calls{}
	fn := func(ctx context.Context) error {
		if err := count.fails(ctx, "charge", nil); err != nil {
			return err
		}
		if count["save"] == 0 {
			return count.fails(ctx, "save", errFlaky)
		}
		return count.fails(ctx, "save", nil)
	}
	require.Error(t, job.Run(t.Context(), fn).Err)
	next := job.Restart()
	require.True(t, next.Step("charge").Copied)
	require.NoError(t, next.Run(t.Context(), fn).Err)
	require.Equal(t, calls{"charge": 1, "save": 2}, count)
}

// What was inherited, or belongs to an earlier attempt, may be left over: the new way need not lead there.
func TestInheritedHistoryMayBeLeftOver(t *testing.T) {
	job := steptest.New()
	fn := func(ctx context.Context) error {
		if job.Info.Attempt == 1 {
			_ = calls{}.fails(ctx, "a", nil)
			return errFlaky
		}
		return nil
	}
	require.Error(t, job.Run(t.Context(), fn).Err)
	next := job.Restart()
	require.NoError(t, next.Run(t.Context(), func(context.Context) error { return nil }).Err)
	job.Retry()
	require.NoError(t, job.Run(t.Context(), fn).Err)
}

func TestAChangedInheritedStepIsNoticed(t *testing.T) {
	job := steptest.New()
	amount := 10
	fn := func(ctx context.Context) error { return calls{}.fails(ctx, "charge", nil, step.Input(amount)) }
	require.NoError(t, job.Run(t.Context(), fn).Err)
	amount = 20
	require.ErrorIs(t, job.Restart().Run(t.Context(), fn).Err, step.ErrChanged)
}

func TestAChildIsNotRunAgainInTheNextAttempt(t *testing.T) {
	job, count := steptest.New(), calls{}
	fn := func(ctx context.Context) error {
		v, err := step.Call[int](ctx, "ship", "shipping", nil)
		if err != nil {
			return err
		}
		require.Equal(t, 5, v)
		if count["save"]++; count["save"] == 1 {
			return errFlaky
		}
		return nil
	}
	require.True(t, job.Run(t.Context(), fn).Suspended)
	require.NoError(t, job.Complete("ship", 5))
	require.Error(t, job.Run(t.Context(), fn).Err)
	job.Retry()
	require.NoError(t, job.Run(t.Context(), fn).Err)
	require.Len(t, job.Steps(), 1)
}

func TestAChildThatFailedIsRunAgainInTheNextAttempt(t *testing.T) {
	for name, end := range map[string]func(*steptest.Job) error{
		"failed":   func(j *steptest.Job) error { return j.Fail("ship", workitem.Failf("no", "no")) },
		"canceled": func(j *steptest.Job) error { return j.Cancel("ship") },
	} {
		t.Run(name, func(t *testing.T) {
			job := steptest.New()
			fn := func(ctx context.Context) error { return second(step.Call[int](ctx, "ship", "shipping", nil)) }
			require.True(t, job.Run(t.Context(), fn).Suspended)
			first := job.Step("ship").Child
			require.NoError(t, end(job))
			require.Error(t, job.Run(t.Context(), fn).Err)
			job.Retry()
			require.True(t, job.Run(t.Context(), fn).Suspended)
			require.NotEqual(t, first, job.Step("ship").Child)
			require.NoError(t, job.Complete("ship", 5))
			require.NoError(t, job.Run(t.Context(), fn).Err)
		})
	}
}

func TestManyWaitsUseNoAttempt(t *testing.T) {
	job := steptest.New()
	fn := func(ctx context.Context) error {
		for i := range 10 {
			if _, err := step.Call[int](ctx, fmt.Sprint("child ", i), "w", nil); err != nil {
				return err
			}
			if _, err := step.Await[int](ctx, fmt.Sprint("event ", i)); err != nil {
				return err
			}
		}
		return nil
	}
	for i := range 10 {
		require.True(t, job.Run(t.Context(), fn).Suspended)
		require.NoError(t, job.Complete(fmt.Sprint("child ", i), i))
		require.True(t, job.Run(t.Context(), fn).Suspended)
		require.NoError(t, job.Send(fmt.Sprint("event ", i), i))
	}
	require.NoError(t, job.Run(t.Context(), fn).Err)
	require.Equal(t, 1, job.Info.Attempt)
}

func TestTenThousandSteps(t *testing.T) {
	const n = 10_000
	job, count := steptest.New(), calls{}
	fn := func(ctx context.Context) error {
		for i := range n {
			if _, err := count.do(ctx, fmt.Sprint("step ", i), i); err != nil {
				return err
			}
		}
		return nap(ctx)
	}
	require.NoError(t, job.Drive(t.Context(), fn).Err)
	require.Len(t, count, n)
	require.Equal(t, 1, count["step 9999"])
	require.Equal(t, n+2, job.Writes())
}

func TestThreeThousandBranches(t *testing.T) {
	const n = 3_000
	job := steptest.New()
	fn := func(ctx context.Context) error {
		branches := make([]step.AnyBranch, n)
		for i := range n {
			branches[i] = sleeps(ctx, fmt.Sprint("sleep ", i), time.Duration(i%100+1)*time.Hour, i)
		}
		return step.All(ctx, branches...)
	}
	require.True(t, job.Run(t.Context(), fn).Suspended)
	job.Advance(1000 * time.Hour)
	require.NoError(t, job.Run(t.Context(), fn).Err)
}

// What is kept of a mistake has a code, by which failed runs are distinguished.
func TestAMistakeHasACode(t *testing.T) {
	nothing := func(context.Context) (int, error) { return 0, nil }
	for code, fn := range map[string]func(context.Context) error{
		step.CodeDuplicate: func(ctx context.Context) error {
			_, err := step.Do(ctx, "a", nothing)
			if err == nil {
				_, err = step.Do(ctx, "a", nothing)
			}
			return fmt.Errorf("the order: %w", err)
		},
		step.CodeUsage: func(ctx context.Context) error { return step.Sleep(ctx, "nap", -1) },
	} {
		out := steptest.New().Run(t.Context(), fn)
		require.Error(t, out.Err)
		f := workitem.FailureOf(out.Err)
		require.Equal(t, code, f.Code)
		require.Equal(t, out.Err.Error(), f.Message)
	}
}
