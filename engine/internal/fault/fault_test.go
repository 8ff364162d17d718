package fault_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/engine/internal/fault"
	"github.com/tasq-dev/tasq/store"
)

var (
	errFull   = fault.As(errors.New("the disk is full"))
	errClosed = errors.New("closed")
)

// What answers a question is no fault; everything else that a store returns is.
func TestAs(t *testing.T) {
	require.NoError(t, fault.As(nil))
	for _, err := range []error{store.ErrNotFound, store.ErrConflict, store.ErrUndone} {
		wrapped := fmt.Errorf("case 1: %w", err)
		require.Same(t, wrapped, fault.As(wrapped))
		require.False(t, fault.Is(wrapped))
	}
	require.True(t, fault.Is(errFull))
	require.True(t, fault.Is(fmt.Errorf("%w: %w", fault.ErrCommit, io.ErrUnexpectedEOF)))
	require.False(t, fault.Is(io.EOF))
}

func TestTheWaitDoublesUpToItsBound(t *testing.T) {
	var waits []time.Duration
	for n := range fault.Levels + 2 {
		waits = append(waits, fault.Wait(n))
	}
	const ms = time.Millisecond
	require.Equal(t, []time.Duration{50 * ms, 100 * ms, 200 * ms, 400 * ms, 800 * ms, 1600 * ms, 3200 * ms, 5000 * ms, 5000 * ms,
		5000 * ms}, waits)
}

func TestInsist(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		closing := make(chan struct{})
		r := fault.Retrier{Closing: closing, Closed: func() error { return errClosed }}
		calls, began := 0, time.Now()
		require.ErrorIs(t, r.Retry(t.Context(), func() error {
			if calls++; calls <= 3 {
				return errFull
			}
			return io.EOF
		}), io.EOF, "what is no fault is an answer")
		require.Equal(t, 4, calls)
		require.Equal(t, 350*time.Millisecond, time.Since(began), "after 50, 100 and 200 ms")

		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, io.ErrClosedPipe)
		defer cancel()
		require.ErrorIs(t, r.Retry(ctx, func() error { return errFull }), io.ErrClosedPipe)
		close(closing)
		require.ErrorIs(t, r.Retry(t.Context(), func() error { return errFull }), errClosed)
	})
}

// A fault that lasts is logged once a minute, and so is its end.
func TestLog(t *testing.T) {
	var out bytes.Buffer
	now := time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC)
	l := fault.NewLog(slog.New(slog.NewTextHandler(&out, nil)), func() time.Time { return now })
	require.False(t, l.Note("commit", nil, "a commit failed"), "nothing has failed")
	require.True(t, l.Since("commit").IsZero())
	for range 150 { // a second each
		require.False(t, l.Note("commit", errFull, "a commit failed"))
		now = now.Add(time.Second)
	}
	require.Equal(t, 3, strings.Count(out.String(), "a commit failed"), out.String())
	require.Equal(t, now.Add(-150*time.Second), l.Since("due work", "commit"))
	require.True(t, l.Note("commit", nil, "a commit failed"))
	require.Contains(t, out.String(), `msg="a fault is over" of=commit times=150`)
	require.False(t, l.Note("commit", nil, "a commit failed"), "it is over already")
}

// A fault of a kind whose end is not reported is a fresh one after a pause.
func TestAFaultThatCameAgainIsLoggedAgain(t *testing.T) {
	var out bytes.Buffer
	now := time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC)
	l := fault.NewLog(slog.New(slog.NewTextHandler(&out, nil)), func() time.Time { return now })
	l.Note("due work", errFull, "could not begin")
	now = now.Add(3 * time.Minute)
	l.Note("due work", errFull, "could not begin")
	require.Equal(t, 2, strings.Count(out.String(), "times=1 "), out.String())
	require.Equal(t, now, l.Since("due work"))
}
