package commit_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/engine/internal/commit"
	"github.com/tasq-dev/tasq/engine/internal/fault"
	"github.com/tasq-dev/tasq/engine/internal/kernel"
	"github.com/tasq-dev/tasq/engine/internal/registry"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workitem"
)

var errDisk = errors.New("the disk is full")

// fakeStore runs updates without data, with the given errors.
type fakeStore struct {
	store.Store
	updates int
	commit  func(update int) error // of the update, from 1; nil succeeds
}

// Update implements store.Store.
func (s *fakeStore) Update(_ context.Context, f func(store.Tx) error) error {
	s.updates++
	if err := f(fakeTx{}); err != nil {
		return err
	}
	if s.commit != nil {
		return s.commit(s.updates)
	}
	return nil
}

// Idle implements store.Store.
func (s *fakeStore) Idle(context.Context) error { return nil }

type fakeTx struct{ store.Tx }

// Savepoint implements store.Tx.
func (fakeTx) Savepoint(_ context.Context, f func() error) error { return f() }

// writer starts a writer on a store; recovered counts the faults that have ended.
func writer(t *testing.T, s store.Store, recovered *int) *commit.Writer {
	t.Helper()
	definitions, err := registry.New(slog.New(slog.DiscardHandler), nil)
	require.NoError(t, err)
	return writerOf(t, s, recovered, definitions, true)
}

func writerOf(t *testing.T, s store.Store, recovered *int, definitions kernel.Definitions, shared bool) *commit.Writer {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	w := commit.New(commit.Options{
		Store: s, Definitions: definitions, IDs: workitem.NewGenerator(zeros{}), Now: time.Now,
		NewToken: func(workitem.CaseID) (string, error) { return "", nil },
		Faults:   fault.NewLog(log, time.Now), CallbackTimeout: time.Minute, CacheCases: 1, Shared: shared,
		RootEnded: func(*commit.Tx, *commit.TreeWrite) error { return nil },
		Active:    func(int) {}, Lost: func(err error) error { return err }, Closed: func() error { return commit.ErrClosed },
		Recovered: func() { *recovered++ }, Fenced: func() {},
	})
	t.Cleanup(func() {
		w.Close()
		w.Wait()
		w.Stop()
	})
	return w
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

// added is an extender that notes the outcomes that it is given.
type added struct {
	refuses  error
	outcomes []error
}

// Extend implements commit.Extender.
func (a *added) Extend(*commit.Tx) (func(error), error) {
	if a.refuses != nil {
		err := a.refuses
		a.refuses = nil
		return nil, err
	}
	return func(err error) { a.outcomes = append(a.outcomes, err) }, nil
}

func nothing(*commit.Tx) error { return nil }

// What an extender adds gets the outcome of its request, once.
func TestAnExtensionGetsTheOutcomeOfItsRequest(t *testing.T) {
	var recovered int
	s, a := &fakeStore{commit: func(n int) error {
		if n == 2 {
			return errDisk
		}
		return nil
	}}, &added{}
	w := writer(t, s, &recovered)
	w.Extend(a)
	w.Start()
	require.NoError(t, w.Submit(t.Context(), &commit.Request{Run: nothing}))
	require.Equal(t, []error{nil}, a.outcomes)
	err := w.Submit(t.Context(), &commit.Request{Run: nothing})
	require.ErrorIs(t, err, errDisk)
	require.ErrorIs(t, err, fault.ErrCommit)
	require.Len(t, a.outcomes, 2)
	require.ErrorIs(t, a.outcomes[1], errDisk)
	require.NoError(t, w.Submit(t.Context(), &commit.Request{Run: nothing}))
	require.NoError(t, w.Submit(t.Context(), &commit.Request{Run: nothing}))
	w.Close()
	w.Wait()
	require.Equal(t, 1, recovered, "the store works again")
}

func TestRequestsWithoutExtension(t *testing.T) {
	var recovered int
	a := &added{}
	w := writer(t, &fakeStore{}, &recovered)
	w.Extend(a)
	w.Start()
	require.NoError(t, w.Submit(t.Context(), &commit.Request{Once: true, Run: nothing}))
	require.NoError(t, w.Submit(t.Context(), &commit.Request{Reads: true, Run: nothing}))
	require.ErrorIs(t, w.Submit(t.Context(), &commit.Request{Run: func(*commit.Tx) error { return io.EOF }}), io.EOF)
	require.Empty(t, a.outcomes)
}

// An extension that takes the transaction with it is left out, and the request is done again.
func TestARequestIsDoneAgainWithoutItsExtension(t *testing.T) {
	var recovered, runs int
	a := &added{refuses: commit.ErrDefer}
	w := writer(t, &fakeStore{}, &recovered)
	w.Extend(a)
	w.Start()
	require.NoError(t, w.Submit(t.Context(), &commit.Request{Run: func(tx *commit.Tx) error {
		runs++
		require.Equal(t, runs == 2, tx.Deferred())
		return nil
	}}))
	require.Equal(t, 2, runs)
	require.Empty(t, a.outcomes)
}

// If one request undoes the transaction, the others are done again without it, and what was added to them first did not
// happen.
func TestTheOthersOfABatchAreDoneAgain(t *testing.T) {
	var recovered, runs int
	s, a := &fakeStore{}, &added{}
	w := writer(t, s, &recovered)
	w.Extend(a)
	wait, err := w.Ask(t.Context(), &commit.Request{Run: func(*commit.Tx) error { runs++; return nil }})
	require.NoError(t, err)
	undoes, err := w.Ask(t.Context(), &commit.Request{Run: func(*commit.Tx) error { return store.ErrUndone }})
	require.NoError(t, err)
	w.Start()
	require.NoError(t, wait())
	require.ErrorIs(t, undoes(), store.ErrUndone)
	require.Equal(t, 2, runs)
	require.Equal(t, 2, s.updates)
	require.Equal(t, []error{store.ErrUndone, nil}, a.outcomes)
}

func TestARequestIsWithdrawnBeforeItBegins(t *testing.T) {
	var recovered, runs int
	w := writer(t, &fakeStore{}, &recovered)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	count := func(*commit.Tx) error { runs++; return nil }
	require.ErrorIs(t, w.Submit(ctx, &commit.Request{Run: count}), context.Canceled)
	ctx, cancel = context.WithCancel(t.Context())
	wait, err := w.Ask(ctx, &commit.Request{Run: count})
	require.NoError(t, err)
	cancel()
	w.Start()
	require.ErrorIs(t, wait(), context.Canceled)
	require.Zero(t, runs)
}

func TestAClosedWriterDoesWhatIsQueued(t *testing.T) {
	var recovered, runs int
	w := writer(t, &fakeStore{}, &recovered)
	wait, err := w.Ask(t.Context(), &commit.Request{Run: func(*commit.Tx) error { runs++; return nil }})
	require.NoError(t, err)
	w.Close()
	require.ErrorIs(t, w.Submit(t.Context(), &commit.Request{Run: nothing}), commit.ErrClosed)
	require.False(t, w.Send(&commit.Request{Run: nothing}))
	w.Start()
	require.NoError(t, wait())
	require.Equal(t, 1, runs)
}

// A callback that calls the engine would wait for itself.
func TestACallbackThatSubmitsIsRefused(t *testing.T) {
	var recovered int
	w := writer(t, &fakeStore{}, &recovered)
	w.Start()
	var inner error
	require.NoError(t, w.Submit(t.Context(), &commit.Request{Run: func(tx *commit.Tx) error {
		return tx.Callback(func(ctx context.Context) error {
			inner = w.Submit(ctx, &commit.Request{Run: nothing})
			require.Equal(t, 1, tx.Depth())
			return nil
		})
	}}))
	require.ErrorIs(t, inner, commit.ErrCallback)
}
