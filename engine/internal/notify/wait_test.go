package notify_test

import (
	"context"
	"errors"
	"iter"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/engine/internal/notify"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

var (
	errGone   = errors.New("gone")
	errClosed = errors.New("closed")
	one, two  = workitem.CaseID{1}, workitem.CaseID{2}
	incident  = &state.Noted{Case: one, Task: -1, Code: state.NoteIncident}
)

// tree is a tree of one case.
func tree(root workitem.CaseID, is state.CaseState) *state.Tree {
	return state.NewTree(&state.Case{ID: root, Root: root, State: is})
}

// running is a look at a root case that continues, and counts how often it is called.
func running(calls *int) notify.Look[*state.Case] {
	return func(context.Context) (*state.Case, bool, error) {
		*calls++
		return &state.Case{ID: one, Root: one}, false, nil
	}
}

// waiting starts a wait in a bubble of testing/synctest, and returns a function that returns whether it has ended, and with what.
func waiting[T any](wait func() (T, error)) func() (done bool, value T, err error) {
	var done bool
	var value T
	var err error
	go func() {
		value, err = wait()
		done = true
	}()
	return func() (bool, T, error) {
		synctest.Wait()
		return done, value, err
	}
}

func TestWaitEndsWithTheCase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, calls := notify.New(), 0
		got := waiting(func() (*state.Case, error) { return n.Wait(t.Context(), one, running(&calls)) })
		n.Committed(tree(one, state.CaseStarted), nil)
		n.Committed(tree(two, state.CaseCompleted), nil)
		done, _, _ := got()
		require.False(t, done, "neither a change of the case nor the end of another one ends the wait")
		n.Committed(tree(one, state.CaseFailed), nil)
		done, c, err := got()
		require.True(t, done)
		require.NoError(t, err)
		require.Equal(t, state.CaseFailed, c.State)
		require.Equal(t, 1, calls, "the end comes with the case: nothing is looked at again")
	})
}

// A case may end, and be removed, between the subscription and the first look, which then finds nothing.
func TestWaitForACaseThatIsRemovedBeforeTheLook(t *testing.T) {
	n := notify.New()
	c, err := n.Wait(t.Context(), one, func(context.Context) (*state.Case, bool, error) {
		n.Committed(tree(one, state.CaseCompleted), nil)
		return nil, false, errGone
	})
	require.NoError(t, err)
	require.Equal(t, state.CaseCompleted, c.State)
}

func TestWaitEndsWithTheLook(t *testing.T) {
	n := notify.New()
	c, err := n.Wait(t.Context(), one, func(context.Context) (*state.Case, bool, error) {
		return &state.Case{ID: one, State: state.CaseCanceled}, true, nil
	})
	require.NoError(t, err)
	require.Equal(t, state.CaseCanceled, c.State)

	_, err = n.Wait(t.Context(), one, func(context.Context) (*state.Case, bool, error) { return nil, false, errGone })
	require.ErrorIs(t, err, errGone)
}

// After an incident the case is looked at again; other notes and other cases do not cause that.
func TestWaitLooksAgainAfterAnIncident(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, calls := notify.New(), 0
		got := waiting(func() (*state.Case, error) {
			return n.Wait(t.Context(), one, func(context.Context) (*state.Case, bool, error) {
				calls++
				return &state.Case{ID: one, Root: one}, calls == 3, nil
			})
		})
		n.Committed(tree(one, state.CaseStarted), []state.Change{&state.Noted{Case: one, Code: "other"}})
		n.Committed(tree(two, state.CaseStarted), []state.Change{incident})
		synctest.Wait()
		require.Equal(t, 1, calls)
		n.Committed(tree(one, state.CaseStarted), []state.Change{&state.CaseBegun{Case: one}, incident})
		done, _, _ := got()
		require.False(t, done)
		require.Equal(t, 2, calls)
		n.Committed(tree(one, state.CaseStarted), []state.Change{incident})
		done, _, err := got()
		require.True(t, done)
		require.NoError(t, err)
	})
}

// An incident during a look is not missed, and one that was not looked at yet does not hide the end.
func TestWaitSeesAnIncidentDuringALook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, calls := notify.New(), 0
		got := waiting(func() (*state.Case, error) {
			return n.Wait(t.Context(), one, func(context.Context) (*state.Case, bool, error) {
				if calls++; calls == 1 {
					n.Committed(tree(one, state.CaseStarted), []state.Change{incident})
				}
				return nil, false, nil
			})
		})
		done, _, _ := got()
		require.False(t, done)
		require.Equal(t, 2, calls)
	})
	n := notify.New()
	c, err := n.Wait(t.Context(), one, func(context.Context) (*state.Case, bool, error) {
		n.Committed(tree(one, state.CaseStarted), []state.Change{incident})
		n.Committed(tree(one, state.CaseFailed), nil)
		return nil, false, nil
	})
	require.NoError(t, err)
	require.Equal(t, state.CaseFailed, c.State)
}

// Of several callers that wait for the end of one case, some give up, in any order; the others get it.
func TestOfManyWaitsSomeEndBefore(t *testing.T) {
	for _, gone := range [][]int{{}, {0}, {1}, {3}, {0, 1}, {3, 2}, {1, 2}, {0, 3}, {2, 0, 1, 3}} {
		synctest.Test(t, func(t *testing.T) {
			n := notify.New()
			var results []func() (bool, *state.Case, error)
			var cancels []context.CancelFunc
			for range 4 {
				ctx, cancel := context.WithCancel(t.Context())
				cancels = append(cancels, cancel)
				results = append(results, waiting(func() (*state.Case, error) { return n.Wait(ctx, one, running(new(int))) }))
				synctest.Wait()
			}
			for _, i := range gone {
				cancels[i]()
				synctest.Wait()
			}
			require.Equal(t, len(gone) == 4, notify.Subscriptions(n) == 0)
			n.Committed(tree(one, state.CaseCompleted), nil)
			for i, got := range results {
				done, c, err := got()
				require.True(t, done)
				if slices.Contains(gone, i) {
					require.ErrorIs(t, err, context.Canceled)
				} else {
					require.NoError(t, err)
					require.Equal(t, state.CaseCompleted, c.State)
				}
				cancels[i]()
			}
			require.Zero(t, notify.Subscriptions(n))
		})
	}
}

// The end of a child case is not announced: it is looked for after every change of its tree.
func TestWaitForAChildCase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, is := notify.New(), state.CaseStarted
		got := waiting(func() (*state.Case, error) {
			return n.Wait(t.Context(), two, func(context.Context) (*state.Case, bool, error) {
				return &state.Case{ID: two, Root: one, Parent: one, State: is}, is.Final(), nil
			})
		})
		n.Committed(tree(one, state.CaseStarted), nil)
		done, _, _ := got()
		require.False(t, done)
		is = state.CaseCompleted
		n.Committed(tree(one, state.CaseStarted), nil)
		done, c, err := got()
		require.True(t, done)
		require.NoError(t, err)
		require.Equal(t, state.CaseCompleted, c.State)
	})
}

// A change during a look is not missed, and many changes before the next look are one.
func TestUntilLooksAgainAfterAChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, calls := notify.New(), 0
		got := waiting(func() (int, error) {
			return notify.Until(t.Context(), n, one, func(context.Context) (int, bool, error) {
				if calls++; calls == 1 {
					n.Committed(tree(one, state.CaseStarted), nil)
					n.Committed(tree(one, state.CaseStarted), nil)
				}
				return calls, calls == 3, nil
			})
		})
		done, _, _ := got()
		require.False(t, done)
		require.Equal(t, 2, calls)
		n.Committed(tree(two, state.CaseStarted), nil)
		synctest.Wait()
		require.Equal(t, 2, calls, "another case changed")
		n.Committed(tree(one, state.CaseStarted), nil)
		done, value, err := got()
		require.True(t, done)
		require.NoError(t, err)
		require.Equal(t, 3, value)
	})
}

// entries is a journal of entries with the positions given, and more of them after each read.
type entries struct {
	seqs []int64
	err  error
}

func (j *entries) read(after int64) iter.Seq2[*store.Entry, error] {
	return func(yield func(*store.Entry, error) bool) {
		for _, seq := range j.seqs {
			if seq > after && !yield(&store.Entry{Seq: seq}, nil) {
				return
			}
		}
		if j.err != nil {
			yield(nil, j.err)
		}
	}
}

func TestFollow(t *testing.T) {
	for _, root := range []workitem.CaseID{one, {}} {
		synctest.Test(t, func(t *testing.T) {
			n, j := notify.New(), &entries{seqs: []int64{1, 2, 3}}
			var seen []int64
			got := waiting(func() (int, error) {
				for entry, err := range n.Follow(t.Context(), root, 1, j.read) {
					if err != nil {
						return len(seen), err
					}
					seen = append(seen, entry.Seq)
				}
				return len(seen), nil
			})
			done, _, _ := got()
			require.False(t, done)
			require.Equal(t, []int64{2, 3}, seen, "what comes after the position")
			j.seqs = append(j.seqs, 5, 8)
			n.Committed(tree(one, state.CaseStarted), nil)
			synctest.Wait()
			require.Equal(t, []int64{2, 3, 5, 8}, seen)
			j.seqs, j.err = append(j.seqs, 9), errGone
			n.Committed(tree(one, state.CaseStarted), nil)
			done, _, err := got()
			require.True(t, done)
			require.ErrorIs(t, err, errGone)
			require.Equal(t, []int64{2, 3, 5, 8, 9}, seen)
		})
	}
}

// Each way to wait, as a function that returns when the wait has ended.
var waits = map[string]func(context.Context, *notify.Notifier) error{
	"wait": func(ctx context.Context, n *notify.Notifier) error {
		_, err := n.Wait(ctx, one, running(new(int)))
		return err
	},
	"until": func(ctx context.Context, n *notify.Notifier) error {
		_, err := notify.Until(ctx, n, one, running(new(int)))
		return err
	},
	"follow": func(ctx context.Context, n *notify.Notifier) error {
		for _, err := range n.Follow(ctx, one, 0, new(entries).read) {
			return err
		}
		return nil
	},
}

func TestCloseEndsEveryWait(t *testing.T) {
	for name, wait := range waits {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := notify.New()
				got := waiting(func() (int, error) { return 0, wait(t.Context(), n) })
				done, _, _ := got()
				require.False(t, done)
				n.Close(errClosed)
				n.Close(errGone)
				n.Committed(tree(one, state.CaseCompleted), nil)
				done, _, err := got()
				require.True(t, done)
				later := wait(t.Context(), n)
				if name == "follow" {
					require.NoError(t, errors.Join(err, later), "what is followed ends, which is no error")
					return
				}
				require.Equal(t, []error{errClosed, errClosed}, []error{err, later}, "the first reason counts, also for later waits")
			})
		})
	}
}

// A wait ends with its context, and leaves nothing behind.
func TestAWaitEndsWithItsContext(t *testing.T) {
	for name, wait := range waits {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := notify.New()
				ctx, cancel := context.WithCancel(t.Context())
				got := waiting(func() (int, error) { return 0, wait(ctx, n) })
				synctest.Wait()
				require.Equal(t, 1, notify.Subscriptions(n))
				cancel()
				done, _, err := got()
				require.True(t, done)
				if name != "follow" {
					require.ErrorIs(t, err, context.Canceled)
				}
				require.Zero(t, notify.Subscriptions(n))
			})
		})
	}
}
