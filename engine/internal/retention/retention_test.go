package retention_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/engine/internal/retention"
	"github.com/tasq-dev/tasq/internal/virtual"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

var (
	errDisk    = errors.New("disk full")
	errRefused = errors.New("refused")
)

// cases is a store of root cases that have ended, and the engine that a cleaner works for.
type cases struct {
	testing.TB
	clock   *virtual.Clock
	cleaner *retention.Cleaner
	log     bytes.Buffer

	mu      sync.Mutex
	kept    map[workitem.CaseID]time.Time // until when
	must    map[workitem.CaseID]bool      // those that may not be removed yet
	refused map[workitem.CaseID]bool      // those that cannot be removed
	pages   []int                         // how many each transaction was to remove
	faults  []error                       // of the next calls of Remove
	onFind  func()
	active  int
	done    sync.Cond // signaled when active changes
}

func newCases(t testing.TB) *cases {
	s := &cases{TB: t, clock: virtual.NewClock(), kept: make(map[workitem.CaseID]time.Time),
		must: make(map[workitem.CaseID]bool), refused: make(map[workitem.CaseID]bool)}
	s.done.L = &s.mu
	s.cleaner = retention.New(retention.Options{
		Cases: s,
		Now:   s.clock.Now,
		Alarm: func(at time.Time, f func()) func() {
			stop := s.clock.AfterFunc(at.Sub(s.clock.Now()), f)
			return func() { stop() }
		},
		Retry: func(ctx context.Context, f func() error) error {
			for {
				if err := f(); !errors.Is(err, errDisk) || ctx.Err() != nil {
					return errors.Join(err, ctx.Err())
				}
			}
		},
		Active: func(delta int) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.active += delta
			s.done.Broadcast()
		},
		Logger: slog.New(slog.NewTextHandler(&s.log, nil)),
	})
	return s
}

func id(n int) workitem.CaseID { return workitem.CaseID{byte(n >> 8), byte(n)} }

// end adds a case that has ended and is kept for a while.
func (s *cases) end(n int, keep time.Duration) {
	until := s.clock.Now().Add(keep)
	s.mu.Lock()
	s.kept[id(n)] = until
	s.mu.Unlock()
	s.cleaner.Committed(ended(n, until), []state.Change{&state.CaseEnded{Case: id(n)}})
}

func ended(n int, until time.Time) *state.Tree {
	return state.NewTree(&state.Case{ID: id(n), Root: id(n), State: state.CaseCompleted, KeepUntil: until})
}

// left waits for the end of the pass, and lists the cases that are there.
func (s *cases) left() []int {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.active > 0 {
		s.done.Wait()
	}
	left := []int{}
	for c := range s.kept {
		left = append(left, int(c[0])<<8+int(c[1]))
	}
	slices.Sort(left)
	return left
}

// after moves the clock, and is left.
func (s *cases) after(d time.Duration) []int {
	s.clock.Set(s.clock.Now().Add(d))
	return s.left()
}

// Find implements retention.Cases.
func (s *cases) Find(_ context.Context, f store.CaseFilter) ([]*state.Case, error) {
	if s.onFind != nil {
		s.onFind()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []*state.Case
	for c, until := range s.kept {
		if !until.After(f.Removable) {
			found = append(found, &state.Case{ID: c, KeepUntil: until})
		}
	}
	slices.SortFunc(found, func(a, b *state.Case) int {
		return cmp.Or(a.KeepUntil.Compare(b.KeepUntil), bytes.Compare(a.ID[:], b.ID[:]))
	})
	if i := slices.IndexFunc(found, func(c *state.Case) bool { return c.ID.String() == f.After }); f.After != "" {
		found = found[i+1:]
	}
	return found[:min(len(found), f.Limit)], nil
}

// Remove implements retention.Cases.
func (s *cases) Remove(_ context.Context, ids []workitem.CaseID) (left []workitem.CaseID, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pages = append(s.pages, len(ids))
	if len(s.faults) > 0 {
		err, s.faults = s.faults[0], s.faults[1:]
		return nil, err
	}
	for _, c := range ids {
		if s.refused[c] {
			return nil, errRefused
		}
	}
	for _, c := range ids {
		if s.must[c] {
			left = append(left, c)
		} else {
			delete(s.kept, c)
		}
	}
	return left, nil
}

// Unavailable implements retention.Cases.
func (s *cases) Unavailable(err error) bool { return errors.Is(err, errDisk) }

func TestCasesAreRemovedWhenTheirTimeHasPassed(t *testing.T) {
	s := newCases(t)
	s.end(1, 0)
	require.Equal(t, []int{1}, s.left(), "nothing is removed before the start")
	s.end(2, time.Hour)
	s.cleaner.Start(t.Context())
	require.Equal(t, []int{2}, s.left())
	s.end(3, 3*time.Hour)
	s.end(4, 2*time.Hour)
	s.end(5, time.Minute)
	require.Equal(t, []int{2, 3, 4, 5}, s.after(time.Minute-1))
	require.Equal(t, []int{2, 3, 4}, s.after(1), "the earliest time counts, whenever it comes up")
	require.Equal(t, []int{2, 3, 4}, s.after(time.Hour-time.Minute-time.Second))
	require.Equal(t, []int{3, 4}, s.after(time.Second))
	require.Equal(t, []int{3}, s.after(time.Hour))
	require.Empty(t, s.after(time.Hour))
	require.Equal(t, []int{1, 1, 1, 1, 1}, s.pages, "nothing runs while nothing is due")
	require.Empty(t, s.log.String())
}

// Only the end of a root case that is kept for a time, and of its last job, are reasons to look.
func TestRemovalIsScheduledByEndOfCaseAndLastJob(t *testing.T) {
	s := newCases(t)
	s.cleaner.Start(t.Context())
	require.Empty(t, s.left())
	now := s.clock.Now()
	finds := 0
	s.onFind = func() { finds++ }
	ends := []state.Change{&state.CaseEnded{Case: id(1)}}
	passes := func(tree *state.Tree, changes []state.Change) bool {
		finds = 0
		s.cleaner.Committed(tree, changes)
		s.left()
		return finds > 0
	}
	require.True(t, passes(ended(1, now), ends))
	require.True(t, passes(ended(1, now), []state.Change{&state.JobMoved{Case: id(1), To: state.JobDone}}))
	require.False(t, passes(ended(1, now), []state.Change{&state.JobMoved{Case: id(1), To: state.JobPending}}))
	require.False(t, passes(ended(1, now), []state.Change{&state.CaseEnded{Case: id(2)}}), "a child case")
	require.False(t, passes(ended(1, time.Time{}), ends), "it is kept for all time")
	require.False(t, passes(state.NewTree(&state.Case{ID: id(1), KeepUntil: now}), ends), "it goes on")
	removed := ended(1, now)
	require.NoError(t, removed.Apply(&state.CaseRemoved{Case: id(1)}))
	require.False(t, passes(removed, ends))
}

// Many cases are removed in pages. Those that stay do not stop the pages after them.
func TestManyCasesAreRemovedInPages(t *testing.T) {
	s := newCases(t)
	const n = 2*retention.PageSize + 7
	for i := range n {
		s.end(i, 0)
	}
	s.must[id(3)], s.must[id(n-1)] = true, true
	s.cleaner.Start(t.Context())
	require.Equal(t, []int{3, n - 1}, s.left())
	require.Equal(t, []int{retention.PageSize, retention.PageSize, 7}, s.pages)
	require.Equal(t, []int{3, n - 1}, s.after(time.Second-1), "what has to stay is not tried all the time")
	s.must = nil
	require.Empty(t, s.after(1))
}

// A case that cannot be removed is logged, and tried again after a while. It keeps no other one.
func TestACaseThatCannotBeRemoved(t *testing.T) {
	s := newCases(t)
	for i := range 5 {
		s.end(i, 0)
	}
	s.refused[id(2)], s.must[id(3)] = true, true
	s.cleaner.Start(t.Context())
	require.Equal(t, []int{2, 3}, s.left())
	require.Equal(t, []int{5, 1, 1, 1, 1, 1}, s.pages)
	require.Contains(t, s.log.String(), "cases could not be removed")
	require.Contains(t, s.log.String(), errRefused.Error())
	s.refused, s.must = nil, nil
	require.Equal(t, []int{2, 3}, s.after(retention.RetryAfter-time.Second))
	require.Empty(t, s.after(time.Second))
}

// A failure of the store says nothing of the cases: the page is repeated as a whole.
func TestAFailureOfTheStoreIsRetried(t *testing.T) {
	s := newCases(t)
	s.end(1, 0)
	s.end(2, 0)
	s.faults = []error{errDisk, errDisk}
	s.cleaner.Start(t.Context())
	require.Empty(t, s.left())
	require.Equal(t, []int{2, 2, 2}, s.pages)

	s.end(3, time.Hour)
	s.end(4, time.Hour)
	s.pages, s.faults = nil, []error{errRefused, errDisk}
	require.Empty(t, s.after(time.Hour))
	require.Equal(t, []int{2, 1, 2}, s.pages, "also while the cases of a page are tried one by one")
	require.Empty(t, s.log.String())
}

// A case that becomes due during a pass is removed by the next one, which follows at once.
func TestACaseThatIsDueDuringAPass(t *testing.T) {
	s := newCases(t)
	finds := 0
	s.onFind = func() {
		if finds++; finds == 2 { // the look for what will be due, after everything was removed
			s.onFind = nil
			s.end(2, 0)
		}
	}
	s.end(1, 0)
	s.cleaner.Start(t.Context())
	require.Empty(t, s.left())
}

// Cases that end during a pass and are kept for a while are removed in time, and begin no other pass: a busy engine would look all the time.
func TestCasesThatEndDuringAPass(t *testing.T) {
	s := newCases(t)
	finds := 0
	s.onFind = func() {
		if finds++; finds < 10 {
			s.end(finds, time.Hour)
		}
	}
	s.cleaner.Start(t.Context())
	require.Equal(t, []int{1, 2}, s.left())
	require.Equal(t, 2, finds)
	s.onFind = nil
	require.Equal(t, []int{1, 2}, s.after(time.Hour-1))
	require.Empty(t, s.after(1))
}

// The one that ends after the look for what will be due is removed in time.
func TestACaseThatAPassDoesNotSee(t *testing.T) {
	s := newCases(t)
	s.end(1, 2*time.Hour)
	finds := 0
	s.onFind = func() {
		if finds++; finds == 2 {
			s.onFind = nil
			s.end(2, time.Hour)
			s.mu.Lock()
			delete(s.kept, id(2)) // the pass does not find it
			s.mu.Unlock()
		}
	}
	s.cleaner.Start(t.Context())
	require.Equal(t, []int{1}, s.left())
	s.mu.Lock()
	s.kept[id(2)] = s.clock.Now().Add(time.Hour)
	s.mu.Unlock()
	require.Equal(t, []int{1}, s.after(time.Hour))
	require.Empty(t, s.after(time.Hour))
}

func TestACleanerThatIsStopped(t *testing.T) {
	s := newCases(t)
	s.cleaner.Start(t.Context())
	s.end(1, time.Hour)
	require.Equal(t, []int{1}, s.left())
	s.cleaner.Stop()
	require.Equal(t, []int{1}, s.after(2*time.Hour))
	s.end(2, 0)
	require.Equal(t, []int{1, 2}, s.left())
	s.cleaner.Wait()
}

// A pass whose context ends leaves the rest, and arranges for no other.
func TestTheEngineClosesDuringAPass(t *testing.T) {
	s := newCases(t)
	ctx, cancel := context.WithCancel(t.Context())
	s.end(1, 0)
	s.faults = []error{errRefused}
	s.onFind = cancel
	s.cleaner.Start(ctx)
	s.cleaner.Wait()
	require.Equal(t, []int{1}, s.left())
	require.Equal(t, []int{1}, s.pages)
	require.Equal(t, []int{1}, s.after(time.Hour))
	require.Empty(t, s.log.String())
}
