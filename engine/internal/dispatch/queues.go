package dispatch

import (
	"github.com/tasq-dev/tasq/store"
)

// queues has the queues of an engine with their numbers of workers: those of the configuration, and those that operators
// have set. The lock of the scheduler guards it.
type queues struct {
	byName   map[string]*jobQueue
	fair     map[string]bool // the queues of functions with fairness keys, as far as they are known
	defaults int             // the number of workers of a queue that is not in defined; negative if this engine runs no jobs
	defined  map[string]int
	most     int // the maximum number of running jobs of all queues; no bound if it is not positive
	running  int // jobs and batches with workers, of all queues

	// These are the settings of operators.
	workers    map[string]int
	paused     map[string]bool // has each queue with a setting
	pausedKeys map[string]map[string]store.Decision
}

func newQueues(o *Options, fair map[string]bool) queues {
	return queues{byName: make(map[string]*jobQueue), fair: fair, defaults: o.Workers, defined: o.Queues, most: o.MaxRunning}
}

// of returns the queue with a name, and creates it if necessary.
func (l *queues) of(name string) *jobQueue {
	q := l.byName[name]
	if q == nil {
		q = &jobQueue{name: name, limit: l.limit(name), fair: l.fair[name]}
		l.byName[name] = q
	}
	return q
}

// limit returns the number of workers that was set for a queue, up to the largest number in the configuration, or the
// configured one.
func (l *queues) limit(name string) int {
	configured := l.configured(name)
	if n, set := l.workers[name]; set && configured > 0 {
		return min(n, max(configured, l.defaults))
	}
	return configured
}

// configured returns the configured number of workers of a queue: 0 if the queue is paused here, negative if this engine
// runs no jobs.
func (l *queues) configured(name string) int {
	if n, listed := l.defined[name]; listed {
		return max(n, 0)
	}
	return l.defaults
}

// full reports whether the bound of all queues is reached.
func (l *queues) full() bool { return l.most > 0 && l.running >= l.most }

// A worker is counted as occupied when a job is handed out, not when its claim is accepted: until then the next job of
// the queue would find the same worker free. A claim that fails frees it.

// occupy records that a job or a batch of a queue has a worker.
func (l *queues) occupy(q *jobQueue) {
	q.running++
	l.running++
}

// free records that a job or a batch of a queue no longer has a worker.
func (l *queues) free(q *jobQueue) {
	q.running--
	l.running--
}

// mostUrgent returns the queue with a free worker whose first job is the most urgent, except for the given ones; nil if
// there is none.
func (l *queues) mostUrgent(but map[*jobQueue]bool, now int64) (best *jobQueue) {
	var first *entry
	for _, q := range l.byName {
		if but[q] || q.running >= q.limit {
			continue
		}
		if n := q.first(now); n != nil && (first == nil || byPriority(n, first)) {
			best, first = q, n
		}
	}
	return best
}

// lineDue returns when the next line has waited long enough whose jobs cannot start yet; never if there is none.
func (l *queues) lineDue(now int64) (due int64) {
	due = never
	for _, q := range l.byName {
		due = min(due, q.lines.due(now))
	}
	return due
}

// isPaused reports whether a due job must not start, because its queue or its key is paused. The key of a job that was
// not read yet is unknown: it is found when a worker reads the job, which then comes here again.
func (l *queues) isPaused(n *entry) bool {
	return l.paused[n.queue.name] || l.keyPaused(n)
}

// keyPaused reports whether the fairness key of a job is paused in its queue.
func (l *queues) keyPaused(n *entry) bool {
	if n.turn == nil {
		return false
	}
	_, paused := l.pausedKeys[n.queue.name][n.turn.key]
	return paused
}

// set replaces the settings of operators. It returns the keys that were paused before.
func (l *queues) set(values map[string]store.QueueValue) (was map[string]map[string]store.Decision) {
	was = l.pausedKeys
	l.paused, l.workers, l.pausedKeys = make(map[string]bool), make(map[string]int), make(map[string]map[string]store.Decision)
	for name, v := range values {
		if l.paused[name] = v.Paused; v.Workers != nil {
			l.workers[name] = v.Workers.N
		}
		if len(v.Keys) > 0 {
			l.pausedKeys[name] = v.Keys
		}
	}
	for name, q := range l.byName {
		q.limit = l.limit(name)
	}
	return was
}
