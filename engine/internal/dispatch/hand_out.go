package dispatch

// handOut appends the jobs that can start: there is a worker, their window is open, and their limits have room. If
// MaxRunning bounds all queues together, the next job is the most urgent of the first jobs of the queues; otherwise the
// queue that is looked at first would use up the bound. The lock is held.
func (s *scheduler) handOut(now int64, next []entry) []entry {
	var begun bool
	if s.queues.most <= 0 {
		for _, q := range s.queues.byName {
			for begun = true; begun; {
				next, begun = s.handOutOne(q, now, next)
			}
		}
		return next
	}
	done := make(map[*jobQueue]bool) // queues of which nothing more can start now
	for q := s.queues.mostUrgent(done, now); q != nil && !s.queues.full(); q = s.queues.mostUrgent(done, now) {
		next, begun = s.handOutOne(q, now, next)
		done[q] = !begun
	}
	return next
}

// handOutOne appends the next job of a queue, or the jobs of its next batch; false if none can start.
func (s *scheduler) handOutOne(q *jobQueue, now int64, next []entry) (_ []entry, begun bool) {
	for q.running < q.limit && !s.queues.full() {
		line, at := q.choose(now)
		switch {
		case line == nil && len(q.ready) == 0:
			return next, false
		case line != nil && (len(q.ready) == 0 || byPriority(&line.ready[0], &q.ready[0])):
			if next, begun = s.form(q, line, now, next); begun {
				return next, true
			}
			continue
		}
		n := q.ready.remove(at, byPriority)
		if s.hours.isClosed(&n, now) {
			s.hours.wait(n)
			s.limits.Pass(n.ticket)
			s.d.o.Active(-1)
			continue
		}
		if !s.enter(n) {
			continue
		}
		n.turn.recordStart()
		if n.unread {
			q.reading++
		}
		s.queues.occupy(q)
		s.d.jobs.Add(1)
		return append(next, n), true
	}
	return next, false
}

// first returns the most urgent of the jobs of a queue that can start; nil if there is none.
func (q *jobQueue) first(now int64) (first *entry) {
	if len(q.ready) > 0 {
		first = &q.ready[0]
	}
	if line := q.lines.next(now); line != nil && (first == nil || byPriority(&line.ready[0], first)) {
		first = &line.ready[0]
	}
	return first
}
