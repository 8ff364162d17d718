package dispatch

import (
	"github.com/tasq-dev/tasq/engine/internal/commit"
	"github.com/tasq-dev/tasq/engine/internal/worker"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// Due work of a suspended case is parked: it leaves the heaps, so that it is neither retried nor reported as overdue,
// until a case of its tree is resumed. The scheduler does not know which cases are suspended. It learns that from the
// claim that the kernel refuses, so each job is parked when it is first due, and again after a restart.

// parking has the parked entries of each root case.
type parking map[workitem.CaseID]map[workitem.JobID]entry

func (p parking) put(n entry) {
	if p[n.root] == nil {
		p[n.root] = make(map[workitem.JobID]entry)
	}
	p[n.root][n.job] = n
}

// drop removes the entries of a job. It reports whether it was parked.
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

// park parks an entry of a suspended case. If the case was resumed before the entry was added, nothing would take it
// out again, so the kernel is asked once more. Slots that the case would hold from this job on are given back.
func (d *Dispatcher) park(n entry) {
	d.sched.mu.Lock()
	d.sched.parked.put(n)
	d.sched.mu.Unlock()
	var unused []int
	goesOn := false
	r := &commit.Request{Reads: true, Run: func(tx *commit.Tx) error {
		u, err := tx.Open(n.root)
		if err != nil {
			return err
		}
		c, _ := u.Tree.Job(n.job)
		_, s := u.Tree.SuspendedBy(c)
		goesOn, unused = s == nil, d.unusedHolds(u.Tree, n.ticket)
		return nil
	}}
	d.send(r, func(err error) {
		if goesOn || err != nil && !worker.Unwanted(err) {
			d.sched.unpark(n)
		} else if len(unused) > 0 {
			d.sched.endUnused(n, unused)
		}
	})
}

// unpark returns one parked entry to the calendar, if it is still parked.
func (s *scheduler) unpark(n entry) {
	s.mu.Lock()
	parked := s.parked.drop(n.root, n.job)
	if parked {
		s.waiting.putBack(n)
	}
	s.mu.Unlock()
	if parked {
		s.dispatch()
	}
}

// resumeParked returns the parked entries of a tree, a case of which was resumed, to the calendar. Entries of cases
// that are still suspended are parked again when they are tried. The lock is held.
func (s *scheduler) resumeParked(tree *state.Tree) (changed bool) {
	for _, n := range s.parked[tree.Root] {
		s.waiting.putBack(n)
		changed = true
	}
	delete(s.parked, tree.Root)
	return changed
}
