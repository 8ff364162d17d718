package engine

import "time"

// Backlog is work of one kind that is due and has not begun.
type Backlog struct {
	// Queue is the name of the queue of the jobs, "" for the default one. Timers and other work of the engine itself have
	// none, and a Backlog of their own.
	Queue string
	// Timers is true for what the engine does itself: timers, cases that begin later, completion handlers.
	Timers bool
	// Due is how many there are; Failing how many of them could not begin because the store failed, and are tried again.
	Due, Failing int
	// Oldest is when the first of them was due.
	Oldest time.Time
}

// Overdue says what is due in this engine and has not begun: because all workers of its queue are busy, or because the store fails.
// It takes no query. The timers come first, then the queues in the order of their names; an empty list says that nothing waits.
// What the writer has in hand is not counted.
func (e *Engine) Overdue() []Backlog {
	found := e.dispatch.Overdue()
	list := make([]Backlog, len(found))
	for i, b := range found {
		list[i] = Backlog(b)
	}
	return list
}
