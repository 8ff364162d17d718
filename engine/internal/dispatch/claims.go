package dispatch

import (
	"context"
	"maps"
	"time"

	"github.com/tasq-dev/tasq/engine/internal/worker"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// claims has the jobs that this engine holds. The lock of the scheduler guards it.
//
//	reserve ──▶ begin ──▶ end
//	   │          └─────▶ lose ──▶ forget
//	   └──▶ unreserve
type claims struct {
	running  map[workitem.JobID]*running
	reserved map[workitem.JobID]struct{} // being claimed by a transaction that is not committed, see Extend
	lost     map[workitem.JobID]struct{} // taken from their workers, see Lost
}

// running is a job that a worker runs.
type running struct {
	root   workitem.CaseID
	lease  time.Time
	cancel context.CancelCauseFunc
	steps  *worker.Journal // receives the changes of the job's steps
	held   bool            // its case, or one above it, is suspended: its function releases the worker when it yields
}

// holds reports whether the worker holds the job with the given fence.
func (r *running) holds(fence int64) bool { return r != nil && r.steps.Holds(fence) }

// stop cancels the context of the function, and ends the reports to its journal.
func (r *running) stop() {
	r.steps.End()
	r.cancel(nil)
}

func newClaims() claims {
	return claims{running: make(map[workitem.JobID]*running), reserved: make(map[workitem.JobID]struct{}), lost: make(map[workitem.JobID]struct{})}
}

// of returns the run of a job; nil if no worker has the job.
func (c *claims) of(id workitem.JobID) *running { return c.running[id] }

// hold records which runs of a tree are those of suspended cases. Detached work is not part of a case any more.
func (c *claims) hold(tree *state.Tree) {
	for id, r := range c.running {
		if r.root != tree.Root {
			continue
		}
		if of, j := tree.Job(id); j != nil {
			_, by := tree.SuspendedBy(of)
			r.held = by != nil && !j.Detached && !of.State.Final()
		}
	}
}

// snapshot returns the runs, for use without the lock.
func (c *claims) snapshot() map[workitem.JobID]*running { return maps.Clone(c.running) }

// idle reports whether no worker has a job.
func (c *claims) idle() bool { return len(c.running) == 0 }

// reserve records that the transaction which opens a job also claims it, so that the job is not handed out a second
// time.
func (c *claims) reserve(id workitem.JobID) { c.reserved[id] = struct{}{} }

// unreserve records that the transaction of a reserved job was rolled back.
func (c *claims) unreserve(id workitem.JobID) { delete(c.reserved, id) }

func (c *claims) isReserved(id workitem.JobID) bool {
	_, ok := c.reserved[id]
	return ok
}

// begin records that a worker has a job.
func (c *claims) begin(id workitem.JobID, r *running) {
	delete(c.reserved, id)
	c.running[id] = r
}

// end records that a run has ended. A later run of the same job stays.
func (c *claims) end(id workitem.JobID, steps *worker.Journal) {
	if r := c.running[id]; r != nil && r.steps == steps {
		delete(c.running, id)
	}
}

// report passes the change of a step to the run that waits for it.
func (c *claims) report(change state.Change) {
	switch e := change.(type) {
	case *state.StepOpened:
		if r := c.running[e.Step.Job]; r != nil {
			r.steps.Opened(e.Step)
		}
	case *state.StepMoved:
		if r := c.running[e.Job]; r != nil {
			r.steps.Moved(e)
		}
	}
}

// interrupt ends the reports to the run of a job that this change has taken from its worker: later changes are for the
// next run. A job that is pending again was taken from its worker, or its worker is done with it.
func (c *claims) interrupt(e *state.JobMoved) {
	r := c.running[e.Job]
	if !r.holds(e.Fence) {
		return
	}
	r.steps.End()
	if e.To == state.JobPending {
		r.cancel(nil)
	}
}

// lose takes all running jobs from their workers: their results are refused from now on.
func (c *claims) lose() {
	clear(c.lost) // jobs lost earlier may belong to other engines by now
	for id, r := range c.running {
		r.steps.Lose()
		c.lost[id] = struct{}{}
		r.stop()
	}
}

func (c *claims) wasLost(id workitem.JobID) bool {
	_, ok := c.lost[id]
	return ok
}

// forget drops a lost job.
func (c *claims) forget(id workitem.JobID) { delete(c.lost, id) }

// roots appends the root cases of the running jobs to a list, with duplicates.
func (c *claims) roots(to []workitem.CaseID) []workitem.CaseID {
	for _, r := range c.running {
		to = append(to, r.root)
	}
	return to
}

// owners returns the running jobs of a root case, with the owners of their steps.
func (c *claims) owners(root workitem.CaseID) map[workitem.JobID][16]byte {
	owners := make(map[workitem.JobID][16]byte)
	for id, r := range c.running {
		if r.root == root {
			owners[id] = r.steps.Owner()
		}
	}
	return owners
}

// compare updates the runs of a root case after changes of other engines: a run that no longer holds its job is
// canceled, and any other receives the steps that have ended. tree is nil if the case was removed.
func (c *claims) compare(root workitem.CaseID, tree *state.Tree, steps map[workitem.JobID][]*workitem.Step) {
	if tree != nil {
		c.hold(tree)
	}
	for id, r := range c.running {
		if r.root != root {
			continue
		}
		var j *state.Job
		if tree != nil {
			_, j = tree.Job(id)
		}
		if j == nil || j.State != state.JobRunning || !r.holds(j.Fence) {
			r.stop()
			continue
		}
		for _, step := range steps[id] {
			if step.State.Final() {
				r.steps.Moved(&state.StepMoved{Case: step.Case, Job: id, Step: step.ID, To: step.State, Attempt: step.Attempt, Due: step.Due,
					Result: step.Result, Failure: step.Failure, At: step.Ended})
			}
		}
	}
}
