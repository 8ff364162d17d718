package storetest

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
)

// EndedEarlier checks that opening a store counts the cases that ended before the store counted cases. edit takes SQL to the database behind the
// store, which is closed then; the table of cases is named, and forget is the SQL by which the store no longer knows that it has counted.
func EndedEarlier(t *testing.T, o store.Opener, table, forget string, edit func(sql string)) {
	ctx := context.Background()
	s, err := o.Open(ctx, store.Options{})
	require.NoError(t, err)
	require.NoError(t, s.Close())
	var rows []string
	want := make(map[store.Ended]int64)
	for i, us := range durations() {
		for j, as := range []state.CaseState{state.CaseCompleted, state.CaseFailed, state.CaseCanceled} {
			c := &state.Case{Workflow: "article", State: as, Created: epoch.Add(time.Duration(i) * 20 * time.Minute)}
			c.Ended = c.Created.Add(time.Duration(us) * time.Microsecond)
			if e, ok := store.EndedCase(c); ok {
				want[e]++
			}
			id := fmt.Sprintf("'01900000-0000-7000-8000-%012d'", 10*i+j)
			rows = append(rows, fmt.Sprintf("(%s, %[1]s, '', 0, 1, '%s', '1', 'fp', %d, '%s', true, '{}', '{}', %d, 1, false, 0)",
				id, c.Workflow, state.Micros(c.Created), as, state.Micros(c.Ended)))
		}
	}
	edit(forget + "; INSERT INTO " + table + " (id, root, parent_task, generation, number, workflow, version, fingerprint, created, state, begun, marking, " +
		"tasks, ended, last_seq, key_unique, priority) VALUES " + strings.Join(rows, ", "))
	s, err = o.Open(ctx, store.Options{})
	require.NoError(t, err)
	require.NoError(t, s.View(ctx, func(r store.Reader) error {
		require.Equal(t, want, endedBy(ctx, t, r, store.RateFilter{Hourly: true, Cases: true}))
		return nil
	}))
	require.NoError(t, s.Close())
}

// durations are microseconds at and beside each power of two, up to some years, and less than none.
func durations() []int64 {
	all := []int64{-7}
	for bit := range 48 {
		all = append(all, 1<<bit-1, 1<<bit, 1<<bit+1<<bit/3)
	}
	return all
}
