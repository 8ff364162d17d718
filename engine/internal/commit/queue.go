package commit

import "sync"

// queue has the requests that wait for the writer. It is unbounded, so that the writer can queue requests itself
// without blocking on its own queue. It stays short all the same: a caller waits for its answer before it sends more,
// and there are at most as many claims as workers.
type queue struct {
	mu     sync.Mutex
	list   []*Request
	taken  int // the number of requests already taken from the front of list
	closed bool
	ready  chan struct{} // has a token if the list may no longer be empty, or a request became urgent
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
	// Only the first one signals: the writer takes all that follow before it waits again.
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

// wake makes the writer check again whether it still has to wait.
func (q *queue) wake() { q.signal() }

// pop takes the oldest request; nil if there is none. over says that there will be no more.
func (q *queue) pop() (r *Request, over bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.taken == len(q.list) {
		return nil, q.closed
	}
	// The slot is cleared, or the memory of the request would be kept until the list is used up.
	r, q.list[q.taken] = q.list[q.taken], nil
	q.taken++
	if q.taken == len(q.list) {
		q.list, q.taken = q.list[:0], 0
	}
	return r, false
}

// keys returns the idempotency keys of the requests that wait, at most n.
// It looks ahead: the keys of requests that will be in the batch are looked up with those of the current one.
func (q *queue) keys(n int) (all []string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, r := range q.list[q.taken:min(len(q.list), q.taken+n)] {
		if r.Key != "" {
			all = append(all, r.Key)
		}
	}
	return all
}

// close makes push refuse requests. Queued ones are still executed.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.signal()
}
