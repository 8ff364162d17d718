package retry_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/retry"
)

// stepClock is a clock that jumps to the end of every wait at once, and remembers the waits.
type stepClock struct {
	mu    sync.Mutex
	now   time.Time
	waits []time.Duration
}

func (c *stepClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *stepClock) AfterFunc(d time.Duration, f func()) func() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now, c.waits = c.now.Add(d), append(c.waits, d)
	go f()
	return func() bool { return false }
}

// failing returns work that fails with "attempt 1", "attempt 2", ... until it has failed so many times, and counts the
// calls.
func failing(times int, calls *int) func(context.Context, int) (string, error) {
	return func(_ context.Context, attempt int) (string, error) {
		*calls++
		if *calls <= times {
			return "", numbered(attempt)
		}
		return "done", nil
	}
}

type numbered int

func (n numbered) Error() string { return "attempt " + strconv.Itoa(int(n)) }

func TestDoSucceedsOnTheThirdAttempt(t *testing.T) {
	calls, clock := 0, &stepClock{}
	call := retry.Call[string]{Policy: retry.Exponential(6, time.Second), Clock: clock}
	got, err := call.Do(t.Context(), failing(2, &calls))
	require.NoError(t, err)
	require.Equal(t, "done", got)
	require.Equal(t, 3, calls)
	require.Equal(t, seconds(1, 2), clock.waits)
}

func TestDoReturnsTheLastErrorWhenAttemptsAreUsedUp(t *testing.T) {
	calls, clock := 0, &stepClock{}
	call := retry.Call[string]{Policy: retry.Linear(3, time.Second), Name: "fetch", Clock: clock}
	_, err := call.Do(t.Context(), failing(99, &calls))
	require.Equal(t, 3, calls)
	require.ErrorIs(t, err, numbered(3))
	var exhausted *retry.ExhaustedError
	require.ErrorAs(t, err, &exhausted)
	want := retry.ExhaustedError{Name: "fetch", Attempts: 3, Elapsed: 3 * time.Second, Err: numbered(3)}
	require.Equal(t, want, *exhausted)
	require.EqualError(t, err, "fetch: gave up after 3 attempts in 3s: attempt 3")
}

func TestDoLeavesTheErrorAsItIsWhereNothingIsRetried(t *testing.T) {
	filtered := retry.Exponential(5, time.Hour)
	filtered.Filters = []retry.Filter{retry.On(errFlaky)}
	permanent := retry.Permanent(errFlaky)
	for _, c := range []struct {
		name   string
		policy retry.Policy
		err    error
	}{
		{"the default policy", retry.Policy{}, errFlaky},
		{"a filter that doesn't accept", filtered, numbered(7)},
		{"a permanent error", retry.Exponential(5, time.Hour), permanent},
	} {
		t.Run(c.name, func(t *testing.T) {
			calls := 0
			_, err := retry.Do(t.Context(), c.policy, func(context.Context, int) (int, error) {
				calls++
				return 0, c.err
			})
			require.True(t, err == c.err, "unchanged: got %v", err)
			require.Equal(t, 1, calls)
		})
	}
}

func TestChecksAskForBetterValues(t *testing.T) {
	count := func(_ context.Context, attempt int) (int, error) { return attempt, nil }
	atLeast := func(least int) retry.Check[int] {
		return retry.Valid(func(n int) error {
			if n < least {
				return fmt.Errorf("%d is below %d", n, least)
			}
			return nil
		})
	}
	got, err := retry.Do(t.Context(), retry.Constant(9, 0), count, atLeast(3))
	require.NoError(t, err)
	require.Equal(t, 3, got)

	got, err = retry.Do(t.Context(), retry.Constant(9, 0), count, atLeast(2), atLeast(5))
	require.NoError(t, err)
	require.Equal(t, 5, got, "both must hold")

	got, err = retry.Call[int]{Name: "count", Policy: retry.Constant(3, 0), Checks: []retry.Check[int]{atLeast(9)}}.
		Do(t.Context(), count)
	require.Zero(t, got)
	var invalid *retry.ValidationError[int]
	require.ErrorAs(t, err, &invalid)
	require.Equal(t, 3, invalid.Attempts)
	require.Equal(t, []int{1, 2, 3}, invalid.Results)
	require.Len(t, invalid.Reasons, 3)
	require.Equal(t, "count", invalid.Name)
	require.EqualError(t, err, "count: no valid result in 3 attempts: 3 is below 9")

	_, err = retry.Do(t.Context(), retry.Policy{}, count, atLeast(9))
	require.EqualError(t, err, "no valid result in 1 attempt: 1 is below 9")
}

func TestAValidationErrorWithoutReasonsCanBeShown(t *testing.T) {
	require.EqualError(t, &retry.ValidationError[int]{Attempts: 2}, "no valid result in 2 attempts")
}

func TestACheckSeesTheWholeContext(t *testing.T) {
	clock := &stepClock{}
	var seen []retry.Outcome[int]
	call := retry.Call[int]{Policy: retry.Constant(2, time.Second), Name: "draft", Input: "prompt", Clock: clock}
	call.Checks = []retry.Check[int]{func(o retry.Outcome[int]) error {
		seen = append(seen, o)
		if o.Attempt == 1 {
			return errFlaky // strict at first
		}
		return nil
	}}
	_, err := call.Do(t.Context(), func(_ context.Context, n int) (int, error) { return 10 * n, nil })
	require.NoError(t, err)
	require.Equal(t, []retry.Outcome[int]{
		{Value: 10, Attempt: 1, Elapsed: 0, Name: "draft", Input: "prompt"},
		{Value: 20, Attempt: 2, Elapsed: time.Second, Name: "draft", Input: "prompt"},
	}, seen)
}

func TestACheckThatPanicsRefuses(t *testing.T) {
	_, err := retry.Do(t.Context(), retry.Constant(2, 0), func(context.Context, int) ([]int, error) { return nil, nil },
		retry.Valid(func(list []int) error { return fmt.Errorf("starts with %d", list[0]) }))
	require.ErrorContains(t, err, "no valid result in 2 attempts: check 1 panicked: runtime error: index out of range")
}

func TestErrorsAndBadValuesShareOneCount(t *testing.T) {
	script := func(steps ...any) func(context.Context, int) (int, error) {
		return func(_ context.Context, attempt int) (int, error) {
			switch step := steps[attempt-1].(type) {
			case error:
				return 0, step
			case int:
				return step, nil
			}
			return 0, nil
		}
	}
	positive := retry.Valid(func(n int) error {
		if n <= 0 {
			return errors.New("not positive")
		}
		return nil
	})
	p := retry.Constant(4, 0)

	got, err := retry.Do(t.Context(), p, script(errFlaky, errFlaky, -1, 5), positive)
	require.NoError(t, err)
	require.Equal(t, 5, got)

	_, err = retry.Do(t.Context(), p, script(-1, -2, -3, errFlaky), positive)
	require.ErrorIs(t, err, errFlaky, "the last attempt's error wins")
	var invalid *retry.ValidationError[int]
	require.False(t, errors.As(err, &invalid))

	_, err = retry.Do(t.Context(), p, script(errFlaky, -2, errFlaky, -4), positive)
	require.ErrorAs(t, err, &invalid)
	require.Equal(t, 4, invalid.Attempts)
	require.Equal(t, []int{-2, -4}, invalid.Results)

	p.Filters = []retry.Filter{func(retry.Failure) bool { return false }}
	got, err = retry.Do(t.Context(), p, script(-1, 5), positive)
	require.NoError(t, err, "filters judge errors, not values")
	require.Equal(t, 5, got)
}

func TestAReasonMayBeMarked(t *testing.T) {
	calls, clock := 0, &stepClock{}
	fn := func(context.Context, int) (int, error) { calls++; return calls, nil }
	call := retry.Call[int]{Policy: retry.Constant(9, time.Second), Clock: clock}
	call.Checks = []retry.Check[int]{retry.Valid(func(n int) error {
		if n == 1 {
			return retry.After(time.Minute, errFlaky)
		}
		return retry.Permanent(errFlaky)
	})}
	_, err := call.Do(t.Context(), fn)
	var invalid *retry.ValidationError[int]
	require.ErrorAs(t, err, &invalid)
	require.Equal(t, []int{1, 2}, invalid.Results)
	require.Equal(t, seconds(60), clock.waits)
}

func TestAFilterSeesTheWholeContext(t *testing.T) {
	clock := &stepClock{}
	var seen []retry.Failure
	call := retry.Call[int]{Policy: retry.Constant(3, time.Second), Name: "fetch", Input: 42, Clock: clock}
	call.Policy.Filters = []retry.Filter{func(f retry.Failure) bool {
		seen = append(seen, f)
		return true
	}}
	_, err := call.Do(t.Context(), func(_ context.Context, n int) (int, error) {
		clock.now = clock.now.Add(100 * time.Millisecond) // an attempt takes its time too
		return 0, numbered(n)
	})
	require.ErrorIs(t, err, numbered(3))
	require.Equal(t, []retry.Failure{
		{Attempt: 1, Elapsed: 100 * time.Millisecond, Err: numbered(1), Name: "fetch", Input: 42},
		{Attempt: 2, Elapsed: 1200 * time.Millisecond, Err: numbered(2), Name: "fetch", Input: 42},
		{Attempt: 3, Elapsed: 2300 * time.Millisecond, Err: numbered(3), Name: "fetch", Input: 42},
	}, seen)
}

func TestNestedPoliciesKeepTheirOwnCounts(t *testing.T) {
	for _, c := range []struct {
		err          error
		outer, inner int
	}{
		{errFlaky, 2, 6},
		{retry.Permanent(errFlaky), 1, 1},
	} {
		outer, inner := 0, 0
		_, err := retry.Do(t.Context(), retry.Constant(2, 0), func(ctx context.Context, _ int) (int, error) {
			outer++
			return retry.Do(ctx, retry.Constant(3, 0), func(context.Context, int) (int, error) {
				inner++
				return 0, c.err
			})
		})
		require.ErrorIs(t, err, errFlaky)
		require.Equal(t, []int{c.outer, c.inner}, []int{outer, inner}, "%v", c.err)
	}
}

func TestAnEndedContextEndsTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		why := errors.New("shutting down")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(5*time.Millisecond, func() { cancel(why) })
		start, calls := time.Now(), 0
		call := retry.Call[string]{Name: "fetch", Policy: retry.Constant(9, time.Hour)}
		_, err := call.Do(ctx, failing(99, &calls))
		require.Equal(t, 5*time.Millisecond, time.Since(start))
		require.Equal(t, 1, calls)
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, err, why)
		require.ErrorIs(t, err, numbered(1))
		require.EqualError(t, err,
			"fetch: stopped after 1 attempt: context canceled: shutting down (last failure: attempt 1)")
	})
}

func TestAnEndedContextPreventsTheFirstAttempt(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	calls := 0
	_, err := retry.Do(ctx, retry.Constant(9, 0), failing(0, &calls))
	require.ErrorIs(t, err, context.Canceled)
	require.EqualError(t, err, "stopped before the first attempt: context canceled")
	require.Zero(t, calls)
}

func TestADeadlineOfOneAttemptIsWorthAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got, err := retry.Do(t.Context(), retry.Constant(2, 0), func(ctx context.Context, attempt int) (int, error) {
			ctx, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			if attempt == 1 {
				<-ctx.Done()
			}
			return attempt, ctx.Err()
		})
		require.NoError(t, err)
		require.Equal(t, 2, got)
	})
}

func TestMaxElapsedEndsTheCallEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := retry.Exponential(99, time.Second)
		p.MaxElapsed = 10 * time.Second
		start, calls := time.Now(), 0
		_, err := retry.Do(t.Context(), p, failing(99, &calls))
		require.Equal(t, 7*time.Second, time.Since(start), "1+2+4; a wait of 8 would end after 15")
		require.Equal(t, 4, calls)
		require.EqualError(t, err, "gave up after 4 attempts in 7s: attempt 4")
	})
}

func TestAnInvalidPolicyCallsNothing(t *testing.T) {
	calls := 0
	_, err := retry.Call[string]{Name: "fetch", Policy: retry.Constant(2, -1)}.Do(t.Context(), failing(0, &calls))
	require.ErrorIs(t, err, retry.ErrInvalid)
	require.EqualError(t, err, "fetch: invalid retry policy: Initial is -1ns: a wait can't be negative")
	require.Zero(t, calls)
}

func TestANilFunctionOrCheckIsRefusedBeforeAnyWait(t *testing.T) {
	calls, p := 0, retry.Constant(2, time.Hour)
	_, err := retry.Call[string]{Name: "fetch", Policy: p}.Do(t.Context(), nil)
	require.ErrorIs(t, err, retry.ErrInvalid)
	require.EqualError(t, err, "fetch: invalid retry policy: there is no function to call: it is nil")

	fine := func(retry.Outcome[string]) error { return nil }
	for _, none := range []retry.Check[string]{nil, retry.Valid[string](nil)} {
		_, err = retry.Do(t.Context(), p, failing(0, &calls), fine, none)
		require.ErrorIs(t, err, retry.ErrInvalid)
		require.EqualError(t, err, "invalid retry policy: check 2 is nil: leave it out")
	}
	require.Zero(t, calls)
}

func TestAPanicIsAFailedAttempt(t *testing.T) {
	calls, cause := 0, errors.New("a bug")
	p := retry.Constant(3, 0)
	p.Filters = []retry.Filter{retry.OnType[*retry.PanicError]()}
	_, err := retry.Do(t.Context(), p, func(context.Context, int) (int, error) { calls++; panic(cause) })
	require.Equal(t, 3, calls)
	require.ErrorIs(t, err, cause, "what it panicked with")
	panicked, ok := errors.AsType[*retry.PanicError](err)
	require.True(t, ok)
	require.EqualError(t, panicked, "panic: a bug")
	require.Contains(t, string(panicked.Stack), "TestAPanicIsAFailedAttempt")
}

func TestSystemClockStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start, fired := retry.SystemClock.Now(), make(chan time.Time, 2)
		tell := func() { fired <- retry.SystemClock.Now() }
		stopped := retry.SystemClock.AfterFunc(time.Second, tell)
		late := retry.SystemClock.AfterFunc(2*time.Second, tell)
		require.True(t, stopped())
		require.False(t, stopped())
		require.Equal(t, 2*time.Second, (<-fired).Sub(start))
		require.False(t, late())
		require.Empty(t, fired)
	})
}

func TestANilContextPanicsWithItsFunction(t *testing.T) {
	var none context.Context
	require.PanicsWithValue(t, "tasq: retry.Do is given a nil context: pass that of the caller, or context.Background()", func() {
		_, _ = retry.Do(none, retry.Policy{}, func(context.Context, int) (int, error) { return 1, nil })
	})
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		retry.Sleep(t.Context(), nil, time.Minute)
		require.Equal(t, time.Minute, time.Since(begin), "a nil clock is that of the machine")
	})
}
