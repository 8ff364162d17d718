package commit_test

import (
	"errors"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/engine/internal/commit"
	"github.com/tasq-dev/tasq/engine/internal/fault"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workitem"
)

// batchOf runs requests in one batch, and returns their errors.
func batchOf(t *testing.T, s store.Store, requests ...*commit.Request) []error {
	t.Helper()
	w := writer(t, s, new(int))
	waits := make([]func() error, len(requests))
	for i, r := range requests {
		var err error
		waits[i], err = w.Ask(t.Context(), r)
		require.NoError(t, err)
	}
	w.Start()
	errs := make([]error, len(requests))
	for i, wait := range waits {
		errs[i] = wait()
	}
	return errs
}

// item is an item that can be started once.
type item struct{ started, lost bool }

var errStarted = errors.New("the item is started")

func (it *item) start(once bool) *commit.Request {
	return &commit.Request{Once: once, Run: func(*commit.Tx) error {
		if it.started {
			return errStarted
		}
		it.started = true
		return nil
	}}
}

// fails is a commit that fails once: what was started is not.
func (it *item) fails(err error) func(int) error {
	return func(int) error {
		if it.lost {
			return nil
		}
		it.started, it.lost = false, true
		return err
	}
}

// A request is refused because of one before it, whose commit fails. It gets the error of the commit, as nothing has happened that
// refuses it.
func TestARefusalGoesWithWhatItWasDueTo(t *testing.T) {
	it := &item{}
	errs := batchOf(t, &fakeStore{commit: it.fails(errDisk)}, it.start(false), it.start(false))
	for _, err := range errs {
		require.ErrorIs(t, err, errDisk)
		require.ErrorIs(t, err, fault.ErrCommit)
		require.NotErrorIs(t, err, errStarted)
	}
	require.ErrorContains(t, errs[1], "before that the request itself failed: the item is started")

	// Nothing but the request itself is the reason of its failure if it is the first.
	errs = batchOf(t, &fakeStore{commit: (&item{}).fails(errDisk)}, &commit.Request{Run: func(*commit.Tx) error { return io.EOF }})
	require.ErrorIs(t, errs[0], io.EOF)
}

// The same with a commit that the database refuses, and with a request that undoes the transaction: what may run twice runs again.
func TestARefusalOfAnUndoneBatchIsTriedAgain(t *testing.T) {
	refused := errors.Join(store.ErrRefused, errDisk)
	for _, once := range []bool{false, true} {
		it := &item{}
		starts := it.start(false)
		run := starts.Run
		starts.Run = func(tx *commit.Tx) error {
			if it.lost {
				return io.ErrUnexpectedEOF // it does not start the item the second time
			}
			return run(tx)
		}
		errs := batchOf(t, &fakeStore{commit: it.fails(refused)}, starts, it.start(once))
		require.ErrorIs(t, errs[0], io.ErrUnexpectedEOF)
		if once {
			require.ErrorIs(t, errs[1], store.ErrConflict)
			require.NotErrorIs(t, errs[1], errStarted)
		} else {
			require.NoError(t, errs[1])
		}
	}
	it := &item{}
	errs := batchOf(t, &fakeStore{}, it.start(false), it.start(true), &commit.Request{Run: func(*commit.Tx) error {
		it.started = false
		return store.ErrUndone
	}})
	require.NoError(t, errs[0])
	require.ErrorIs(t, errs[1], store.ErrConflict)
	require.ErrorIs(t, errs[2], store.ErrUndone)
}

// A function that must not run twice fails because of a case that another engine has changed since: it gets a conflict. If it read another
// case, it gets its own error.
func TestAnUpdateThatFailedOnAStaleCaseHasAConflict(t *testing.T) {
	for _, opened := range []workitem.CaseID{one, two} {
		s := &fleetStore{newest: map[workitem.CaseID]int64{one: 1, two: 1}}
		s.before = func(int) { s.newest[one]++ }
		errs := batchOf(t, s, &commit.Request{Once: true, Run: func(tx *commit.Tx) error {
			_, err := tx.Open(opened)
			return errors.Join(err, errStarted)
		}}, &commit.Request{Once: true, Run: func(tx *commit.Tx) error {
			_, err := tx.Open(one)
			return err
		}})
		require.ErrorIs(t, errs[1], store.ErrConflict)
		if opened == one {
			require.ErrorIs(t, errs[0], store.ErrConflict)
			require.NotErrorIs(t, errs[0], errStarted)
		} else {
			require.ErrorIs(t, errs[0], errStarted)
		}
	}
}
