package retry_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/retry"
)

var errFlaky = errors.New("flaky")

// waits lists the waits that a policy gives after attempts 1, 2, ... until it gives up.
func waits(p retry.Policy) []time.Duration {
	var list []time.Duration
	for n := 1; ; n++ {
		wait, again := p.Next(retry.Failure{Attempt: n, Err: errFlaky})
		if !again {
			return list
		}
		list = append(list, wait)
	}
}

func seconds(n ...float64) []time.Duration {
	list := make([]time.Duration, len(n))
	for i, s := range n {
		list[i] = time.Duration(s * float64(time.Second))
	}
	return list
}

func TestWaitsWithoutJitter(t *testing.T) {
	capped := retry.Exponential(6, time.Second)
	capped.MaxWait = 5 * time.Second
	for _, c := range []struct {
		name   string
		policy retry.Policy
		want   []time.Duration
	}{
		{"the first wait is the initial one", retry.Exponential(6, time.Second), seconds(1, 2, 4, 8, 16)},
		{"linear", retry.Linear(6, time.Second), seconds(1, 2, 3, 4, 5)},
		{"fibonacci", retry.Fibonacci(6, time.Second), seconds(1, 1, 2, 3, 5)},
		{"constant", retry.Constant(4, time.Second), seconds(1, 1, 1)},
		{"table", retry.Table(seconds(15, 60, 5)...), seconds(15, 60, 5)},
		{"a table with attempts to spare repeats its last entry",
			retry.Policy{Attempts: 5, Backoff: retry.BackoffTable, Waits: seconds(1, 7)}, seconds(1, 7, 7, 7)},
		{"cap", capped, seconds(1, 2, 4, 5, 5)},
		{"another base", retry.Policy{Attempts: 5, Initial: time.Second / 4, Base: 3}, seconds(.25, .75, 2.25, 6.75)},
		{"base 1 is constant", retry.Policy{Attempts: 4, Initial: time.Second, Base: 1}, seconds(1, 1, 1)},
		{"a bare literal doubles", retry.Policy{Attempts: 4, Initial: time.Second}, seconds(1, 2, 4)},
		{"no initial wait: at once", retry.Policy{Attempts: 3}, seconds(0, 0)},
		{"the zero policy makes one attempt", retry.Policy{}, nil},
		{"one attempt is no retry", retry.Exponential(1, time.Second), nil},
		{"an empty table is no retry", retry.Table(), nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.NoError(t, c.policy.Validate())
			require.Equal(t, c.want, waits(c.policy))
		})
	}
}

func TestWaitIsExactAndSaturates(t *testing.T) {
	century := 100 * 365 * 24 * time.Hour
	odd := century + 1 // has no exact float64
	require.Equal(t, odd, retry.Exponential(9, odd).Wait(1))
	require.Equal(t, 2*century, retry.Linear(9, century).Wait(2))
	for _, p := range []retry.Policy{
		retry.Exponential(9, time.Second), retry.Linear(9, time.Hour), retry.Fibonacci(9, time.Second),
	} {
		require.Equal(t, time.Duration(math.MaxInt64), p.Wait(math.MaxInt), p.String())
		require.Equal(t, p.Wait(1), p.Wait(-3), p.String())
		p.MaxWait = time.Minute
		require.Equal(t, time.Minute, p.Wait(math.MaxInt), p.String())
	}
	require.Equal(t, time.Duration(7540113804746346429), retry.Fibonacci(99, 1).Wait(92), "the last one that fits")
}

func TestJitterStaysInItsRange(t *testing.T) {
	const w, draws = 10 * time.Second, 10_000
	for _, c := range []struct {
		jitter         retry.Jitter
		spread         float64
		low, high, avg time.Duration
	}{
		{retry.JitterNone, 0, w, w, w},
		{retry.JitterFull, 0, 0, w, w / 2},
		{retry.JitterEqual, 0, w / 2, w, w * 3 / 4},
		{retry.JitterProportional, 0.3, w * 7 / 10, w * 13 / 10, w},
	} {
		t.Run(c.jitter.String(), func(t *testing.T) {
			p := retry.Constant(2, w)
			p.Jitter, p.Spread = c.jitter, c.spread
			require.NoError(t, p.Validate())
			var sum, least, most time.Duration = 0, math.MaxInt64, 0
			for range draws {
				d := waits(p)[0]
				sum, least, most = sum+d, min(least, d), max(most, d)
			}
			require.GreaterOrEqual(t, least, c.low)
			require.LessOrEqual(t, most, c.high)
			require.InDelta(t, float64(c.avg), float64(sum/draws), float64(w)/40)
			if c.low < c.high {
				require.Less(t, float64(least-c.low), 0.05*float64(w), "reaches down")
				require.Less(t, float64(c.high-most), 0.05*float64(w), "reaches up")
			}
		})
	}
}

func TestJitterUsesTheGivenSource(t *testing.T) {
	p := retry.Constant(2, 8*time.Second)
	for _, c := range []struct {
		jitter retry.Jitter
		draw   float64
		want   time.Duration
	}{
		{retry.JitterFull, 0, 0},
		{retry.JitterFull, 0.25, 2 * time.Second},
		{retry.JitterEqual, 0.5, 6 * time.Second},
		{retry.JitterProportional, 0, 4 * time.Second},
		{retry.JitterProportional, 0.75, 10 * time.Second},
		{retry.JitterFull, -5, 0},
		{retry.JitterFull, 7, 8 * time.Second},
		{retry.JitterFull, math.NaN(), 0},
	} {
		p.Jitter, p.Spread, p.Rand = c.jitter, 0.5, func() float64 { return c.draw }
		require.Equal(t, []time.Duration{c.want}, waits(p), "%v of %v", c.jitter, c.draw)
	}
}

func TestTheCapHoldsForJitterToo(t *testing.T) {
	p := retry.Constant(2, time.Hour)
	p.MaxWait, p.Jitter, p.Spread = time.Minute, retry.JitterProportional, 0.5
	p.Rand = func() float64 { return 0.99 }
	require.Equal(t, seconds(60), waits(p))
}

func TestMaxElapsedStopsBeforeAWaitThatWouldCrossIt(t *testing.T) {
	p := retry.Exponential(100, time.Second)
	p.MaxElapsed = 10 * time.Second
	for _, c := range []struct {
		attempt int
		elapsed time.Duration
		again   bool
	}{
		{3, 6 * time.Second, true}, // 6s + 4s is just in time
		{3, 6*time.Second + 1, false},
		{9, 0, false},
		{1, time.Hour, false},
		{1, -time.Hour, true}, // a clock that was set back
		{1, math.MaxInt64, false},
	} {
		_, again := p.Next(retry.Failure{Attempt: c.attempt, Elapsed: c.elapsed, Err: errFlaky})
		require.Equal(t, c.again, again, "%+v", c)
	}
}

type serverError struct{ delay time.Duration }

func (e serverError) Error() string             { return "busy" }
func (e serverError) RetryAfter() time.Duration { return e.delay }

type wrongPassword struct{ final bool }

func (e wrongPassword) Error() string   { return "wrong password" }
func (e wrongPassword) Permanent() bool { return e.final }

func TestAServersDelayReplacesTheComputedWait(t *testing.T) {
	p := retry.Exponential(5, time.Second)
	p.MaxWait, p.MaxElapsed, p.Jitter = 10*time.Second, 2*time.Minute, retry.JitterFull
	p.Rand = func() float64 { return 0.5 }
	for _, c := range []struct {
		name  string
		err   error
		want  time.Duration
		again bool
	}{
		{"beyond MaxWait, and without jitter", retry.After(90*time.Second, errFlaky), 90 * time.Second, true},
		{"shorter than the backoff", retry.After(1, errFlaky), 1, true},
		{"deep inside", fmt.Errorf("call: %w", retry.After(time.Minute, errFlaky)), time.Minute, true},
		{"beyond MaxElapsed", retry.After(3*time.Minute, errFlaky), 0, false},
		{"nothing said", retry.After(0, errFlaky), 500 * time.Millisecond, true},
		{"in the past", retry.After(-time.Hour, errFlaky), 500 * time.Millisecond, true},
		{"an error type of its own", serverError{time.Minute}, time.Minute, true},
		{"the outermost counts", retry.After(time.Second, serverError{time.Minute}), time.Second, true},
		{"permanent all the same", retry.After(1, retry.Permanent(errFlaky)), 0, false},
	} {
		wait, again := p.Next(retry.Failure{Attempt: 1, Err: c.err})
		require.Equal(t, c.again, again, c.name)
		require.Equal(t, c.want, wait, c.name)
	}
}

func TestMarksKeepTheErrorInside(t *testing.T) {
	for _, err := range []error{retry.Permanent(errFlaky), retry.After(time.Second, errFlaky)} {
		require.ErrorIs(t, err, errFlaky)
		require.EqualError(t, err, "flaky")
	}
	require.NoError(t, retry.Permanent(nil))
	require.NoError(t, retry.After(time.Second, nil))

	require.True(t, retry.IsPermanent(fmt.Errorf("login: %w", retry.Permanent(errFlaky))))
	require.True(t, retry.IsPermanent(errors.Join(errFlaky, retry.Permanent(errFlaky))))
	require.True(t, retry.IsPermanent(wrongPassword{true}))
	require.False(t, retry.IsPermanent(wrongPassword{false}))
	require.False(t, retry.IsPermanent(errFlaky))
	require.False(t, retry.IsPermanent(nil))

	_, told := retry.Delay(nil)
	require.False(t, told)
}

func TestFilters(t *testing.T) {
	late := func(f retry.Failure) bool {
		return f.Attempt > 2 && f.Elapsed >= time.Minute && f.Name == "fetch" && f.Input == "id-7"
	}
	panics := func(retry.Failure) bool { panic("a bug in the filter") }
	flaky, path := retry.On(errFlaky), retry.OnType[*fs.PathError]()
	for _, c := range []struct {
		name    string
		filters []retry.Filter
		failure retry.Failure
		again   bool
	}{
		{"none accepts all", nil, retry.Failure{Attempt: 1, Err: errFlaky}, true},
		{"by value", []retry.Filter{retry.On(fs.ErrClosed, errFlaky)}, retry.Failure{Err: errFlaky}, true},
		{"by value, wrapped", []retry.Filter{flaky}, retry.Failure{Err: fmt.Errorf("x: %w", errFlaky)}, true},
		{"by value, another", []retry.Filter{flaky}, retry.Failure{Err: fs.ErrExist}, false},
		{"by type", []retry.Filter{path}, retry.Failure{Err: &fs.PathError{Err: errFlaky}}, true},
		{"by type, another", []retry.Filter{path}, retry.Failure{Err: errFlaky}, false},
		{"any of several", []retry.Filter{path, flaky}, retry.Failure{Err: errFlaky}, true},
		{"a permanent error isn't even shown", []retry.Filter{flaky},
			retry.Failure{Err: retry.Permanent(errFlaky)}, false},
		{"whole context", []retry.Filter{late},
			retry.Failure{Attempt: 3, Elapsed: time.Minute, Err: errFlaky, Name: "fetch", Input: "id-7"}, true},
		{"whole context, too early", []retry.Filter{late},
			retry.Failure{Attempt: 1, Elapsed: time.Minute, Err: errFlaky, Name: "fetch", Input: "id-7"}, false},
		{"one that panics accepts nothing", []retry.Filter{panics}, retry.Failure{Err: errFlaky}, false},
		{"and doesn't stop the next", []retry.Filter{panics, flaky}, retry.Failure{Err: errFlaky}, true},
	} {
		p := retry.Exponential(5, time.Second)
		p.Filters = c.filters
		_, again := p.Next(c.failure)
		require.Equal(t, c.again, again, c.name)
	}
}

func TestAFilterThatPanicsIsNamed(t *testing.T) {
	flaky, panics := retry.On(errFlaky), func(retry.Failure) bool { panic("a bug in the filter") }
	p := retry.Exponential(5, time.Second)
	p.Filters = []retry.Filter{retry.On(fs.ErrClosed), panics, flaky}
	accepted, broken := p.Judge(retry.Failure{Err: errFlaky})
	require.True(t, accepted)
	require.Equal(t, 2, broken.Number)
	require.Regexp(t, `^filter 2 of the retry policy panicked: a bug in the filter \(policy_test\.go:\d+\)$`, broken.Error())
	require.Contains(t, string(broken.Panic.Stack), "policy_test.go")

	accepted, broken = p.Judge(retry.Failure{Err: retry.Permanent(errFlaky)})
	require.False(t, accepted)
	require.Nil(t, broken, "it is not asked")
	require.Equal(t, errFlaky, broken.Beside(errFlaky))

	var log strings.Builder
	p.Filters = p.Filters[:2]
	call := retry.Call[int]{Policy: p, Log: slog.New(slog.NewTextHandler(&log, nil))}
	_, err := call.Do(t.Context(), func(context.Context, int) (int, error) { return 0, errFlaky })
	require.ErrorIs(t, err, errFlaky)
	require.Regexp(t, `; filter 2 of the retry policy panicked: a bug in the filter \(policy_test\.go:\d+\)$`, err.Error())
	broken, ok := errors.AsType[*retry.FilterError](err)
	require.True(t, ok)
	require.Equal(t, 2, broken.Number)
	_, ok = errors.AsType[*retry.PanicError](err)
	require.False(t, ok, "it is not the error of the attempt")
	require.Contains(t, log.String(), `level=ERROR msg="a filter of a retry policy panicked`)
}

func TestARandThatPanicsIsReplaced(t *testing.T) {
	p := retry.Policy{Attempts: 3, Initial: time.Second, Jitter: retry.JitterFull, Rand: func() float64 { panic("a bug") }}
	wait, again := p.Next(retry.Failure{Attempt: 1, Err: errFlaky})
	require.True(t, again)
	require.LessOrEqual(t, wait, time.Second)
}

func TestValidateNamesEveryFault(t *testing.T) {
	for want, p := range map[string]retry.Policy{
		"Attempts is -1":      {Attempts: -1},
		"Backoff is backoff(": {Backoff: 9},
		"Initial is -1s":      {Initial: -time.Second},
		"Base is NaN":         {Base: math.NaN()},
		"Base is +Inf":        {Base: math.Inf(1)},
		"Base is 0.5":         {Base: 0.5},
		"Base is -2":          {Base: -2},
		"MaxWait is -1ns":     {MaxWait: -1},
		"MaxElapsed is -1ns":  {MaxElapsed: -1},
		"Jitter is jitter(":   {Jitter: 9},
		"Spread is 0:":        {Jitter: retry.JitterProportional},
		"Spread is 1.5":       {Jitter: retry.JitterProportional, Spread: 1.5},
		"Spread is NaN":       {Jitter: retry.JitterProportional, Spread: math.NaN()},
		"Spread is 0.3, ":     {Jitter: retry.JitterFull, Spread: 0.3},
		"Waits is empty":      {Attempts: 2, Backoff: retry.BackoffTable},
		"Waits is set":        {Waits: seconds(1)},
		"Waits[1] is -1s":     {Backoff: retry.BackoffTable, Waits: seconds(1, -1)},
		"Filters[0] is nil":   {Filters: []retry.Filter{nil}},
	} {
		err := p.Validate()
		require.ErrorIs(t, err, retry.ErrInvalid, want)
		require.ErrorContains(t, err, want)
	}
	both := retry.Policy{Attempts: -1, MaxWait: -1}.Validate()
	require.ErrorContains(t, both, "Attempts")
	require.ErrorContains(t, both, "MaxWait")
}

func TestPolicyString(t *testing.T) {
	p := retry.Exponential(5, time.Second)
	p.MaxWait, p.MaxElapsed, p.Jitter, p.Spread = time.Minute, time.Hour, retry.JitterProportional, 0.3
	p.Filters = []retry.Filter{retry.On(errFlaky)}
	for want, p := range map[string]retry.Policy{
		"1 attempt":                     {},
		"3 attempts, linear 2s":         retry.Linear(3, 2*time.Second),
		"3 attempts, table [1s 2s]":     retry.Table(seconds(1, 2)...),
		"2 attempts, exponential 1s x2": {Attempts: 2, Initial: time.Second},
		"5 attempts, exponential 1s x2, at most 1m0s, within 1h0m0s, proportional jitter 0.3, filters: 1": p,
	} {
		require.Equal(t, want, p.String())
	}
}

// FuzzNext holds for any policy, valid or not: a wait is between 0 and the cap, the budget is kept, and nothing panics.
func FuzzNext(f *testing.F) {
	f.Add(5, uint8(0), int64(time.Second), 2.0, int64(0), int64(0), uint8(0), 0.0, 0.5, 3, int64(0))
	f.Add(math.MaxInt, uint8(0), int64(math.MaxInt64), 1e300, int64(0), int64(1), uint8(3), 1.0, 1.0, 99, int64(-1))
	f.Add(9, uint8(3), int64(math.MinInt64), math.NaN(), int64(-1), int64(-1), uint8(2), -1.0, math.NaN(), 94, int64(9))
	f.Add(9, uint8(4), int64(math.MinInt64), 0.1, int64(7), int64(0), uint8(1), 0.0, -1.0, math.MinInt, int64(9))
	f.Fuzz(func(t *testing.T, attempts int, backoff uint8, initial int64, base float64, maxWait, maxElapsed int64,
		jitter uint8, spread, draw float64, attempt int, elapsed int64) {
		p := retry.Policy{
			Attempts: attempts, Backoff: retry.Backoff(backoff), Initial: time.Duration(initial), Base: base,
			MaxWait: time.Duration(maxWait), MaxElapsed: time.Duration(maxElapsed),
			Jitter: retry.Jitter(jitter), Spread: spread, Rand: func() float64 { return draw },
		}
		if p.Backoff == retry.BackoffTable {
			p.Waits = []time.Duration{time.Duration(initial)}
		}
		failure := retry.Failure{Attempt: attempt, Elapsed: time.Duration(elapsed), Err: errFlaky}
		wait, again := p.Next(failure)
		for _, d := range []time.Duration{wait, p.Wait(attempt)} {
			require.GreaterOrEqual(t, d, time.Duration(0))
			if maxWait > 0 {
				require.LessOrEqual(t, d, p.MaxWait)
			}
		}
		if again {
			require.Less(t, attempt, attempts)
			if maxElapsed > 0 {
				require.LessOrEqual(t, wait, p.MaxElapsed-max(failure.Elapsed, 0))
			}
		} else {
			require.Zero(t, wait)
		}
		if p.Wait(attempt) > 0 && attempt < math.MaxInt && p.Validate() == nil {
			require.GreaterOrEqual(t, p.Wait(attempt+1), p.Wait(attempt), "waits never shrink")
		}
		_ = p.String()
	})
}
