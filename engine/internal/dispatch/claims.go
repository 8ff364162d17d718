package dispatch

import (
	"context"
	"maps"
	"time"

	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// claims are the jobs that this engine holds. The lock of the scheduler guards them.
//
//	reserve ──▶ begin ──▶ end
//	   │          └─────▶ lose ──▶ forget
//	   └──▶ unreserve
type claims struct {
	running  map[workitem.JobID]*running
	reserved map[workitem.JobID]struct{} // claimed in a transaction that is under way, see Extend
	lost     map[workitem.JobID]struct{} // taken from their workers, see Lost
}

// running is a job in a worker.
type running struct {
	root   workitem.CaseID
	lease  time.Time
	cancel context.CancelCauseFunc
	steps  *journal // reports to the run what became of its steps
}

// noFence is that of no claim.
const noFence = -1

// holds reports whether the worker has the job by a fence.
func (r *running) holds(fence int64) bool { return r != nil && r.steps.fence.Load() == fence }

// leave cancels the context of the run, and reports nothing more to it.
func (r *running) leave() {
	r.steps.end()
	r.cancel(nil)
}

func newClaims() claims {
	return claims{running: make(map[workitem.JobID]*running), reserved: make(map[workitem.JobID]struct{}), lost: make(map[workitem.JobID]struct{})}
}

// of is the run of a job; nil if no worker has the job.
func (c *claims) of(id workitem.JobID) *running { return c.running[id] }

// snapshot lists the runs, for use without the lock.
func (c *claims) snapshot() map[workitem.JobID]*running { return maps.Clone(c.running) }

// idle reports whether no worker has a job.
func (c *claims) idle() bool { return len(c.running) == 0 }

// reserve notes that a job is being claimed by the transaction that opens it: it is not to be handed out once more.
func (c *claims) reserve(id workitem.JobID) { c.reserved[id] = struct{}{} }

// unreserve notes that the transaction of a reserved job was undone.
func (c *claims) unreserve(id workitem.JobID) { delete(c.reserved, id) }

func (c *claims) isReserved(id workitem.JobID) bool {
	_, ok := c.reserved[id]
	return ok
}

// begin notes that a worker has a job.
func (c *claims) begin(id workitem.JobID, r *running) {
	delete(c.reserved, id)
	c.running[id] = r
}

// end notes that a run is over. A later run of the job stays.
func (c *claims) end(id workitem.JobID, steps *journal) {
	if r := c.running[id]; r != nil && r.steps == steps {
		delete(c.running, id)
	}
}

// report has a run learn what became of one of its steps.
func (c *claims) report(change state.Change) {
	switch e := change.(type) {
	case *state.StepOpened:
		if r := c.running[e.Step.Job]; r != nil {
			r.steps.opened(e.Step)
		}
	case *state.StepMoved:
		if r := c.running[e.Job]; r != nil {
			r.steps.moved(e)
		}
	}
}

// interrupt ends the reports to the run of a job, if it had the job until this change: what comes after it is for the next run. A job that is
// pending again was taken from its worker, or its worker is done with it.
func (c *claims) interrupt(e *state.JobMoved) {
	r := c.running[e.Job]
	if !r.holds(e.Fence) {
		return
	}
	r.steps.end()
	if e.To == state.JobPending {
		r.cancel(nil)
	}
}

// lose takes all running jobs from their workers: nothing that these hand in later is taken.
func (c *claims) lose() {
	clear(c.lost) // others may have taken those of the time before
	for id, r := range c.running {
		r.steps.fence.Store(noFence)
		c.lost[id] = struct{}{}
		r.leave()
	}
}

func (c *claims) wasLost(id workitem.JobID) bool {
	_, ok := c.lost[id]
	return ok
}

// forget notes that a lost job has been followed up.
func (c *claims) forget(id workitem.JobID) { delete(c.lost, id) }

// roots adds the root cases of the running jobs to a list, each as often as it has some.
func (c *claims) roots(to []workitem.CaseID) []workitem.CaseID {
	for _, r := range c.running {
		to = append(to, r.root)
	}
	return to
}

// owners lists the running jobs of a root case, each with the owner of its steps.
func (c *claims) owners(root workitem.CaseID) map[workitem.JobID][16]byte {
	owners := make(map[workitem.JobID][16]byte)
	for id, r := range c.running {
		if r.root != root {
			continue
		}
		owners[id] = id
		if w := r.steps.w; w.Item != nil && w.Name == "" {
			owners[id] = w.Item.ID
		}
	}
	return owners
}

// compare has the runs of a root case learn what other engines did to it: a run that does not hold its job any more leaves it, and one
// that does learns which of its steps have ended. The tree is nil if the case was removed.
func (c *claims) compare(root workitem.CaseID, tree *state.Tree, steps map[workitem.JobID][]*workitem.Step) {
	for id, r := range c.running {
		if r.root != root {
			continue
		}
		var j *state.Job
		if tree != nil {
			_, j = tree.Job(id)
		}
		if j == nil || j.State != state.JobRunning || !r.holds(j.Fence) {
			r.leave()
			continue
		}
		for _, step := range steps[id] {
			if step.State.Final() {
				r.steps.moved(&state.StepMoved{Case: step.Case, Job: id, Step: step.ID, To: step.State, Attempt: step.Attempt, Due: step.Due,
					Result: step.Result, Failure: step.Failure, At: step.Ended})
			}
		}
	}
}
