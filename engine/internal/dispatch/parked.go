package dispatch

import (
	"github.com/tasq-dev/tasq/engine/internal/commit"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// What is due and belongs to a suspended case is parked: out of the heaps, so that it is neither tried again nor overdue, until a case of
// its tree goes on. The process says that a job cannot begin when it is tried, so a job is parked once it is due, and after a restart
// once more.

// parking holds the parked entries of each root case.
type parking map[workitem.CaseID]map[workitem.JobID]entry

func (p parking) put(n entry) {
	if p[n.root] == nil {
		p[n.root] = make(map[workitem.JobID]entry)
	}
	p[n.root][n.job] = n
}

// drop forgets a job, which has another entry or none from now on. It reports whether the job was parked.
func (p parking) drop(root workitem.CaseID, job workitem.JobID) bool {
	of, ok := p[root]
	if !ok {
		return false
	}
	_, parked := of[job]
	if delete(of, job); len(of) == 0 {
		delete(p, root)
	}
	return parked
}

// park puts an entry aside whose case is suspended. If the case went on before the entry was there, nothing would take it out, so
// the process is asked once more.
func (d *Dispatcher) park(n entry) {
	d.sched.mu.Lock()
	d.sched.parked.put(n)
	d.sched.mu.Unlock()
	goesOn := false
	r := &commit.Request{Reads: true, Run: func(tx *commit.Tx) error {
		u, err := tx.Open(n.root)
		if err != nil {
			return err
		}
		c, _ := u.Tree.Job(n.job)
		_, s := u.Tree.SuspendedBy(c)
		goesOn = s == nil
		return nil
	}}
	d.follow(r, func(err error) {
		if goesOn || err != nil && !unwanted(err) {
			d.sched.unpark(n)
		}
	})
}

// unpark takes up one parked entry, if it is there still.
func (s *scheduler) unpark(n entry) {
	s.mu.Lock()
	parked := s.parked.drop(n.root, n.job)
	if parked {
		s.waiting.putBack(n)
	}
	s.mu.Unlock()
	if parked {
		s.turn()
	}
}

// goesOn takes up what is parked of a tree, of which a case is no longer suspended. What is still below a suspended one is
// parked again when it is tried. The lock is held.
func (s *scheduler) goesOn(tree *state.Tree) (changed bool) {
	for _, n := range s.parked[tree.Root] {
		s.waiting.putBack(n)
		changed = true
	}
	delete(s.parked, tree.Root)
	return changed
}
