package dispatch

import "sync"

// pool is a set of goroutines that run one job after the other. A new goroutine for each job would have to grow its
// stack every time, which costs as much as reading the job's input.
type pool struct {
	mu     sync.Mutex
	idle   []chan *claim // the channels of idle goroutines; the last is used first
	closed bool
}

// maxIdle bounds the number of idle goroutines that are kept.
const maxIdle = 128

// do runs a job on a goroutine of the pool, without waiting for it.
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
		h.release(next)
	}
}

// release adds an idle goroutine to the pool, or closes its channel if there are enough.
func (h *pool) release(next chan *claim) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed || len(h.idle) >= maxIdle {
		close(next)
		return
	}
	h.idle = append(h.idle, next)
}

// close ends the idle goroutines now, and the others after their job.
func (h *pool) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	for _, next := range h.idle {
		close(next)
	}
	h.idle = nil
}
