package dispatch

import "sync"

// pool is a set of goroutines that do one job after the other. A fresh goroutine for each would grow its stack again every time,
// which costs as much as reading the job's input.
type pool struct {
	mu     sync.Mutex
	idle   []chan *claim // of those that wait for a job; the last one that came to rest is the next to go
	closed bool
}

// maxIdle is how many goroutines are kept for later jobs. More of them may be busy.
const maxIdle = 128

// do has the job done on a goroutine of its own, without waiting for it.
func (h *pool) do(c *claim) {
	h.mu.Lock()
	defer h.mu.Unlock()
	last := len(h.idle) - 1
	if last < 0 {
		go h.run(c)
		return
	}
	h.idle[last] <- c
	h.idle = h.idle[:last]
}

func (h *pool) run(c *claim) {
	next := make(chan *claim, 1)
	for more := true; more; c, more = <-next {
		c.do()
		h.rest(next)
	}
}

// rest offers a goroutine for further jobs, or closes its channel if it is not needed.
func (h *pool) rest(next chan *claim) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed || len(h.idle) >= maxIdle {
		close(next)
		return
	}
	h.idle = append(h.idle, next)
}

// close ends the idle goroutines now, and the others when their job is done.
func (h *pool) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	for _, next := range h.idle {
		close(next)
	}
	h.idle = nil
}
