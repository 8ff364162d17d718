package notify

import (
	"slices"
	"sync"

	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// Notifier has the subscriptions of waiting callers, and signals them after commits. It is safe for concurrent use.
// Make one with [New].
type Notifier struct {
	mu      sync.Mutex
	err     error                                          // returned by waits after Close
	changes map[workitem.CaseID]map[chan struct{}]struct{} // by root case; the zero id is for all cases
	ends    map[workitem.CaseID]*subscription              // by root case: the first of a linked list
	began   func()                                         // see OnWait; may be nil
}

// subscription receives the end or the incidents of a root case. It is a list and not a map of sets because nearly
// every case has exactly one caller that waits for its end, and a list of one needs a single allocation.
type subscription struct {
	ended chan *state.Case // has room for one: the case that has ended, or nil for an incident
	next  *subscription    // to the same root case
}

// end sends the case that has ended. The lock is held, so there is no other sender, and the send does not block.
func (s *subscription) end(c *state.Case) {
	select {
	case <-s.ended: // drop an incident that was not received: the end supersedes it
	default:
	}
	s.ended <- c
}

// incident makes the caller look again. The lock is held.
func (s *subscription) incident() {
	select {
	case s.ended <- nil:
	default:
	}
}

// New returns a Notifier without subscriptions.
func New() *Notifier {
	return &Notifier{
		changes: make(map[workitem.CaseID]map[chan struct{}]struct{}),
		ends:    make(map[workitem.CaseID]*subscription),
	}
}

// OnWait sets a function that is called when a caller begins to wait. It is called with the lock, so it must not call
// the Notifier. Call OnWait before the first wait.
func (n *Notifier) OnWait(f func()) { n.began = f }

// waits calls the function of OnWait.
func (n *Notifier) waits() {
	if n.began != nil {
		n.began()
	}
}

// Committed signals a change of the root case. If the case has ended, it is sent to the callers that wait for its end.
func (n *Notifier) Committed(tree *state.Tree, changes []state.Change) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, root := range []workitem.CaseID{tree.Root, {}} {
		for c := range n.changes[root] {
			signal(c)
		}
	}
	first := n.ends[tree.Root]
	switch {
	case first == nil:
	case tree.Ended():
		for s := first; s != nil; s = s.next {
			s.end(tree.Case(tree.Root))
		}
		delete(n.ends, tree.Root)
	case slices.ContainsFunc(changes, isIncident):
		for s := first; s != nil; s = s.next {
			s.incident()
		}
	}
}

// isIncident reports whether a change records that the attempts of a job are used up, and a person has to decide.
func isIncident(e state.Change) bool {
	n, ok := e.(*state.Noted)
	return ok && n.Code == state.NoteIncident
}

// signal sends to a channel with a buffer of one, unless the buffer is full.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Close ends every wait with an error. Only the first call counts.
func (n *Notifier) Close(err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.err != nil {
		return
	}
	n.err = err
	for _, set := range n.changes {
		for c := range set {
			close(c)
		}
	}
	for _, first := range n.ends {
		for s := first; s != nil; s = s.next {
			close(s.ended)
		}
	}
	n.changes, n.ends = nil, nil
}

// reason returns the error of Close.
func (n *Notifier) reason() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.err
}

// subscribe returns a channel that is signaled after each change of the root case, or of any if root is zero, and
// closed with the Notifier.
func (n *Notifier) subscribe(root workitem.CaseID) (changed chan struct{}, unsubscribe func()) {
	changed = make(chan struct{}, 1)
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.err != nil {
		close(changed)
		return changed, func() {}
	}
	add(n.changes, root, changed)
	n.waits()
	return changed, func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		remove(n.changes, root, changed)
	}
}

// subscribeEnd is like subscribe for the end and the incidents of a root case; unsubscribeEnd ends it.
func (n *Notifier) subscribeEnd(root workitem.CaseID) *subscription {
	s := &subscription{ended: make(chan *state.Case, 1)}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.err != nil {
		close(s.ended)
		return s
	}
	s.next, n.ends[root] = n.ends[root], s
	n.waits()
	return s
}

func (n *Notifier) unsubscribeEnd(root workitem.CaseID, s *subscription) {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch first := n.ends[root]; {
	case first == nil:
	case first != s:
		for at := first; at.next != nil; at = at.next {
			if at.next == s {
				at.next = s.next
				return
			}
		}
	case s.next == nil:
		delete(n.ends, root)
	default:
		n.ends[root] = s.next
	}
}

// add adds a value to the set of a key.
func add[K, V comparable](sets map[K]map[V]struct{}, k K, v V) {
	if sets[k] == nil {
		sets[k] = make(map[V]struct{})
	}
	sets[k][v] = struct{}{}
}

// remove removes a value from the set of a key, and the set once it is empty.
func remove[K, V comparable](sets map[K]map[V]struct{}, k K, v V) {
	if delete(sets[k], v); len(sets[k]) == 0 {
		delete(sets, k)
	}
}
