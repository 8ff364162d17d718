package dispatch

import (
	"maps"

	"github.com/tasq-dev/tasq/store"
)

// Operators pause queues, and single keys of queues with fairness keys. Due jobs of these are held aside in jobQueue.held.

// isPaused reports whether a due job must not start, because its queue or its key is paused. The key of a job that was
// not read yet is unknown: it is found when a worker reads the job, which then comes here again.
func (s *scheduler) isPaused(n *entry) bool {
	return s.paused[n.queue.name] || s.keyPaused(n)
}

func (s *scheduler) keyPaused(n *entry) bool {
	if n.turn == nil {
		return false
	}
	_, paused := s.pausedKeys[n.queue.name][n.turn.key]
	return paused
}

// A paused queue keeps its rounds: its jobs continue where they stopped, since no other key has gone ahead.

// leaveRound removes a job of a paused key from its round: it joins a later one when the key is resumed. Otherwise all
// jobs of the key would start before those of the others, whose rounds have gone on. The lock is held.
func (s *scheduler) leaveRound(n *entry) {
	t := n.turn
	if t == nil || t.rotation == nil || s.paused[n.queue.name] {
		return
	}
	if s.d.o.Aging > 0 {
		n.urgent -= t.since - n.due // see assignTurn
	}
	s.leaveTurn(n.job)
	n.turn = &turn{key: t.key}
}

// SetQueues applies the settings of operators: the paused queues and keys, and the numbers of workers.
func (d *Dispatcher) SetQueues(set map[string]store.QueueValue) {
	s := &d.sched
	s.mu.Lock()
	was := s.pausedKeys
	s.paused, s.workers, s.pausedKeys = make(map[string]bool), make(map[string]int), make(map[string]map[string]store.Decision)
	for name, v := range set {
		if s.paused[name] = v.Paused; v.Workers != nil {
			s.workers[name] = v.Workers.N
		}
		if len(v.Keys) > 0 {
			s.pausedKeys[name] = v.Keys
		}
	}
	for _, q := range s.queues {
		q.limit = s.limitOf(q.name)
		list, ready := q.held, 0
		// All are put in again, which holds them, so one function decides where a job belongs.
		if q.held = nil; s.paused[q.name] || !maps.Equal(was[q.name], s.pausedKeys[q.name]) {
			ready = len(q.ready)
			list, q.ready = append(list, q.ready...), nil
			list = append(list, s.takeLines(q)...)
		}
		for _, n := range list {
			s.enqueue(n)
		}
		s.d.o.Active(-ready) // after enqueue has counted them again: the engine must not look idle in between
	}
	s.mu.Unlock()
	s.dispatch()
}
