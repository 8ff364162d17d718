package storetest

import (
	"context"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// EndedEarlier checks that opening a store counts the cases that ended before the store counted cases, and the waits of items that ended
// before it counted those. edit takes SQL to the database behind the store, which is closed then; prefix is that of its tables, columns and values
// are those of each work item that only this store has, and forget is the SQL by which the store no longer knows that it has counted.
func EndedEarlier(t *testing.T, o store.Opener, prefix, columns, values, forget string, edit func(sql string)) {
	ctx := context.Background()
	s, err := o.Open(ctx, store.Options{})
	require.NoError(t, err)
	require.NoError(t, s.Close())
	var cases, items []string
	ended, waited := make(store.EndedCounts), make(store.EndedCounts)
	for i, us := range durations() {
		for j, as := range []state.CaseState{state.CaseCompleted, state.CaseFailed, state.CaseCanceled} {
			c := &state.Case{Workflow: "article", State: as, Created: epoch.Add(time.Duration(i) * 20 * time.Minute)}
			c.Ended = c.Created.Add(time.Duration(us) * time.Microsecond)
			ended.AddCase(c, 1)
			id := fmt.Sprintf("'01900000-0000-7000-8000-%012d'", 10*i+j)
			cases = append(cases, fmt.Sprintf("(%s, %[1]s, '', 0, 1, '%s', '1', 'fp', %d, '%s', true, '{}', '{}', %d, 1, false, 0)",
				id, c.Workflow, state.Micros(c.Created), as, state.Micros(c.Ended)))
			it := &workitem.Item{Task: "draft", State: []workitem.State{workitem.Completed, workitem.Failed, workitem.Canceled}[j], Created: c.Created,
				Started: c.Ended, Ended: c.Ended.Add(time.Hour)}
			due := "NULL"
			if i%2 == 0 {
				it.Created, it.Due = it.Created.Add(-time.Hour), it.Created
				due = strconv.FormatInt(state.Micros(it.Due), 10)
			}
			waited.AddItem(c.Workflow, it, 1)
			items = append(items, fmt.Sprintf("(%s, %[1]s, 'draft', 1, 1, 1, %d, %s, '', 0, '%s', '', %d, %d%s)",
				id, state.Micros(it.Created), due, it.State, state.Micros(it.Started), state.Micros(it.Ended), strings.ReplaceAll(values, "ID", id)))
		}
	}
	maps.DeleteFunc(waited, func(e store.Ended, _ int64) bool { return e.State != workitem.Started }) // items were counted from the beginning
	edit(forget + "; INSERT INTO " + prefix + "cases (id, root, parent_task, generation, number, workflow, version, fingerprint, created, state, begun, marking, " +
		"tasks, ended, last_seq, key_unique, priority) VALUES " + strings.Join(cases, ", ") + "; INSERT INTO " + prefix + "work_items (id, case_id, task, generation, " +
		"number, attempt, created, due, queue, priority, state, actor, started, ended" + columns + ") VALUES " + strings.Join(items, ", "))
	s, err = o.Open(ctx, store.Options{})
	require.NoError(t, err)
	require.NoError(t, s.View(ctx, func(r store.Reader) error {
		require.Equal(t, ended, endedBy(ctx, t, r, store.RateFilter{Hourly: true, Cases: true}))
		require.Equal(t, waited, endedBy(ctx, t, r, store.RateFilter{Hourly: true}))
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
