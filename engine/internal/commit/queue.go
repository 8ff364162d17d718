package commit

import "sync"

// queue holds the requests that wait for the writer. It has no bound: who queues one waits for its answer, and the writer's
// own, the claims of jobs, are as many as there are workers. So the writer can queue requests itself.
type queue struct {
	mu     sync.Mutex
	list   []*Request
	taken  int // from the front of the list
	closed bool
	ready  chan struct{} // has a token when the list may have become longer than empty, or a request is hurried
}

func (q *queue) init() { q.ready = make(chan struct{}, 1) }

// push queues a request; false if the queue is closed.
func (q *queue) push(r *Request) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return false
	}
	q.list = append(q.list, r)
	if len(q.list)-q.taken == 1 {
		q.signal()
	}
	return true
}

func (q *queue) signal() {
	select {
	case q.ready <- struct{}{}:
	default:
	}
}

// wake has the writer look again at what it waits for.
func (q *queue) wake() { q.signal() }

// pop takes the oldest request; nil if there is none. Nothing comes after that if over is true.
func (q *queue) pop() (r *Request, over bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.taken == len(q.list) {
		return nil, q.closed
	}
	r, q.list[q.taken] = q.list[q.taken], nil
	q.taken++
	if q.taken == len(q.list) {
		q.list, q.taken = q.list[:0], 0
	}
	return r, false
}

// close refuses further requests. Those that are queued are done.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.signal()
}
