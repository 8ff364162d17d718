package engine_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/internal/storehook"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/sqlite"
	"github.com/tasq-dev/tasq/workflow"
)

// taken opens a store whose database is taken away, once it is gone.
type taken struct {
	store.Opener
	gone  atomic.Bool
	reads bool         // only they notice it
	asked atomic.Int64 // since then
}

// Open implements store.Opener.
func (f *taken) Open(ctx context.Context, o store.Options) (store.Store, error) {
	taken := func(run func() error) error {
		if !f.gone.Load() {
			return run()
		}
		f.asked.Add(1)
		return store.ErrLost
	}
	h := &storehook.Opener{Opener: f.Opener, View: taken}
	if !f.reads {
		h.Update, h.Idle = taken, taken
	}
	return h.Open(ctx, o)
}

// An engine whose database is taken away stops: running functions are canceled, who waits gets the error, each command is
// refused without a question to the store, one line is logged, and it closes at once.
func TestAnEngineStopsWhenItsDatabaseIsTakenAway(t *testing.T) {
	ctx := t.Context()
	f, log := &taken{Opener: sqlite.Memory()}, &lines{}
	begun, canceled, first := make(chan struct{}, 9), make(chan error, 9), atomic.Bool{}
	first.Store(true)
	a := builder.MustFunc("a", func(ctx context.Context, n int) (int, error) {
		if first.CompareAndSwap(true, false) {
			begun <- struct{}{}
			<-ctx.Done()
			canceled <- ctx.Err()
			return 0, ctx.Err()
		}
		return n, nil
	})
	cfg := engine.Config{Logger: slog.New(slog.NewTextHandler(log, nil)), Grace: time.Hour}
	e, err := cfg.Open(ctx, f, a)
	require.NoError(t, err)
	run, err := a.Run(ctx, e, 7)
	require.NoError(t, err)
	<-begun
	later, err := a.Run(ctx, e, 8, workflow.After(time.Millisecond))
	require.NoError(t, err)
	_, err = later.Result(ctx, e)
	require.NoError(t, err)
	waited, watched := make(chan error, 1), make(chan error, 1)
	following := make(chan struct{}, 1)
	go func() {
		_, err := run.Result(ctx, e)
		waited <- err
	}()
	go func() {
		for _, err := range e.Watch(ctx, run.ID, 0) {
			if err != nil {
				watched <- err
				return
			}
			select {
			case following <- struct{}{}:
			default:
			}
		}
		watched <- nil
	}()
	<-following

	f.gone.Store(true)
	for err = nil; err == nil; { // one may share a transaction that began before
		_, err = a.Run(ctx, e, 9)
	}
	require.ErrorIs(t, err, store.ErrLost)
	require.ErrorIs(t, <-canceled, context.Canceled)
	require.ErrorIs(t, <-waited, store.ErrLost)
	require.ErrorIs(t, <-watched, store.ErrLost)
	asked := f.asked.Load()
	for range 1000 {
		_, err := a.Run(ctx, e, 9)
		require.ErrorIs(t, err, store.ErrLost)
		require.ErrorIs(t, err, engine.ErrClosed)
	}
	require.Equal(t, "lost", engine.Code(err))
	require.ErrorIs(t, e.Drain(ctx), store.ErrLost)
	require.LessOrEqual(t, f.asked.Load(), asked+2, "the store is not asked again, but by what was under way")
	require.NoError(t, e.Close(), "a running function would keep it for an hour")
	require.Equal(t, 1, log.count("level=ERROR"), "one line, however many commands are refused:\n%s", log)
	require.Zero(t, log.count("level=WARN"))

	f.gone.Store(false)
	next := enginetest.Open(t, f, engine.Config{}, a)
	got, err := run.Result(ctx, next)
	require.NoError(t, err)
	require.Equal(t, 7, got)
}

// The same if the first to find it is what removes cases: the loss is reported, not a removal that failed.
func TestAnEngineStopsWhenItsDatabaseIsGoneAsCasesAreRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		f, log := &taken{Opener: sqlite.Memory(), reads: true}, &lines{}
		a := builder.MustFunc("a", echo, builder.Keep(time.Hour))
		e, err := engine.Config{Logger: slog.New(slog.NewTextHandler(log, nil))}.Open(ctx, f, a)
		require.NoError(t, err)
		r, err := a.Run(ctx, e, 1)
		require.NoError(t, err)
		_, err = r.Result(ctx, e)
		require.NoError(t, err)
		require.NoError(t, e.Drain(ctx))

		f.gone.Store(true)
		<-time.After(2 * time.Hour)
		synctest.Wait()
		_, err = a.Run(ctx, e, 2)
		require.ErrorIs(t, err, store.ErrLost)
		require.ErrorIs(t, err, engine.ErrClosed)
		require.NoError(t, e.Close())
		require.Equal(t, 1, log.count("level=ERROR"), "one line:\n%s", log)
		require.Equal(t, 1, log.count("the engine stops"), "that line:\n%s", log)
	})
}

// The same with a file: an idle engine notices by itself that it is gone.
func TestAnIdleEngineStopsWhenItsFileIsRemoved(t *testing.T) {
	t.Parallel()
	log, path := &lines{}, filepath.Join(t.TempDir(), "cases.db")
	a := builder.MustFunc("a", func(_ context.Context, n int) (int, error) { return n, nil })
	e, err := engine.Config{Logger: slog.New(slog.NewTextHandler(log, nil))}.Open(t.Context(), sqlite.File(path), a)
	require.NoError(t, err)
	r, err := a.Run(t.Context(), e, 1, workflow.After(time.Hour))
	require.NoError(t, err)
	require.NoError(t, os.Rename(path, path+".old"))
	_, err = r.Result(t.Context(), e)
	require.ErrorIs(t, err, store.ErrLost)
	require.ErrorContains(t, err, "was removed or moved")
	require.ErrorIs(t, e.Close(), store.ErrLost)
	require.Equal(t, 1, log.count("the engine stops"))
	require.NoError(t, os.Rename(path+".old", path))
	next := enginetest.Open(t, sqlite.File(path), engine.Config{}, a)
	_, err = next.Case(t.Context(), r.ID)
	require.NoError(t, err)
}
