package dispatch

// A bound of all queues is shared by them. So the next job is the most urgent of those that are first in their queues, and not the first of
// whichever queue is looked at before the others.

// full reports whether no job of any queue may begin. The lock is held.
func (s *scheduler) full() bool {
	return s.d.o.MaxRunning > 0 && s.running >= s.d.o.MaxRunning
}

// begin notes that a job of a queue, or a batch, has a worker. The lock is held.
func (s *scheduler) begin(q *jobQueue) {
	q.running++
	s.running++
}

// handOutOfAll appends the jobs of all queues for which there are workers, one after the other. The lock is held.
func (s *scheduler) handOutOfAll(now int64, next []entry) []entry {
	done := make(map[*jobQueue]bool) // nothing of it begins now
	for !s.full() {
		q := s.mostUrgent(done, now)
		if q == nil {
			return next
		}
		running := q.running
		if next = s.handOut(q, now, next); q.running == running {
			done[q] = true
		}
	}
	return next
}

// mostUrgent is the queue with a free worker whose first job is the most urgent, but for some queues; nil if there is none.
func (s *scheduler) mostUrgent(but map[*jobQueue]bool, now int64) (best *jobQueue) {
	var first *entry
	for _, q := range s.queues {
		if but[q] || q.running >= q.limit {
			continue
		}
		if n := q.first(now); n != nil && (first == nil || byPriority(n, first)) {
			best, first = q, n
		}
	}
	return best
}

// first is the most urgent of the jobs of a queue that may begin; nil if there is none.
func (q *jobQueue) first(now int64) (first *entry) {
	if len(q.ready) > 0 {
		first = &q.ready[0]
	}
	if line := q.nextLine(now); line != nil && (first == nil || byPriority(&line.ready[0], first)) {
		first = &line.ready[0]
	}
	return first
}
