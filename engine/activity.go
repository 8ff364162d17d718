package engine

import "sync"

// Drain needs to know that the whole engine is idle at one moment. Reading a counter for each part cannot show that,
// since one part may pass work to another between two reads. So there is one counter, and a part that passes work on
// first counts it for the receiver, and then removes its own count:
//
//	a job ends:   add(+1) for its result, which is a command      n = 2
//	              add(-1) for the job                              n = 1
//	              the command is committed, and makes a job due: add(+1), add(-1)

// activity counts work in progress: queued commands, and jobs that are due or running. It reports when the count is 0.
type activity struct {
	mu   sync.Mutex
	n    int
	zero chan struct{} // closed while n is 0
}

// newActivity returns an idle activity.
func newActivity() *activity {
	a := &activity{zero: make(chan struct{})}
	close(a.zero)
	return a
}

// add adds to the count. Each busy period has a channel of its own, so that a waiter cannot miss a short idle period.
func (a *activity) add(d int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	before := a.n
	a.n += d
	switch {
	case before == 0 && a.n > 0:
		a.zero = make(chan struct{})
	case before > 0 && a.n == 0:
		close(a.zero)
	}
}

// idle returns a channel that is closed when the engine is idle.
func (a *activity) idle() <-chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.zero
}
