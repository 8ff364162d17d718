package engine

import "sync"

// activity counts what is under way: queued commands, jobs that are due or running. It reports when there is nothing left.
type activity struct {
	mu   sync.Mutex
	n    int
	zero chan struct{} // closed while n is 0
}

func newActivity() *activity {
	a := &activity{zero: make(chan struct{})}
	close(a.zero)
	return a
}

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
