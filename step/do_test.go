package step_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/domain"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/step"
	"github.com/tasq-dev/tasq/step/steptest"
	"github.com/tasq-dev/tasq/workitem"
)

// calls counts the calls of steps' functions by name.
type calls map[string]int

// do is a step that returns a value, and is counted.
func (c calls) do(ctx context.Context, name string, value int, opts ...step.Option) (int, error) {
	return step.Do(ctx, name, func(context.Context) (int, error) {
		c[name]++
		return value, nil
	}, opts...)
}

// fails is a step that fails, and is counted.
func (c calls) fails(ctx context.Context, name string, err error, opts ...step.Option) error {
	_, got := step.Do(ctx, name, func(context.Context) (int, error) {
		c[name]++
		return 0, err
	}, opts...)
	return got
}

var errFlaky = errors.New("connection refused")

func TestAStepIsDoneOnceThoughItsJobRunsTwice(t *testing.T) {
	job, count := steptest.New(), calls{}
	sum := 0
	fn := func(ctx context.Context) error {
		a, err := count.do(ctx, "a", 1)
		if err != nil {
			return err
		}
		if err := step.Sleep(ctx, "night", 8*time.Hour); err != nil {
			return err
		}
		b, err := count.do(ctx, "b", 2)
		sum = a + b
		return err
	}
	require.True(t, job.Run(t.Context(), fn).Suspended)
	require.Equal(t, calls{"a": 1}, count)
	require.Equal(t, 2, job.Writes(), "one for a, one for the suspension with the sleep")
	require.True(t, job.Run(t.Context(), fn).Suspended, "nothing has ended yet")
	job.Advance(8 * time.Hour)
	require.Equal(t, step.Outcome{}, job.Run(t.Context(), fn))
	require.Equal(t, calls{"a": 1, "b": 1}, count)
	require.Equal(t, 3, sum)
	require.Equal(t, "a do done\nnight sleep done\nb do done\n", job.String())
}

func TestARetryOfTheJobDoesOnlyWhatHadFailed(t *testing.T) {
	job, count := steptest.New(), calls{}
	fn := func(ctx context.Context) error {
		got, err := count.do(ctx, "charge", 7)
		require.Equal(t, 7, got)
		if err != nil {
			return err
		}
		if count["save"] == 0 {
			return count.fails(ctx, "save", errFlaky)
		}
		_, err = count.do(ctx, "save", 1)
		return err
	}
	out := job.Run(t.Context(), fn)
	require.EqualError(t, out.Err, `step "save": error: connection refused`)
	job.Retry()
	require.NoError(t, job.Run(t.Context(), fn).Err)
	require.Equal(t, calls{"charge": 1, "save": 2}, count)
}

// Code that branches on a step's error takes the same way on every run, since it never sees another error.
func TestAFailureIsTheSameOnTheFirstRunAndOnReplay(t *testing.T) {
	job := steptest.New()
	var seen []string
	fn := func(ctx context.Context) error {
		_, err := step.Do(ctx, "pay", func(context.Context) (int, error) {
			return 0, &workitem.Failure{Code: "no-funds", Message: "the account is empty", Retryable: true}
		})
		failed, ok := errors.AsType[*step.Error](err)
		require.True(t, ok)
		require.Equal(t, workitem.StepDo, failed.Kind)
		require.Equal(t, workitem.Failf("no-funds", "the account is empty"), failed.Failure)
		f := workitem.FailureOf(err)
		require.True(t, f.Retryable)
		seen = append(seen, err.Error(), f.String())
		return step.Sleep(ctx, "a while", time.Hour)
	}
	require.NoError(t, job.Drive(t.Context(), fn).Err)
	want := []string{`step "pay": no-funds: the account is empty`, `no-funds: step "pay": the account is empty`}
	require.Equal(t, append(want, want...), seen)
}

func TestTheUsersOwnErrorIsNotKept(t *testing.T) {
	job := steptest.New()
	out := job.Run(t.Context(), func(ctx context.Context) error { return calls{}.fails(ctx, "x", errFlaky) })
	require.NotErrorIs(t, out.Err, errFlaky)
	require.ErrorContains(t, out.Err, "connection refused")
}

func TestAnAttemptThatFailedIsFollowedByAnotherAfterADurableWait(t *testing.T) {
	job, count := steptest.New(), calls{}
	policy := retry.Exponential(4, time.Second)
	fn := func(ctx context.Context) error {
		if count["flaky"] < 3 {
			return count.fails(ctx, "flaky", errFlaky, step.Retry(policy))
		}
		_, err := count.do(ctx, "flaky", 5, step.Retry(policy))
		return err
	}
	for i, wait := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second} {
		require.True(t, job.Run(t.Context(), fn).Suspended)
		s := job.Step("flaky")
		require.Equal(t, workitem.StepWaiting, s.State)
		require.Equal(t, i+1, s.Attempt)
		require.Equal(t, job.Now().Add(wait), s.Due)
		require.Equal(t, "error: connection refused", s.Failure.String())
		job.Advance(wait - 1)
		require.False(t, job.Ready())
		job.Advance(1)
		require.True(t, job.Ready())
	}
	require.NoError(t, job.Run(t.Context(), fn).Err)
	s := job.Step("flaky")
	require.Equal(t, workitem.StepDone, s.State)
	require.Equal(t, 4, s.Attempt)
	require.Nil(t, s.Failure)
	require.Equal(t, 4, count["flaky"])
	require.Equal(t, 1, s.Run, "no attempt of the job was used")
}

func TestARetryEndsWithTheLastFailure(t *testing.T) {
	job, count := steptest.New(), calls{}
	out := job.Drive(t.Context(), func(ctx context.Context) error {
		return count.fails(ctx, "save", workitem.Failf("locked", "row %d", count["save"]),
			step.Retry(retry.Constant(3, time.Minute)))
	})
	require.EqualError(t, out.Err, `step "save" failed after 3 attempts: locked: row 2`)
	require.Equal(t, 3, count["save"])
	require.Equal(t, 2*time.Minute, job.Step("save").Ended.Sub(job.Step("save").Created))
}

func TestErrorsHaveASayInTheirRetry(t *testing.T) {
	within8s := retry.Policy{Attempts: 9, Initial: time.Second, MaxElapsed: 8 * time.Second}
	for name, c := range map[string]struct {
		err   error
		p     retry.Policy
		calls int
		wait  time.Duration // after the first attempt
	}{
		"any":          {errFlaky, retry.Constant(3, time.Second), 3, time.Second},
		"permanent":    {retry.Permanent(errFlaky), retry.Constant(3, time.Second), 1, 0},
		"fatal":        {workitem.Fatal(errFlaky), retry.Constant(3, time.Second), 1, 0},
		"final":        {&workitem.Failure{Code: "no"}, retry.Constant(3, time.Second), 1, 0},
		"asked delay":  {retry.After(time.Minute, errFlaky), retry.Constant(2, time.Second), 2, time.Minute},
		"failure asks": {&workitem.Failure{Retryable: true, After: time.Hour}, retry.Constant(2, time.Second), 2, time.Hour},
		"filter no":    {errFlaky, retry.Policy{Attempts: 3, Filters: []retry.Filter{retry.On(context.Canceled)}}, 1, 0},
		"filter yes":   {errFlaky, retry.Policy{Attempts: 3, Filters: []retry.Filter{retry.On(errFlaky)}}, 3, 0},
		"max elapsed":  {errFlaky, within8s, 4, time.Second},
		"zero policy":  {errFlaky, retry.Policy{}, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			job, count := steptest.New(), calls{}
			fn := func(ctx context.Context) error { return count.fails(ctx, "x", c.err, step.Retry(c.p)) }
			if out := job.Run(t.Context(), fn); out.Suspended {
				require.Equal(t, c.wait, job.Step("x").Due.Sub(job.Now()))
				out = job.Drive(t.Context(), fn)
				require.Error(t, out.Err)
			}
			require.Equal(t, c.calls, count["x"])
			require.Equal(t, c.calls, job.Step("x").Attempt)
		})
	}
}

// A filter that panics does not hide the error that it was asked about.
func TestAFilterThatPanicsIsSaidWithTheFailure(t *testing.T) {
	job, count := steptest.New(), calls{}
	var log strings.Builder
	job.Info.Log = slog.New(slog.NewTextHandler(&log, nil))
	p := retry.Constant(3, time.Minute)
	p.Filters = []retry.Filter{func(retry.Failure) bool { panic("a bug") }}
	out := job.Run(t.Context(), func(ctx context.Context) error { return count.fails(ctx, "x", errFlaky, step.Retry(p)) })
	said := `connection refused; filter 1 of the retry policy panicked: a bug \(do_test\.go:\d+\)$`
	require.Regexp(t, said, out.Err.Error())
	require.Regexp(t, "^"+said, job.Step("x").Failure.Message)
	require.Equal(t, workitem.CodeError, job.Step("x").Failure.Code)
	require.Equal(t, calls{"x": 1}, count)
	require.Contains(t, log.String(), `level=ERROR msg="a filter of a retry policy panicked`)

	p.Filters = append(p.Filters, retry.On(errFlaky))
	job, count = steptest.New(), calls{}
	out = job.Drive(t.Context(), func(ctx context.Context) error {
		return count.fails(ctx, "x", workitem.Failf("busy", "%s", errFlaky), step.Retry(p))
	})
	require.Error(t, out.Err)
	require.Equal(t, "busy", job.Step("x").Failure.Code)
}

// What the policy's filters see is what they would see in package retry.
func TestAFilterSeesTheAttempt(t *testing.T) {
	job, count := steptest.New(), calls{}
	var seen []retry.Failure
	p := retry.Constant(3, time.Minute)
	p.Filters = []retry.Filter{func(f retry.Failure) bool { seen = append(seen, f); return true }}
	job.Drive(t.Context(), func(ctx context.Context) error {
		return count.fails(ctx, "x", errFlaky, step.Retry(p), step.Input("order 7"))
	})
	require.Equal(t, []retry.Failure{
		{Attempt: 1, Err: errFlaky, Name: "x", Input: "order 7"},
		{Attempt: 2, Elapsed: time.Minute, Err: errFlaky, Name: "x", Input: "order 7"},
		{Attempt: 3, Elapsed: 2 * time.Minute, Err: errFlaky, Name: "x", Input: "order 7"},
	}, seen)
}

func TestAZeroWaitTriesAgainInTheSameRun(t *testing.T) {
	job, count := steptest.New(), calls{}
	out := job.Run(t.Context(), func(ctx context.Context) error {
		return count.fails(ctx, "x", errFlaky, step.Retry(retry.Constant(3, 0)))
	})
	require.False(t, out.Suspended)
	require.Equal(t, 3, count["x"])
	require.Equal(t, 3, job.Writes(), "one for each attempt, the last one with the end")
}

func TestResultsAreRememberedAsJSON(t *testing.T) {
	type receipt struct {
		Number int       `json:"number"`
		When   time.Time `json:"when"`
		secret string
	}
	job := steptest.New()
	out := job.Run(t.Context(), func(ctx context.Context) error {
		got, err := step.Do(ctx, "receipt", func(context.Context) (receipt, error) { return receipt{7, job.Now(), "x"}, nil })
		require.Equal(t, receipt{7, job.Now(), ""}, got, "what the next run would see")
		return err
	})
	require.NoError(t, out.Err)
	require.JSONEq(t, `{"number":7,"when":"2030-01-01T00:00:00Z"}`, string(job.Step("receipt").Result))
}

// Zero values are values: they come back as what they are.
func TestEmptyResultsAreResults(t *testing.T) {
	job := steptest.New()
	fn := func(ctx context.Context) error {
		zero, err := step.Do(ctx, "zero", func(context.Context) (int, error) { return 0, nil })
		require.NoError(t, err)
		no, err := step.Do(ctx, "false", func(context.Context) (bool, error) { return false, nil })
		require.NoError(t, err)
		empty, err := step.Do(ctx, "empty", func(context.Context) (*string, error) { s := ""; return &s, nil })
		require.NoError(t, err)
		none, err := step.Do(ctx, "none", func(context.Context) (any, error) { return nil, nil })
		require.NoError(t, err)
		require.Zero(t, zero)
		require.False(t, no)
		require.Equal(t, "", *empty)
		require.Nil(t, none)
		return step.Sleep(ctx, "a while", time.Hour)
	}
	require.NoError(t, job.Drive(t.Context(), fn).Err)
}

func TestAResultThatIsTooLargeFailsItsStep(t *testing.T) {
	for name, c := range map[string]struct {
		size, limit int
		text        string
	}{
		"over the job's limit":  {1000, 999, "the result has 1002 bytes, and the limit is 999"},
		"at the job's limit":    {997, 999, ""},
		"10 MiB":                {10 << 20, 0, "10485762 bytes, and the limit is 1048576"},
		"a limit over the most": {2 << 20, 64 << 20, "2097154 bytes, and the limit is 1048576"},
	} {
		t.Run(name, func(t *testing.T) {
			job, count := steptest.New(), calls{}
			job.Info.MaxResult = c.limit
			out := job.Drive(t.Context(), func(ctx context.Context) error {
				_, err := step.Do(ctx, "page", func(context.Context) (string, error) {
					count["page"]++
					return strings.Repeat("x", c.size), nil
				}, step.Retry(retry.Constant(9, time.Second)))
				if c.text == "" {
					require.NoError(t, err)
					return nil
				}
				failed, ok := errors.AsType[*step.Error](err)
				require.True(t, ok)
				require.Equal(t, step.CodeTooLarge, failed.Failure.Code)
				require.ErrorContains(t, err, c.text)
				return nil // caught: the job continues
			})
			require.NoError(t, out.Err)
			require.Equal(t, 1, count["page"], "another call would be as large")
		})
	}
}

func TestAResultThatBreaksItsRulesFailsTheAttempt(t *testing.T) {
	type draft struct {
		Text string `json:"text" validate:"required"`
	}
	job, n := steptest.New(), 0
	out := job.Drive(t.Context(), func(ctx context.Context) error {
		got, err := step.Do(ctx, "draft", func(context.Context) (draft, error) {
			if n++; n < 3 {
				return draft{}, nil
			}
			return draft{"hello"}, nil
		}, step.Retry(retry.Constant(3, time.Second)))
		if err == nil {
			require.Equal(t, draft{"hello"}, got)
		}
		return err
	})
	require.NoError(t, out.Err)
	require.Equal(t, 3, n)

	out = steptest.New().Run(t.Context(), func(ctx context.Context) error {
		_, err := step.Do(ctx, "draft", func(context.Context) (draft, error) { return draft{}, nil })
		return err
	})
	f := workitem.FailureOf(out.Err)
	require.Equal(t, workitem.CodeInvalid, f.Code)
	require.JSONEq(t, `[{"path":"text","rule":"required"}]`, string(f.Details))
}

func TestAPanicIsAFailedAttempt(t *testing.T) {
	job, calls := steptest.New(), 0
	out := job.Drive(t.Context(), func(ctx context.Context) error {
		_, err := step.Do(ctx, "x", func(context.Context) (int, error) { calls++; panic("a bug") },
			step.Retry(retry.Constant(3, time.Second)))
		return err
	})
	require.Equal(t, 3, calls)
	f := workitem.FailureOf(out.Err)
	require.Equal(t, workitem.CodePanic, f.Code)
	require.Contains(t, string(f.Details), "TestAPanicIsAFailedAttempt", "the stack")
	require.Len(t, job.Steps(), 1)
	require.Equal(t, workitem.StepFailed, job.Steps()[0].State)
}

func TestOutsideAJobThereIsAnError(t *testing.T) {
	ctx := t.Context()
	_, err := step.Do(ctx, "x", func(context.Context) (int, error) { t.Error("called"); return 0, nil })
	require.ErrorIs(t, err, step.ErrNoJob)
	require.EqualError(t, err, `step "x": not in a job: use the context that the job's function was given; the function of a batch has no steps`)
	_, err = step.Tx(ctx, "x", func(context.Context, domain.DB) (int, error) { t.Error("called"); return 0, nil })
	require.ErrorIs(t, err, step.ErrNoJob)
	require.ErrorIs(t, step.Sleep(ctx, "x", 1), step.ErrNoJob)
	require.ErrorIs(t, step.SleepUntil(ctx, "x", time.Time{}), step.ErrNoJob)
	_, err = step.Await[int](ctx, "x")
	require.ErrorIs(t, err, step.ErrNoJob)
	_, err = step.Call[int](ctx, "x", "y", nil)
	require.ErrorIs(t, err, step.ErrNoJob)
	_, err = step.Token(ctx, "x", "y")
	require.ErrorIs(t, err, step.ErrNoJob)
	_, err = step.Now(ctx, "x")
	require.ErrorIs(t, err, step.ErrNoJob)
	_, err = step.Version(ctx, "x", 1)
	require.ErrorIs(t, err, step.ErrNoJob)
	b := step.Go(ctx, func(context.Context) (int, error) { t.Error("called"); return 0, nil })
	_, err = b.Wait(ctx)
	require.ErrorIs(t, err, step.ErrNoJob)
	require.ErrorIs(t, step.All(ctx, b), step.ErrNoJob)
	_, err = step.Any(ctx, "x", b)
	require.ErrorIs(t, err, step.ErrNoJob)
	_, err = step.Race(ctx, "x", b)
	require.ErrorIs(t, err, step.ErrNoJob)
	_, err = step.Map(ctx, []int{1}, 0, func(context.Context, int, int) (int, error) { t.Error("called"); return 0, nil })
	require.ErrorIs(t, err, step.ErrNoJob)
	require.Empty(t, step.Key(ctx, "x"))
	require.NotEqual(t, step.Rand(ctx, "x").Uint64(), step.Rand(ctx, "x").Uint64())
}

func TestAfterTheFunctionHasReturnedThereIsNoJob(t *testing.T) {
	var kept context.Context
	require.NoError(t, steptest.New().Run(t.Context(), func(ctx context.Context) error { kept = ctx; return nil }).Err)
	require.ErrorIs(t, calls{}.fails(kept, "x", nil), step.ErrNoJob)
	require.Error(t, kept.Err())
}

func policyOf(attempts int) retry.Policy { return retry.Constant(attempts, time.Second) }
