package state

import (
	"encoding/binary"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tasq-dev/tasq/workitem"
)

func numbered(n int) (id [16]byte) {
	binary.BigEndian.PutUint64(id[8:], uint64(n))
	return id
}

// A list holds what a plain slice would, and the copies that were taken of it before stay as they were.
func TestListKeepsItsSnapshots(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var items Items
		var jobs Jobs
		wantItems, wantJobs := map[workitem.ID]*workitem.Item{}, map[workitem.JobID]*Job{}
		type snapshot struct {
			items     Items
			jobs      Jobs
			wantItems []*workitem.Item
			wantJobs  []*Job
		}
		var taken []snapshot
		last := 0
		for range rapid.IntRange(1, 15).Draw(t, "commands") {
			taken = append(taken, snapshot{items, jobs, sortedItems(wantItems), sortedJobs(wantJobs)})
			items, jobs = items.snapshot(), jobs.snapshot()
			if rapid.IntRange(0, 9).Draw(t, "rollback") == 0 {
				s := taken[rapid.IntRange(0, len(taken)-1).Draw(t, "to")]
				items, jobs = s.items.snapshot(), s.jobs.snapshot()
				wantItems, wantJobs = map[workitem.ID]*workitem.Item{}, map[workitem.JobID]*Job{}
				for _, it := range s.wantItems {
					wantItems[it.ID] = it
				}
				for _, j := range s.wantJobs {
					wantJobs[j.ID] = j
				}
			}
			for range rapid.IntRange(0, 3).Draw(t, "bursts") {
				n := rapid.SampledFrom([]int{1, 2, partSize/2 + 3, 2 * partSize}).Draw(t, "opened")
				for range n {
					last += 2
					at := last
					if n == 1 {
						at = rapid.IntRange(1, last).Draw(t, "anywhere") // an id that is there, or lies between others
					}
					it := &workitem.Item{ID: numbered(at), Task: "t" + string(rune('0'+at%3)), State: workitem.State(1 + at%5)}
					items.put(it)
					wantItems[it.ID] = it
					if old := wantJobs[numbered(at)]; old == nil {
						j := &Job{ID: numbered(at), Item: numbered(at % 50)}
						jobs.put(j)
						wantJobs[j.ID] = j
					}
				}
			}
			for range rapid.IntRange(0, 10).Draw(t, "ended") {
				if j := wantJobs[numbered(rapid.IntRange(0, last).Draw(t, "which"))]; j != nil {
					jobs.remove(j)
					delete(wantJobs, j.ID)
				}
			}
			if rapid.IntRange(0, 9).Draw(t, "forget") == 0 {
				items.forget("t1")
				for id, it := range wantItems {
					if it.Task == "t1" && it.State.Final() {
						delete(wantItems, id)
					}
				}
			}
			agree(t, items, jobs, sortedItems(wantItems), sortedJobs(wantJobs))
		}
		for _, s := range taken {
			agree(t, s.items, s.jobs, s.wantItems, s.wantJobs)
		}
	})
}

func agree(t *rapid.T, items Items, jobs Jobs, wantItems []*workitem.Item, wantJobs []*Job) {
	require.True(t, slices.Equal(wantItems, items.Slice()), "items")
	require.True(t, slices.Equal(wantJobs, jobs.Slice()), "jobs")
	require.Equal(t, len(wantItems), items.Len())
	require.Equal(t, len(wantJobs), jobs.Len())
	tallies := map[string]workitem.Tally{}
	for _, it := range wantItems {
		if items.Get(it.ID) != it {
			t.Fatalf("item %s is not found", it.ID)
		}
		tally := tallies[it.Task]
		tally.Add(it.State, false)
		tallies[it.Task] = tally
	}
	for _, task := range []string{"t0", "t1", "t2"} {
		require.Equal(t, tallies[task], items.Tally(task, 0), task)
	}
	of := map[workitem.ID][]*Job{}
	for _, j := range wantJobs {
		if jobs.Get(j.ID) != j {
			t.Fatalf("job %s is not found", j.ID)
		}
		if !j.Item.IsZero() {
			of[j.Item] = append(of[j.Item], j)
		}
	}
	for n := range 50 {
		require.True(t, slices.Equal(of[numbered(n)], jobs.Of(numbered(n))), "jobs of item %d", n)
	}
}

func sortedItems(m map[workitem.ID]*workitem.Item) []*workitem.Item {
	list := make([]*workitem.Item, 0, len(m))
	for _, it := range m {
		list = append(list, it)
	}
	slices.SortFunc(list, func(a, b *workitem.Item) int { return slices.Compare(a.ID[:], b.ID[:]) })
	return list
}

func sortedJobs(m map[workitem.JobID]*Job) []*Job {
	list := make([]*Job, 0, len(m))
	for _, j := range m {
		list = append(list, j)
	}
	slices.SortFunc(list, func(a, b *Job) int { return slices.Compare(a.ID[:], b.ID[:]) })
	return list
}
