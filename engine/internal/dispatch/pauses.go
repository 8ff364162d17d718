package dispatch

import (
	"maps"

	"github.com/tasq-dev/tasq/store"
)

// Operators pause queues, and single keys of queues with fairness keys. Due jobs of these are held aside in jobQueue.held.

// A paused queue keeps its rounds: its jobs continue where they stopped, since no other key has gone ahead.

// SetQueues applies the settings of operators: the paused queues and keys, and the numbers of workers.
func (d *Dispatcher) SetQueues(set map[string]store.QueueValue) {
	s := &d.sched
	s.mu.Lock()
	was := s.queues.set(set)
	for _, q := range s.queues.byName {
		list, ready := q.held, 0
		// All are put in again, which holds them, so one function decides where a job belongs.
		if q.held = nil; s.queues.paused[q.name] || !maps.Equal(was[q.name], s.queues.pausedKeys[q.name]) {
			ready = len(q.ready)
			list, q.ready = append(list, q.ready...), nil
			list = append(list, s.batches.empty(q)...)
		}
		for _, n := range list {
			s.enqueue(n)
		}
		s.d.o.Active(-ready) // after enqueue has counted them again: the engine must not look idle in between
	}
	s.mu.Unlock()
	s.dispatch()
}
