package engine

import "sync"

// Drain needs to know that nothing is under way at one moment. A counter that is read cannot say so, since one part may hand over to
// another between two reads; so a part that hands something over counts it first for the other, and then ends its own count:
//
//	a job ends:   add(+1) for its result, which is a command      n = 2
//	              add(-1) for the job                              n = 1
//	              the command is committed, and makes a job due: add(+1), add(-1)

// activity counts what is under way: queued commands, jobs that are due or running. It reports when there is nothing left.
type activity struct {
	mu   sync.Mutex
	n    int
	zero chan struct{} // closed while n is 0
}

// newActivity returns a count of 0, which is quiet.
func newActivity() *activity {
	a := &activity{zero: make(chan struct{})}
	close(a.zero)
	return a
}

// add counts up or down. A channel is made for each time that there is something to do, so that who waits for quiet cannot miss a short one.
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

// quiet returns a channel that is closed once nothing is under way.
func (a *activity) quiet() <-chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.zero
}
