package engine

import "time"

// Backlog is work of one kind that is due and has not started.
type Backlog struct {
	// Queue is the name of the queue of the jobs, "" for the default one. Timers and other work of the engine itself
	// belong to no queue, and have a Backlog of their own.
	Queue string
	// Timers is true for work of the engine itself: timers, delayed starts of cases, completion handlers.
	Timers bool
	// Due is the number of jobs; Failing counts those of them that could not start because the store failed, and are
	// retried.
	Due, Failing int
	// Oldest is when the first of them became due.
	Oldest time.Time
}

// Overdue returns the work that is due in this engine and has not started, because all workers of its queue are busy or the store
// fails. It runs no query. Timers come first, then the queues sorted by name; the list is empty if nothing waits. Jobs that the
// writer is just processing are not counted.
func (e *Engine) Overdue() []Backlog {
	found := e.dispatch.Status().Overdue()
	list := make([]Backlog, len(found))
	for i, b := range found {
		list[i] = Backlog(b)
	}
	return list
}
