package dispatch

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/engine/internal/admission"
	"github.com/tasq-dev/tasq/engine/internal/quota"
	"github.com/tasq-dev/tasq/internal/virtual"
	"github.com/tasq-dev/tasq/limit"
	"github.com/tasq-dev/tasq/store"
)

// limitTable keeps rows of limits for two engines, 1 and 2.
type limitTable struct {
	rows   map[store.LimitKey]store.LimitRow
	now    int64
	reads  int
	read   func() // called after rows were read and before they are written; may be nil
	failed error  // of what is written next
}

func (l *limitTable) ReadLimits(_ context.Context, keys []store.LimitKey) (store.LimitView, error) {
	l.reads++
	view := store.LimitView{Self: 1, Live: []int64{1, 2}, Now: l.now}
	for _, k := range keys {
		row := l.rows[k]
		row.LimitKey = k
		view.Rows = append(view.Rows, row)
	}
	if f := l.read; f != nil {
		l.read = nil
		f()
	}
	return view, nil
}

func (l *limitTable) WriteLimits(_ context.Context, rows []store.LimitRow, _ int64) (written []store.LimitKey, err error) {
	if l.failed != nil {
		return nil, l.failed
	}
	for _, row := range rows {
		if l.rows[row.LimitKey].Version == row.Version {
			row.Version++
			l.rows[row.LimitKey] = row
			written = append(written, row.LimitKey)
		}
	}
	return written, nil
}

func newSharedRows() (*sharedRows, *limitTable, *virtual.Clock) {
	table, clock := &limitTable{rows: make(map[store.LimitKey]store.LimitRow)}, virtual.NewClock()
	return &sharedRows{rows: table, clock: clock, started: clock.Now()}, table, clock
}

func orderOf(l limit.Limit, least, want int64) admission.Order[entry] {
	return admission.Order[entry]{Limit: l.Name, Order: quota.Order{Limit: l, Least: least, Want: want}}
}

// Another engine takes slots between this one's look at the row and its writing: what is left counts, and the other rows are decided
// once.
func TestARowThatAnotherEngineHasWrittenIsDecidedAgain(t *testing.T) {
	r, table, clock := newSharedRows()
	table.now = clock.Now().UnixNano()
	gpus, cpus := limit.Resource("gpus", 4), limit.Resource("cpus", 4)
	table.read = func() {
		key := store.LimitKey{Limit: gpus.Name}
		state, until, a, err := quota.Decide(nil, quota.Order{Limit: gpus, Least: 3, Want: 3}, quota.Situation{Self: 2, Live: []int64{1, 2}, Now: table.now})
		require.NoError(t, err)
		require.EqualValues(t, 3, a.Grant.N)
		table.rows[key] = store.LimitRow{LimitKey: key, State: state, Until: until, Version: 1}
	}
	answers, err := r.decide(t.Context(), []admission.Order[entry]{orderOf(gpus, 1, 2), orderOf(cpus, 1, 2)})
	require.NoError(t, err)
	require.EqualValues(t, 1, answers[0].Grant.N, "of four the other engine has three")
	require.EqualValues(t, 4, answers[0].Taken)
	require.EqualValues(t, 2, answers[1].Grant.N)
	require.EqualValues(t, 2, answers[1].Taken, "it was decided once")
	require.Equal(t, 2, table.reads)
}

// A store without a clock of its own counts by the engine's, whose wall time may be set.
func TestRowsOfAStoreWithoutAClock(t *testing.T) {
	r, _, clock := newSharedRows()
	calls := limit.Rate("calls", 2, time.Minute, limit.FixedWindow)
	ask := func() quota.Answer {
		answers, err := r.decide(t.Context(), []admission.Order[entry]{orderOf(calls, 2, 2)})
		require.NoError(t, err)
		return answers[0]
	}
	require.EqualValues(t, 2, ask().Grant.N)
	refused := ask()
	require.Zero(t, refused.Grant.N)
	require.Positive(t, refused.Wait)
	clock.Set(clock.Now().Add(refused.Wait))
	require.EqualValues(t, 2, ask().Grant.N)
}

// If the store fails, nothing is given, also not of the rows that it may have written: an engine that used it could use it twice.
func TestNothingIsGivenByAStoreThatFails(t *testing.T) {
	r, table, clock := newSharedRows()
	table.now, table.failed = clock.Now().UnixNano(), errors.New("the disk is full")
	answers, err := r.decide(t.Context(), []admission.Order[entry]{orderOf(limit.Resource("gpus", 4), 1, 2)})
	require.ErrorIs(t, err, table.failed)
	require.Equal(t, []quota.Answer{{}}, answers)
}
