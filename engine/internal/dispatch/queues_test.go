package dispatch

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// An operator can change the number of workers of a queue up to the largest one of the configuration, but not start a queue that another
// program works.
func TestTheNumberOfWorkersOfAQueue(t *testing.T) {
	set := func(n int) map[string]store.QueueValue {
		return map[string]store.QueueValue{"mail": {Workers: &store.WorkersValue{N: n}}}
	}
	for name, c := range map[string]struct {
		defaults int
		defined  map[string]int
		set      map[string]store.QueueValue
		want     int
	}{
		"the default":                 {8, nil, nil, 8},
		"configured":                  {8, map[string]int{"mail": 3}, nil, 3},
		"configured above the others": {8, map[string]int{"mail": 20}, nil, 20},
		"paused here":                 {8, map[string]int{"mail": -1}, nil, 0},
		"no jobs":                     {-1, nil, nil, -1},
		"lowered":                     {8, map[string]int{"mail": 3}, set(1), 1},
		"raised to the default":       {8, map[string]int{"mail": 3}, set(8), 8},
		"raised beyond it":            {8, map[string]int{"mail": 3}, set(9), 8},
		"raised to its own":           {8, map[string]int{"mail": 20}, set(99), 20},
		"set where it is paused here": {8, map[string]int{"mail": 0}, set(5), 0},
		"set where there are no jobs": {-1, nil, set(5), -1},
	} {
		t.Run(name, func(t *testing.T) {
			l := newQueues(&Options{Workers: c.defaults, Queues: c.defined}, nil)
			l.set(c.set)
			require.Equal(t, c.want, l.of("mail").limit)
		})
		t.Run(name+", of a queue that exists", func(t *testing.T) {
			l := newQueues(&Options{Workers: c.defaults, Queues: c.defined}, nil)
			q := l.of("mail")
			l.set(c.set)
			require.Equal(t, c.want, q.limit)
			l.set(nil)
			require.Equal(t, l.configured("mail"), q.limit)
		})
	}
}

// Of the queues with a free worker, the one whose first job is the most urgent is next, until the bound of all queues is reached.
func TestTheMostUrgentQueueIsNext(t *testing.T) {
	l := newQueues(&Options{Workers: 1, MaxRunning: 2}, nil)
	add := func(queue string, priority int32) *jobQueue {
		q := l.of(queue)
		q.ready.push(entry{queue: q, priority: priority, job: workitem.JobID{byte(priority)}}, byPriority)
		return q
	}
	low, high, middle := add("low", 1), add("high", 3), add("middle", 2)
	require.Same(t, high, l.mostUrgent(nil, 0))
	require.Same(t, middle, l.mostUrgent(map[*jobQueue]bool{high: true}, 0))
	l.occupy(high) // its only worker
	require.Same(t, middle, l.mostUrgent(nil, 0))
	require.False(t, l.full())
	l.occupy(low)
	require.True(t, l.full())
	l.free(high)
	require.False(t, l.full())
	require.Same(t, high, l.mostUrgent(nil, 0))
}

func TestAPausedKeyPausesOnlyItsJobs(t *testing.T) {
	l := newQueues(&Options{Workers: 1}, map[string]bool{"calls": true})
	was := l.set(map[string]store.QueueValue{"calls": {Keys: map[string]store.Decision{"ada": {}}}, "mail": {Paused: true}})
	require.Empty(t, was)
	of := func(queue, key string) *entry { return &entry{queue: l.of(queue), turn: &turn{key: key}} }
	require.True(t, l.of("calls").fair)
	require.False(t, l.of("mail").fair)
	require.True(t, l.isPaused(of("calls", "ada")))
	require.False(t, l.isPaused(of("calls", "bob")))
	require.False(t, l.isPaused(&entry{queue: l.of("calls")}), "its key is not known yet")
	require.True(t, l.isPaused(of("mail", "bob")))
	require.False(t, l.keyPaused(of("mail", "bob")))
	require.Contains(t, l.set(nil)["calls"], "ada")
	require.False(t, l.isPaused(of("calls", "ada")))
}

// Reservations and waiting jobs share a bound. A start that finds no room can wait until there is some.
func TestStartsReserveRoomInABoundedQueue(t *testing.T) {
	b, q, free := newPendingBounds(map[string]int{"mail": 2}), &jobQueue{name: "mail"}, &jobQueue{name: "other"}
	job := func(id byte, s state.JobState) *state.Job { return &state.Job{ID: workitem.JobID{id}, State: s} }
	reserve := func() <-chan struct{} {
		room, err := b.reserve(q)
		if err != nil {
			require.Equal(t, &workflow.FullError{Queue: "mail", Pending: 2, Max: 2}, err)
		}
		return room
	}
	require.Nil(t, reserve())
	b.count(job(1, state.JobPending), q)
	b.count(job(1, state.JobPending), q) // put back after it was read
	b.count(job(2, state.JobWaiting), q) // of a suspended function
	b.settle(q, 1)
	require.Equal(t, 1, q.pending)
	require.Nil(t, reserve())
	first, second := reserve(), reserve()
	require.NotNil(t, first)
	require.Equal(t, first, second)
	b.uncount(workitem.JobID{2}) // was not counted
	requireOpen(t, first)
	b.uncount(workitem.JobID{1})
	<-first
	require.Nil(t, reserve())
	third := reserve()
	b.settle(q, 1) // its transaction was rolled back
	<-third

	none := newPendingBounds(nil)
	none.count(job(1, state.JobPending), free)
	require.Zero(t, free.pending)
	none.uncount(workitem.JobID{1})
}

func requireOpen(t *testing.T, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
		require.Fail(t, "there is no room yet")
	default:
	}
}
