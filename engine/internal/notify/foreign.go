package notify

import (
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// Roots returns the root cases with subscriptions.
func (n *Notifier) Roots() []workitem.CaseID {
	n.mu.Lock()
	defer n.mu.Unlock()
	var roots []workitem.CaseID
	for root := range n.changes {
		if !root.IsZero() {
			roots = append(roots, root)
		}
	}
	for root := range n.ends {
		roots = append(roots, root)
	}
	return roots
}

// Changed signals that another engine has changed a root case, or any case if root is zero. tree is the current tree of
// the root case; nil if it was removed. Callers that wait for the end look again after any change, since the changes of
// another engine are not known here.
func (n *Notifier) Changed(root workitem.CaseID, tree *state.Tree) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for c := range n.changes[root] {
		signal(c)
	}
	for s := n.ends[root]; s != nil; s = s.next {
		if tree != nil && tree.Ended() {
			s.end(tree.Case(root))
		} else {
			s.incident()
		}
	}
	if tree != nil && tree.Ended() {
		delete(n.ends, root)
	}
}
