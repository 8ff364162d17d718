package sqlite

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workitem"
)

// The newest items of a queue are found in the order of all items if it has many, and by their sorted ids if it has few; both give the same pages.
func TestNewestItemsOfAQueue(t *testing.T) {
	s, err := Memory().Open(t.Context(), store.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	c := s.(*Store).w
	require.NoError(t, c.run("INSERT INTO cases (id, root, parent_task, generation, number, workflow, version, fingerprint, created, state, begun, marking, tasks, last_seq) "+
		"VALUES ('00000000-0000-7000-8000-000000000001', '00000000-0000-7000-8000-000000000001', '', 0, 1, 'w', '', 'f', 0, 'completed', 1, '{}', '{}', 1)"))
	add := func(queue, state string, from, n int) {
		require.NoError(t, c.run("WITH RECURSIVE a(n) AS (SELECT CAST(? AS INTEGER) UNION ALL SELECT n + 1 FROM a LIMIT +?) INSERT INTO work_items (id, case_id, task, generation, number, attempt, created, "+
			"queue, priority, state, actor) SELECT printf('00000000-0000-7000-8000-%012x', n), '00000000-0000-7000-8000-000000000001', 'a', 0, 1, 1, 0, ?, n % 3, ?, '' FROM a", int64(from), int64(n), queue, state))
	}
	add("many", "completed", 1, commonQueue+1)
	add("few", "completed", 100_000, 120)
	add("live", "started", 200_000, rareItems+1)
	add("", "completed", 300_000, 20)
	for queue, last := range map[string]int{"many": commonQueue + 1, "few": 100_119, "live": 200_000 + rareItems, "": 300_019, "none": 0} {
		states := []workitem.State(nil)
		if queue == "live" {
			states = []workitem.State{workitem.Initialized, workitem.Started}
		}
		f := store.ItemFilter{Queue: &queue, States: states, Page: store.Page{Desc: true, Limit: 7}}
		for page := range 3 {
			found, err := queryItems(c, f)
			require.NoError(t, err)
			for i, it := range found {
				require.Equal(t, fmt.Sprintf("00000000-0000-7000-8000-%012x", last-7*page-i), it.ID.String(), "page %d of %q", page, queue)
				f.After = it.ID.String()
			}
			require.Equal(t, queue == "none", len(found) == 0)
		}
		w := newConditions()
		require.NoError(t, w.newestOfQueue(c, f, queue == "live"))
		require.Equal(t, queue == "few", len(w.Args) == 3, "ids alone are sorted in %q", queue)
		require.Equal(t, queue == "many" || queue == "live", w.Where() == " WHERE +i.queue = ?", "all items are read in %q", queue)
	}
	few := "few"
	require.NoError(t, c.run("UPDATE work_items SET state = 'started', actor = 'ann' WHERE id = printf('00000000-0000-7000-8000-%012x', 100000)"))
	held, err := queryItems(c, store.ItemFilter{Queue: &few, Holder: "ann", Page: store.Page{Desc: true, Limit: 7}})
	require.NoError(t, err)
	require.Len(t, held, 1, "the oldest item of the queue")
	require.NoError(t, c.run("DELETE FROM work_items"))
	require.NoError(t, c.run("DELETE FROM cases"))
}
