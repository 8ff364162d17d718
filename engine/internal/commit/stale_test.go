package commit_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/engine/internal/commit"
	"github.com/tasq-dev/tasq/engine/internal/fault"
	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

var onlyNet = net.MustCompile(&net.Definition{
	Name:       "only",
	Conditions: []net.Condition{{Name: "start", Role: net.Start}, {Name: "end", Role: net.End}},
	Tasks:      []net.Task{{Name: "work"}},
	Flows:      []net.Flow{{From: "start", To: "work"}, {From: "work", To: "end"}},
})

// fleetStore is a store of cases that other engines change: the newest position of each. It takes no entries.
type fleetStore struct {
	store.Store
	newest     map[workitem.CaseID]int64
	before     func(update int) // is called before each commit, as another engine that is faster
	lost       int              // how many commits do not happen, as their connection is lost
	locked     workitem.CaseID  // another transaction has locked it
	waited     bool             // a request or a commit has waited for its lock
	updates    int
	loads      int
	locks      int
	prefetched [][]string
}

type fleetTx struct {
	store.Tx
	s        *fleetStore
	expected map[workitem.CaseID]int64
}

// Update implements store.Store.
func (s *fleetStore) Update(_ context.Context, f func(store.Tx) error) error {
	s.updates++
	tx := &fleetTx{s: s, expected: make(map[workitem.CaseID]int64)}
	if err := f(tx); err != nil {
		return err
	}
	if s.before != nil {
		s.before(s.updates)
	}
	if s.lost > 0 {
		s.lost--
		return fmt.Errorf("%w: %w", store.ErrUnavailable, store.ErrNotCommitted)
	}
	if _, depends := tx.expected[s.locked]; depends {
		s.waited = true
		return &store.StaleError{Roots: []workitem.CaseID{s.locked}, Err: store.ErrUnavailable, Locked: true}
	}
	var stale []workitem.CaseID
	for root, last := range tx.expected {
		if s.newest[root] != last {
			stale = append(stale, root)
		}
	}
	if stale != nil {
		return &store.StaleError{Roots: stale}
	}
	return nil
}

// Idle implements store.Store.
func (s *fleetStore) Idle(context.Context) error { return nil }

func (tx *fleetTx) Savepoint(_ context.Context, f func() error) error { return f() }

func (tx *fleetTx) Load(_ context.Context, root workitem.CaseID) (*state.Tree, error) {
	tx.s.loads++
	return state.NewTree(&state.Case{ID: root, Root: root, Net: onlyNet, Fingerprint: "only", State: state.CaseStarted, LastSeq: tx.s.newest[root]}), nil
}

func (tx *fleetTx) Expect(t *state.Tree) { tx.expected[t.Root] = t.Case(t.Root).LastSeq }

func (tx *fleetTx) LockCase(_ context.Context, root workitem.CaseID, wait bool) (int64, error) {
	tx.s.locks++
	if root == tx.s.locked {
		tx.s.waited = tx.s.waited || wait
		return 0, &store.StaleError{Roots: []workitem.CaseID{root}, Err: store.ErrUnavailable, Locked: true}
	}
	return tx.s.newest[root], nil
}

// Append implements store.Tx.
func (tx *fleetTx) Append(_ context.Context, _ *store.Entry, t *state.Tree) error {
	t.End(1)
	return nil
}

func (tx *fleetTx) Offer(...workitem.JobID) {}

func (tx *fleetTx) Waiting(context.Context, string) ([]workitem.CaseID, error) { return nil, nil }

func (tx *fleetTx) PrefetchKeys(_ context.Context, keys []string) error {
	tx.s.prefetched = append(tx.s.prefetched, keys)
	return nil
}

var one, two = workitem.CaseID{1}, workitem.CaseID{2}

// looks makes a request that notes the position of a tree as it sees it.
func looks(root workitem.CaseID, seen *[]int64) *commit.Request {
	return &commit.Request{Run: func(tx *commit.Tx) error {
		u, err := tx.Open(root)
		if err == nil {
			*seen = append(*seen, u.Tree.Case(root).LastSeq)
		}
		return err
	}}
}

// A request that worked on a tree which another engine has changed runs again on a fresh one, also if it was refused or only looked.
func TestAStaleRequestRunsAgain(t *testing.T) {
	s := &fleetStore{newest: map[workitem.CaseID]int64{one: 5}}
	w := writer(t, s, new(int))
	w.Start()
	var seen []int64
	require.NoError(t, w.Submit(t.Context(), looks(one, &seen)))
	s.newest[one] = 6 // the writer has the tree as it was at 5
	require.NoError(t, w.Submit(t.Context(), looks(one, &seen)))
	require.Equal(t, []int64{5, 5, 6}, seen)
	require.Equal(t, 2, s.loads)
	require.Zero(t, s.locks)
}

// After a second conflict within a second the request runs apart, with a lock, which ends the race.
func TestASecondConflictTakesALock(t *testing.T) {
	s := &fleetStore{newest: map[workitem.CaseID]int64{one: 1}}
	s.before = func(int) {
		if s.locks == 0 {
			s.newest[one]++ // another engine is always faster, until it has to wait
		}
	}
	w := writer(t, s, new(int))
	w.Start()
	var seen []int64
	require.NoError(t, w.Submit(t.Context(), looks(one, &seen)))
	require.Equal(t, []int64{1, 2, 3}, seen)
	require.Equal(t, 1, s.locks)
}

// A request that never finds its tree as it was is answered at last; one of the engine's own is tried again later.
func TestAnEndlessRaceIsAFault(t *testing.T) {
	s := &fleetStore{newest: map[workitem.CaseID]int64{one: 1}}
	s.before = func(int) { s.newest[one]++ }
	w := writer(t, s, new(int))
	w.Start()
	var seen []int64
	err := w.Submit(t.Context(), looks(one, &seen))
	require.ErrorIs(t, err, store.ErrConflict)
	require.ErrorIs(t, err, fault.ErrCommit)
	require.Len(t, seen, 10)
}

// The function of an Update locks what it opens, so a tree in memory that is stale is no conflict. If there is one nevertheless, it is
// reported, and the function is not called again.
func TestUpdateIsNotRunTwiceAfterConflict(t *testing.T) {
	s := &fleetStore{newest: map[workitem.CaseID]int64{one: 1, two: 1}}
	w := writer(t, s, new(int))
	w.Start()
	var seen []int64
	require.NoError(t, w.Submit(t.Context(), looks(one, &seen)))
	s.newest[one] = 2
	r := looks(one, &seen)
	r.Once = true
	require.NoError(t, w.Submit(t.Context(), r))
	require.Equal(t, []int64{1, 2}, seen)
	s.before = func(int) { s.newest[one]++ }
	r = looks(one, &seen)
	r.Once = true
	err := w.Submit(t.Context(), r)
	require.ErrorIs(t, err, store.ErrConflict)
	require.NotErrorIs(t, err, fault.ErrCommit)
	require.Equal(t, []int64{1, 2, 2}, seen)
}

// A commit that did not happen, as its connection was lost, is made again; a request that must not run twice fails.
func TestALostCommitIsMadeAgain(t *testing.T) {
	s := &fleetStore{newest: map[workitem.CaseID]int64{one: 1}}
	w := writer(t, s, new(int))
	w.Start()
	var seen []int64
	s.lost = 9
	require.NoError(t, w.Submit(t.Context(), looks(one, &seen)))
	require.Len(t, seen, 10)
	s.lost = 1
	r := looks(one, &seen)
	r.Once = true
	err := w.Submit(t.Context(), r)
	require.ErrorIs(t, err, fault.ErrCommit)
	require.ErrorIs(t, err, store.ErrNotCommitted)
	require.NotErrorIs(t, err, store.ErrConflict)
	require.Len(t, seen, 11)
	s.lost = 100
	err = w.Submit(t.Context(), looks(one, &seen))
	require.ErrorIs(t, err, fault.ErrCommit)
	require.Len(t, seen, 21)
	require.Equal(t, 90, s.lost)
}

// The refusal of a request says nothing if it worked on a tree that the store did not compare, as its commit was lost.
func TestARefusalOfALostCommitIsMadeAgain(t *testing.T) {
	s := &fleetStore{newest: map[workitem.CaseID]int64{one: 1}, lost: 1}
	w := writer(t, s, new(int))
	w.Start()
	refused, runs := errors.New("refused"), 0
	r := &commit.Request{Run: func(tx *commit.Tx) error {
		runs++
		if _, err := tx.Open(one); err != nil || s.lost == 0 {
			return err
		}
		return refused
	}}
	require.NoError(t, w.Submit(t.Context(), r))
	require.Equal(t, 2, runs)
	s.lost, r.Once = 1, true
	err := w.Submit(t.Context(), r)
	require.ErrorIs(t, err, store.ErrConflict)
	require.NotErrorIs(t, err, refused)
}

// A case that another transaction has locked for long is waited for once. Its request fails, those with it succeed, and further ones for the case fail
// without waiting, until the lock is free.
func TestALockedCaseHoldsUpOnlyItsOwnRequests(t *testing.T) {
	s := &fleetStore{newest: map[workitem.CaseID]int64{one: 1, two: 1}, locked: two}
	w := writer(t, s, new(int))
	var seen []int64
	wait, err := w.Ask(t.Context(), looks(one, &seen))
	require.NoError(t, err)
	waitLocked, err := w.Ask(t.Context(), looks(two, &seen))
	require.NoError(t, err)
	w.Start()
	require.NoError(t, wait())
	err = waitLocked()
	require.ErrorIs(t, err, store.ErrUnavailable)
	require.ErrorIs(t, err, fault.ErrCommit)
	require.Equal(t, []int64{1, 1, 1}, seen, "each once, and that of the other case again")
	require.True(t, s.waited)
	s.waited = false
	for _, once := range []bool{false, true} {
		r := looks(two, &seen)
		r.Once = once
		require.True(t, fault.Is(w.Submit(t.Context(), r)))
	}
	require.False(t, s.waited)
	require.Len(t, seen, 3, "their functions see nothing of the case")
	s.locked = workitem.CaseID{}
	locks := s.locks
	require.NoError(t, w.Submit(t.Context(), looks(two, &seen)))
	require.NoError(t, w.Submit(t.Context(), looks(two, &seen)))
	require.Equal(t, locks+1, s.locks, "once it is free, it is like others")
}

// A request of a batch that is done again may undo the transaction, too. Those behind it are done nevertheless.
func TestRequestsAfterOneThatAbortsARepeatedBatchRun(t *testing.T) {
	s := &fleetStore{newest: map[workitem.CaseID]int64{one: 1}}
	s.before = func(update int) {
		if update == 1 {
			s.newest[one]++
		}
	}
	w := writer(t, s, new(int))
	outcomes := make(chan error, 4)
	send := func(run func(tx *commit.Tx) error) {
		w.Send(&commit.Request{Run: run, Ended: func(err error) { outcomes <- err }})
	}
	runs := 0
	send(func(tx *commit.Tx) error {
		_, err := tx.Open(one)
		return err
	})
	send(func(*commit.Tx) error {
		if runs++; runs == 2 {
			return store.ErrUndone
		}
		return nil
	})
	for range 2 {
		send(func(*commit.Tx) error { return nil })
	}
	w.Start()
	failed := 0
	for range 4 {
		select {
		case err := <-outcomes:
			if err != nil {
				require.ErrorIs(t, err, store.ErrUndone)
				failed++
			}
		case <-time.After(time.Minute):
			t.Fatal("a request has no outcome")
		}
	}
	require.Equal(t, 1, failed)
	require.Equal(t, 3, s.updates)
}

// The keys of the requests that can be in a transaction are looked up with one query.
func TestKeysOfABatchAreLookedUpTogether(t *testing.T) {
	s := &fleetStore{}
	w := writer(t, s, new(int))
	keyed := func(key string) *commit.Request {
		return &commit.Request{Key: key, Run: func(*commit.Tx) error { return nil }}
	}
	var ends []func() error
	for _, key := range []string{"", "a", "b", "", "c"} {
		end, err := w.Ask(t.Context(), keyed(key))
		require.NoError(t, err)
		ends = append(ends, end)
	}
	w.Start()
	for _, end := range ends {
		require.NoError(t, end())
	}
	require.NoError(t, w.Submit(t.Context(), keyed("d")))
	require.Equal(t, [][]string{{"a", "b", "c"}}, s.prefetched, "a single one is looked up by its command")
}
