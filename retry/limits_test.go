package retry_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/retry"
)

// What lies on a bound is valid, and words are those of the values that there are.
func TestTheBoundsOfAPolicyAreValid(t *testing.T) {
	for _, p := range []retry.Policy{
		{Attempts: 2, Base: math.MaxFloat64}, {Attempts: 2, Base: 1}, {Attempts: 2, Jitter: retry.JitterProportional, Spread: 1},
		retry.Table(0, 0), {Attempts: 1}, {},
	} {
		require.NoError(t, p.Validate(), "%+v", p)
	}
	require.Equal(t, "1 attempt", retry.Policy{Attempts: 1}.String())
	require.True(t, strings.HasPrefix(retry.Constant(2, 0).String(), "2 attempts, constant"))
	require.Equal(t, "backoff(5)", retry.Backoff(5).String())
	require.Equal(t, "jitter(4)", retry.Jitter(4).String())
}

func TestWaitsOnTheBoundOfWhatThereIs(t *testing.T) {
	longest := time.Duration(math.MaxInt64)
	require.Equal(t, longest, retry.Exponential(100, 1).Wait(64), "2^63 ns are one too many")
	require.Equal(t, time.Duration(1)<<62, retry.Exponential(100, 1).Wait(63))
	require.Zero(t, retry.Exponential(5000, 0).Wait(5000))
	require.Equal(t, longest, retry.Fibonacci(100, 1).Wait(93))
	require.Equal(t, time.Duration(7540113804746346429), retry.Fibonacci(100, 1).Wait(92))
}

// noTimer is a clock that must not be asked for a timer.
type noTimer struct {
	retry.Clock
	t *testing.T
}

func (c noTimer) AfterFunc(d time.Duration, _ func()) func() bool {
	require.Fail(c.t, "a timer was started", "of %v", d)
	return func() bool { return true }
}

// A failed attempt that another follows is logged with its wait, and the last one without.
func TestTheLogOfAttempts(t *testing.T) {
	var b bytes.Buffer
	log := slog.New(slog.NewTextHandler(&b, &slog.HandlerOptions{Level: slog.LevelDebug}))
	_, err := retry.Call[int]{Policy: retry.Constant(2, 0), Log: log, Name: "ask", Clock: noTimer{retry.SystemClock, t}}.Do(t.Context(),
		func(context.Context, int) (int, error) { return 0, errors.New("busy") })
	require.Error(t, err)
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	require.Len(t, lines, 2)
	require.Contains(t, lines[0], "function=ask attempt=1 wait=0s error=busy")
	require.Contains(t, lines[1], "function=ask attempt=2 error=busy")
}
