package notify

import (
	"slices"
	"sync"

	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// Notifier holds the subscriptions of callers that wait, and signals them what was committed. It is safe for concurrent use. Make
// one with [New].
type Notifier struct {
	mu      sync.Mutex
	err     error                                          // of waits, once closed
	changes map[workitem.CaseID]map[chan struct{}]struct{} // by root case; zero is for all of them
	ends    map[workitem.CaseID]map[*subscription]struct{} // by root case
	began   func()                                         // see OnWait; nil for nothing
}

// subscription is what a wait for the end of a root case gets.
type subscription struct {
	ended    chan *state.Case // has room for the one case that it gets
	incident chan struct{}
}

// New returns a Notifier without subscriptions.
func New() *Notifier {
	return &Notifier{
		changes: make(map[workitem.CaseID]map[chan struct{}]struct{}),
		ends:    make(map[workitem.CaseID]map[*subscription]struct{}),
	}
}

// OnWait has a function called as a caller begins to wait for something of a root case. It must not call the Notifier. Call OnWait before the
// first wait.
func (n *Notifier) OnWait(f func()) { n.began = f }

// waits calls what OnWait was given.
func (n *Notifier) waits() {
	if n.began != nil {
		n.began()
	}
}

// Committed signals a change of the root case. If the case has ended, those that wait for that get it.
func (n *Notifier) Committed(tree *state.Tree, changes []state.Change) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, root := range []workitem.CaseID{tree.Root, {}} {
		for c := range n.changes[root] {
			signal(c)
		}
	}
	waiting := n.ends[tree.Root]
	switch {
	case len(waiting) == 0:
	case tree.Ended():
		for s := range waiting {
			s.ended <- tree.Case(tree.Root)
		}
		delete(n.ends, tree.Root)
	case slices.ContainsFunc(changes, isIncident):
		for s := range waiting {
			signal(s.incident)
		}
	}
}

// isIncident reports whether a change says that a job was given up, and a person has to decide.
func isIncident(e state.Change) bool {
	n, ok := e.(*state.Noted)
	return ok && n.Code == state.NoteIncident
}

// signal signals a channel with room for one signal, unless that one is still there.
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
	for _, set := range n.ends {
		for s := range set {
			close(s.ended)
		}
	}
	n.changes, n.ends = nil, nil
}

// reason is the error that the Notifier was closed with.
func (n *Notifier) reason() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.err
}

// subscribe returns a channel that is signaled after each change of the root case, or of any if root is zero, and closed with the
// Notifier.
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

// subscribeEnd is like subscribe for the end and the incidents of a root case.
func (n *Notifier) subscribeEnd(root workitem.CaseID) (s *subscription, unsubscribe func()) {
	s = &subscription{ended: make(chan *state.Case, 1), incident: make(chan struct{}, 1)}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.err != nil {
		close(s.ended)
		return s, func() {}
	}
	add(n.ends, root, s)
	n.waits()
	return s, func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		remove(n.ends, root, s)
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
