package engine_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/internal/storehook"
	"github.com/tasq-dev/tasq/step"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/sqlite"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
)

// outage opens a store that takes nothing while it is down: each transaction is run, and then not committed.
type outage struct {
	store.Opener
	down    atomic.Bool
	refused atomic.Int64
	asked   atomic.Int64 // all calls
}

// Open implements store.Opener.
func (f *outage) Open(ctx context.Context, o store.Options) (store.Store, error) {
	return f.hooks().Open(ctx, o)
}

func (f *outage) hooks() *storehook.Opener {
	asked := func(run func() error) error {
		f.asked.Add(1)
		return run()
	}
	return &storehook.Opener{Opener: f.Opener, Update: asked, Idle: asked,
		Commit: func() error {
			if f.down.Load() {
				f.refused.Add(1)
				return errDisk
			}
			return nil
		},
		View: func(run func() error) error {
			if f.down.Load() {
				run = func() error { return errDisk }
			}
			return asked(run)
		},
	}
}

// refusedTimes waits until the store has refused so many transactions.
func (f *outage) refusedTimes(t *testing.T, n int64) {
	t.Helper()
	for f.refused.Load() < n {
		select {
		case <-t.Context().Done():
			t.Fatal("the store is not asked")
		case <-time.After(time.Millisecond):
		}
	}
}

// lines is a log that can be read while it is written.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

// Write implements io.Writer.
func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

// String implements fmt.Stringer.
func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

func (l *lines) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.buf.String(), text)
}

// noTrace fails if the journal has a failure, an attempt that did not succeed, or an incident.
func noTrace(t *testing.T, e *enginetest.Engine) {
	t.Helper()
	for entry, err := range store.AllEntries(t.Context(), e, store.JournalFilter{}) {
		require.NoError(t, err)
		require.NotEqual(t, "job put off", entry.Command)
		for _, event := range entry.Changes {
			switch event := event.(type) {
			case *state.Noted:
				require.NotEqual(t, state.NoteIncident, event.Code, event.Text)
			case *state.JobMoved:
				require.Nil(t, event.Failure)
				require.LessOrEqual(t, event.Attempt, 2, "a call, and one after its sleep")
				require.Zero(t, event.Crashes)
			}
		}
	}
}

// Everything that comes due while the store takes nothing continues when it works again: jobs, sleeping functions,
// timers, cases that begin later, completion handlers, cases to be removed. Nothing is counted against any of them.
func TestDueWorkWaitsForStore(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	f := &outage{Opener: sqlite.Memory()}
	log := &lines{}
	sleeper := builder.MustFunc("sleeper", func(ctx context.Context, n int) (int, error) {
		return n, step.Sleep(ctx, "nap", time.Hour)
	}, builder.Keep(builder.Forever))
	gone := builder.MustFunc("gone", echo, builder.Keep(time.Hour))
	h := builder.Handler("h", func(ctx context.Context, c *builder.Completion[any], _ int) error {
		_, err := c.DB().ExecContext(ctx, "INSERT INTO log VALUES (9)")
		return err
	})
	b := builder.New[any]("timed", builder.Handles(h))
	b.Path(b.Start(), builder.Task(b, "t", builder.Work[any, any]{Timeout: time.Hour}), b.End())
	timed := b.MustBuild()
	e := enginetest.Open(t, f, engine.Config{Logger: slog.New(slog.NewTextHandler(log, nil))}, sleeper, gone, timed)
	withTable(t, e)
	var sleepers []builder.Run[int]
	for n := range 20 {
		r, err := sleeper.Run(ctx, e, n)
		require.NoError(t, err)
		sleepers = append(sleepers, r)
	}
	later, err := sleeper.Run(ctx, e, 7, workflow.After(time.Hour))
	require.NoError(t, err)
	_, err = timed.Start(ctx, e, nil, builder.OnComplete(h, 1))
	require.NoError(t, err)
	kept, err := gone.Run(ctx, e, 1)
	require.NoError(t, err)
	e.Drain()

	f.down.Store(true)
	e.Clock().Set(e.Now().Add(time.Hour))
	f.refusedTimes(t, 5)
	_, err = sleeper.Run(ctx, e, 1)
	require.ErrorIs(t, err, errDisk, "who asks is refused")
	waiting := 0
	for _, b := range e.Overdue() {
		require.Equal(t, e.Now(), b.Oldest)
		require.Equal(t, b.Due, b.Failing)
		waiting += b.Due
	}
	require.Positive(t, waiting)

	f.down.Store(false)
	e.Drain()
	for _, r := range sleepers {
		s, err := r.Status(ctx, e)
		require.NoError(t, err)
		require.Equal(t, workflow.RunCompleted, s.State)
		require.Equal(t, 1, s.Attempt)
	}
	require.Equal(t, 1, count(t, e, "SELECT count(*) FROM log WHERE x = 9"))
	_, err = e.Case(ctx, kept.ID)
	require.ErrorIs(t, err, engine.ErrNotFound)
	require.Empty(t, e.Overdue())
	e.Advance(time.Hour)
	s, err := later.Status(ctx, e)
	require.NoError(t, err)
	require.Equal(t, workflow.RunCompleted, s.State)
	noTrace(t, e)
	require.Equal(t, 1, log.count("a commit failed"), "one line, and one a minute")
	require.Equal(t, 1, log.count(`msg="a fault is over" of=commit`))
}

// A result is handed in until the store takes it: the function is not called again, and a step that could not be
// recorded is no failure of the function.
func TestAResultWaitsForTheStore(t *testing.T) {
	ctx := t.Context()
	f := &outage{Opener: sqlite.Memory()}
	calls, effects := atomic.Int32{}, atomic.Int32{}
	begun, goOn := make(chan struct{}), make(chan struct{})
	a := builder.MustFunc("a", func(ctx context.Context, n int) (int, error) {
		calls.Add(1)
		close(begun)
		<-goOn
		_, err := step.Do(ctx, "effect", func(context.Context) (int, error) { return int(effects.Add(1)), nil })
		return n, err
	})
	e := enginetest.Open(t, f, engine.Config{}, a)
	run, err := a.Run(ctx, e, 3)
	require.NoError(t, err)
	<-begun
	require.NoError(t, e.Update(ctx, func(*engine.Tx) error { return nil })) // after the claim, which is durable then
	f.down.Store(true)
	close(goOn)
	f.refusedTimes(t, 3)
	f.down.Store(false)
	got, err := run.Result(ctx, e)
	require.NoError(t, err)
	require.Equal(t, 3, got)
	require.EqualValues(t, 1, calls.Load())
	require.EqualValues(t, 1, effects.Load())
	e.Drain()
	noTrace(t, e)
}

// An engine closes though its store takes nothing; the job is taken up by the next one.
func TestAnEngineClosesWhileItsStoreFails(t *testing.T) {
	ctx := t.Context()
	f := &outage{Opener: sqlite.Memory()}
	begun, goOn := make(chan struct{}, 2), make(chan struct{})
	a := builder.MustFunc("a", func(_ context.Context, n int) (int, error) {
		begun <- struct{}{}
		<-goOn
		return n, nil
	})
	cfg := engine.Config{Grace: time.Millisecond, Logger: slog.New(slog.DiscardHandler)}
	e, err := cfg.Open(ctx, f, a)
	require.NoError(t, err)
	run, err := a.Run(ctx, e, 1)
	require.NoError(t, err)
	<-begun
	require.NoError(t, e.Update(ctx, func(*engine.Tx) error { return nil }))
	f.down.Store(true)
	close(goOn)
	f.refusedTimes(t, 1)
	_ = e.Close()
	f.down.Store(false)
	next := enginetest.Open(t, f, engine.Config{}, a)
	got, err := run.Result(ctx, next)
	require.NoError(t, err)
	require.Equal(t, 1, got)
}

// What the process refuses is put off and counted, as before: only the store's own faults are not.
func TestARefusalIsNoFault(t *testing.T) {
	ctx := t.Context()
	refused := errors.New("refused")
	b := builder.New[any]("timed")
	b.Path(b.Start(), builder.Task(b, "t", builder.Work[any, any]{Timeout: time.Hour,
		OnWorkItemStateChanged: func(_ context.Context, c *activities.Change) error {
			if c.To.Final() {
				return refused
			}
			return nil
		}}), b.End())
	w := b.MustBuild()
	e := enginetest.New(t, w)
	id, err := w.Start(ctx, e, nil)
	require.NoError(t, err)
	e.Advance(time.Hour)
	c, err := e.Case(ctx, id)
	require.NoError(t, err)
	jobs := c.Jobs.Slice()
	require.Len(t, jobs, 1)
	require.Equal(t, 1, jobs[0].Attempt)
	require.Contains(t, jobs[0].Failure.Message, "refused")
	require.Empty(t, e.Overdue())
}
