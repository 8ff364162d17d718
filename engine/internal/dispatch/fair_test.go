package dispatch

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tasq-dev/tasq/workitem"
)

// waits is a job of a key in a heap, as far as the test knows it.
type waits struct {
	n     *entry
	first bool           // no job of its key waited as it came
	since map[string]int // how many jobs of each key have begun since it came, and since the last one of its own key began
}

// However jobs come, are canceled and begin: a key has at most one job of each other key begin between two of its own,
// at most two before its first, and its jobs in their order.
func TestKeysTakeTurns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := &rotation{id: 1, keys: make(map[string]*sharer)}
		var heap entries
		waiting := make(map[string][]*waits)
		came := int64(0)
		for range rapid.IntRange(1, 60).Draw(t, "events") {
			key := rapid.SampledFrom([]string{"a", "b", "c", "d", "e"}).Draw(t, "key")
			switch rapid.SampledFrom([]string{"come", "come", "begin", "begin", "cancel"}).Draw(t, "event") {
			case "come":
				for range rapid.SampledFrom([]int{1, 1, 1, 20}).Draw(t, "jobs") {
					came++
					n := entry{due: came, job: workitem.JobID{byte(came >> 8), byte(came)}, turn: &turn{key: key}}
					r.join(n.turn, n.due)
					heap.push(n, byPriority)
					waiting[key] = append(waiting[key], &waits{n: &n, first: len(waiting[key]) == 0, since: make(map[string]int)})
				}
			case "begin":
				if len(heap) > 0 {
					beginOne(t, &heap, waiting)
				}
			case "cancel": // all of a key: then it has no claim left that a newcomer has not
				for _, w := range waiting[key] {
					w.n.turn.leave()
				}
				delete(waiting, key)
				kept := entries{}
				for _, n := range heap {
					if n.turn.key != key {
						kept.push(n, byPriority)
					}
				}
				heap = kept
			}
		}
		for len(heap) > 0 {
			beginOne(t, &heap, waiting)
		}
		if len(r.keys) > 0 {
			t.Fatalf("keys without jobs are kept: %v", r.keys)
		}
		if len(r.opened) > int(came) {
			t.Fatalf("%d rounds are kept of %d jobs", len(r.opened), came)
		}
	})
}

// beginOne has the next job begin, and looks whether its turn had come.
func beginOne(t *rapid.T, heap *entries, waiting map[string][]*waits) {
	n := heap.pop(byPriority)
	n.turn.recordStart()
	n.turn.leave()
	own := waiting[n.turn.key]
	if own[0].n.job != n.job {
		t.Fatalf("job %v of %s began before %v", n.job, n.turn.key, own[0].n.job)
	}
	most := 1
	if own[0].first {
		most = 2
	}
	for key, jobs := range own[0].since {
		if jobs > most {
			t.Fatalf("%d jobs of %s began while %s waited", jobs, key, n.turn.key)
		}
	}
	waiting[n.turn.key] = own[1:]
	if len(own) > 1 {
		clear(own[1].since)
		own[1].first = false
	}
	for key, list := range waiting {
		if key != n.turn.key && len(list) > 0 {
			list[0].since[n.turn.key]++
		}
	}
}

// Rounds of two queues are compared by their times: the line of a limit does not starve the queue that has had more
// rounds.
func TestRoundsOfQueuesAreComparedByTime(t *testing.T) {
	old, fresh := &rotation{id: 1, round: 1000, keys: make(map[string]*sharer)}, &rotation{id: 2, keys: make(map[string]*sharer)}
	at := func(r *rotation, key string, due int64) *entry {
		n := &entry{due: due, turn: &turn{key: key}}
		r.join(n.turn, due)
		return n
	}
	a, b, c := at(old, "a", 10), at(fresh, "b", 20), at(old, "a", 30)
	plain := &entry{due: 25}
	require.True(t, byPriority(a, b))
	require.True(t, byPriority(b, plain))
	require.True(t, byPriority(plain, c))
	require.False(t, byPriority(c, a))
}

// Jobs whose key is not known share rounds, so that a key among many of them is found soon.
func TestUnreadJobsShareRounds(t *testing.T) {
	r := &rotation{id: 1, keys: make(map[string]*sharer)}
	for i := range 3 * readRound {
		unread := new(turn)
		r.joinUnread(unread, int64(i))
		require.Equal(t, int64(1+i/readRound), unread.round, i)
	}
	known := &turn{key: "a"}
	r.join(known, 1)
	require.Equal(t, int64(1), known.round)
	require.True(t, byPriority(&entry{due: 9, turn: &turn{rotation: r, round: 1, since: known.since}}, &entry{due: 1, turn: known}), "what is not read goes first")
}

// A queue without keys pays nothing for them.
func TestFairnessCostsNothingWithoutKeys(t *testing.T) {
	s := new(scheduler)
	n := entry{queue: &jobQueue{}, job: workitem.JobID{1}, unread: true}
	require.Zero(t, testing.AllocsPerRun(100, func() {
		n.turn = s.fair.turnOf(nil, nil, n.queue) // reads no case
		s.fair.assign(&n)
		s.fair.leave(n.job)
		n.turn.recordStart()
	}))
	require.Nil(t, n.turn)
}
