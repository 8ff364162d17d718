package engine_test

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/internal/integrity"
	"github.com/tasq-dev/tasq/limit"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/sqlite"
	"github.com/tasq-dev/tasq/workflow"
)

// A limit is changed while jobs hold it and wait for it, 0 pauses it, and the engine remembers it over a kill.
func TestALimitIsChangedAtRunTimeAndRemembered(t *testing.T) {
	ctx := t.Context()
	release := make(chan struct{})
	var running atomic.Int32
	f := builder.MustFunc("f", func(context.Context, int) (int, error) {
		running.Add(1)
		defer running.Add(-1)
		<-release
		return 0, nil
	}, builder.Limits(builder.Takes(limit.Resource("db", 2), 0)))
	path := sqlite.File(t.TempDir() + "/limits.db")
	cfg := engine.Config{Logger: slog.New(slog.DiscardHandler)}
	e, err := cfg.Open(ctx, path, f)
	require.NoError(t, err)
	runs := startAll(t, e, f, numbers(10)...)
	are := func(n int32) {
		require.Eventually(t, func() bool { return running.Load() == n }, time.Minute, time.Millisecond)
	}
	are(2)
	_, err = e.Do(ctx, workflow.SetLimit("db", 5))
	require.NoError(t, err)
	are(5)
	_, err = e.Do(ctx, workflow.SetLimit("db", 0))
	require.NoError(t, err)
	for range 5 {
		release <- struct{}{}
	}
	are(0)
	var list []workflow.LimitInfo
	require.Eventually(t, func() bool {
		var result workflow.Result
		result, err = e.Do(ctx, workflow.Limits())
		list = result.Limits
		return err == nil && list[0].Used == 0
	}, time.Minute, time.Millisecond)
	require.Equal(t, []workflow.LimitInfo{{Limit: limit.Limit{Name: "db", N: 0, Algorithm: limit.Slots, Each: 1}, Defined: 2, Loaded: true, Keys: 1,
		Waiting: 5, Next: limit.Unknown, At: list[0].At}}, list)
	answer, err := e.Why(ctx, runs[9].ID)
	require.NoError(t, err)
	require.Contains(t, answer.String(), "waits for 1 of slots db, which is paused")
	require.NoError(t, e.Kill())

	// A program without the workflow sets it in the file; the one that has it goes by that.
	e, err = cfg.Open(ctx, path)
	require.NoError(t, err)
	_, err = e.Do(ctx, workflow.SetLimit("db", 3))
	require.NoError(t, err)
	_, err = e.Do(ctx, workflow.SetLimit("bd", 3))
	require.ErrorIs(t, err, engine.ErrNotFound)
	require.ErrorContains(t, err, `limit "bd": no workflow of this database has it, there are ["db"]`)
	_, err = e.Do(ctx, workflow.SetLimit("db", -1))
	require.ErrorIs(t, err, workflow.ErrBadCommand)
	require.NoError(t, e.Close())
	e, err = cfg.Open(ctx, path, f)
	require.NoError(t, err)
	are(3)
	close(release)
	endAll(t, e, runs)
	require.NoError(t, integrity.Check(ctx, e))
	require.NoError(t, e.Close())
}

// No job of a paused queue begins, others do; the pause outlives the engine, and why names it.
func TestAQueueIsPausedAndResumed(t *testing.T) {
	ctx := t.Context()
	var calls atomic.Int32
	f := builder.MustFunc("f", func(context.Context, int) (int, error) { return int(calls.Add(1)), nil }, builder.OnQueue("mail"),
		builder.Limits(builder.Takes(limit.Resource("db", 1), 0)))
	other := builder.MustFunc("other", echo)
	file := sqlite.File(t.TempDir() + "/queue.db")
	cfg := engine.Config{Logger: slog.New(slog.DiscardHandler)}
	e, err := cfg.Open(ctx, file, f, other)
	require.NoError(t, err)
	_, err = e.Do(ctx, workflow.PauseQueue("mail"))
	require.NoError(t, err)
	require.NoError(t, e.Drain(ctx))
	runs := startAll(t, e, f, numbers(4)...)
	endAll(t, e, startAll(t, e, other, 1))
	require.NoError(t, e.Drain(ctx)) // what is paused is not under way
	require.Zero(t, calls.Load())
	answer, err := e.Why(ctx, runs[0].ID)
	require.NoError(t, err)
	require.Regexp(t, `queue mail is paused for \S+: resume it with tasq queue resume mail`, answer.String())
	require.NoError(t, e.Close())

	e, err = cfg.Open(ctx, file, f, other)
	require.NoError(t, err)
	require.NoError(t, e.Drain(ctx))
	require.Zero(t, calls.Load())
	_, err = e.Do(ctx, workflow.ResumeQueue("mail"))
	require.NoError(t, err)
	endAll(t, e, runs)
	require.EqualValues(t, 4, calls.Load())
	require.NoError(t, integrity.Check(ctx, e))
	require.NoError(t, e.Close())
}

// slowSettings is a store whose first reading of the settings after it is armed is answered late.
type slowSettings struct {
	store.Store
	file    store.Opener
	armed   atomic.Int32  // the readings of settings that are looked for
	late    chan struct{} // the first has what it answers
	release chan struct{} // closed as the second has
}

// Open implements store.Opener.
func (s *slowSettings) Open(ctx context.Context, o store.Options) (store.Store, error) {
	opened, err := s.file.Open(ctx, o)
	s.Store = opened
	return s, err
}

// View implements store.Store.
func (s *slowSettings) View(ctx context.Context, f func(store.Reader) error) error {
	if s.armed.Load() == 0 {
		return s.Store.View(ctx, f)
	}
	read := &settingsReader{}
	err := s.Store.View(ctx, func(r store.Reader) error {
		read.Reader = r
		return f(read)
	})
	if !read.settings {
		return err
	}
	switch s.armed.Add(-1) {
	case 1:
		close(s.late)
		<-s.release
	case 0:
		close(s.release)
	}
	return err
}

type settingsReader struct {
	store.Reader
	settings bool
}

// Settings implements store.Reader.
func (r *settingsReader) Settings(ctx context.Context) ([]store.Setting, error) {
	r.settings = true
	return r.Reader.Settings(ctx)
}

// A reading of the settings that began before a command does not undo what the command set.
func TestAPauseOutlivesALateReadingOfTheSettings(t *testing.T) {
	ctx := t.Context()
	var calls atomic.Int32
	f := builder.MustFunc("f", func(context.Context, int) (int, error) { return int(calls.Add(1)), nil },
		builder.Limits(builder.Takes(limit.Resource("db", 2), 0)))
	file := &slowSettings{file: sqlite.File(t.TempDir() + "/late.db"), late: make(chan struct{}), release: make(chan struct{})}
	e, err := engine.Config{Logger: slog.New(slog.DiscardHandler)}.Open(ctx, file, f)
	require.NoError(t, err)
	file.armed.Store(2)
	_, err = e.Do(ctx, workflow.SetLimit("db", 5))
	require.NoError(t, err)
	<-file.late
	_, err = e.Do(ctx, workflow.SetLimit("db", 0))
	require.NoError(t, err)
	<-file.release
	require.NoError(t, e.Drain(ctx)) // until both readings have ended
	runs := startAll(t, e, f, 1)
	result, err := e.Do(ctx, workflow.Limits())
	require.NoError(t, err)
	require.Zero(t, result.Limits[0].Limit.N)
	require.NoError(t, e.Drain(ctx))
	require.Zero(t, calls.Load())
	_, err = e.Do(ctx, workflow.SetLimit("db", 1))
	require.NoError(t, err)
	endAll(t, e, runs)
	require.NoError(t, integrity.Check(ctx, e))
	require.NoError(t, e.Close())
}
