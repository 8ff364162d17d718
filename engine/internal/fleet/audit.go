package fleet

import (
	"context"
	"time"

	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// No other engine takes a job from a live one. So an engine that does not know a job which it owns would leave it until it is closed.
// That cannot happen if the engine and the store have no defect and each statement ends as its caller was told; but a case that stands
// still for weeks is too much to rely on it. Now and then the engine compares the due jobs that the store says are its own with those
// that it knows, and schedules the others:
//
//	look 1    job 7 is not known: it may be just on its way to a worker
//	look 2    job 7 is not known, and has not changed since: it is scheduled, and logged
const (
	busyLook = 30 // heartbeats between two looks of a busy engine, which has more to compare
	idleLook = 6

	// lateBy is how long a job must be due to be compared.
	lateBy = 10 * time.Second
	// lookMost is the number of jobs that are compared, those that have been due for longest.
	lookMost = 200
)

// audit has what the looks at the owned jobs have found.
type audit struct {
	beats     int // since the last look
	suspects  map[workitem.JobID]version
	scheduled map[workitem.JobID]version // those scheduled by an audit; one that is still not known afterwards is left as it is
}

// version changes with each claim and each change of the due time of a job.
type version struct {
	state state.JobState
	fence int64
	due   time.Time
}

// isDue counts a heartbeat, and reports whether a look follows it.
func (a *audit) isDue(busy bool) bool {
	a.beats++
	if a.beats < idleLook || busy && a.beats < busyLook {
		return false
	}
	a.beats = 0
	return true
}

// lost returns the jobs that were unknown at the look before, too, and are unchanged since.
func (a *audit) lost(unknown []*state.Job) (lost []*state.Job) {
	suspects, scheduled := make(map[workitem.JobID]version), make(map[workitem.JobID]version)
	for _, j := range unknown {
		v := version{j.State, j.Fence, j.Due}
		switch before, was := a.suspects[j.ID]; {
		case a.scheduled[j.ID] == v:
			scheduled[j.ID] = v
		case was && before == v:
			scheduled[j.ID] = v
			lost = append(lost, j)
		default:
			suspects[j.ID] = v
		}
	}
	a.suspects, a.scheduled = suspects, scheduled
	return lost
}

// findUnknown schedules jobs that this engine owns and does not know. It is called after each heartbeat.
func (m *Member) findUnknown(ctx context.Context) error {
	if !m.audit.isDue(m.o.Work.Busy()) {
		return nil
	}
	jobs, err := m.o.Store.Overdue(ctx, m.o.Now().Add(-lateBy), lookMost)
	if err != nil {
		return err
	}
	lost := m.audit.lost(m.o.Work.Unknown(jobs))
	for _, j := range lost {
		m.o.Log.Error("this engine owns a job that it had not scheduled; it is scheduled now. Please report this, with the log before it",
			"job", j.ID, "case", j.Root, "state", j.State, "due", j.Due)
	}
	return m.adopt(ctx, lost)
}
