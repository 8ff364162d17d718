package fleet

import (
	"context"
	"time"

	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// No other engine takes a job from a live one, so a job whose owner does not know of it waits until that engine is closed. It takes a defect of
// the engine or of the store for that to happen, and its effect is a case that makes no progress, without a reason that is shown. So each engine compares the
// due jobs that the store says are its own with those that it knows, from time to time:
//
//	first comparison     job 7 is not known: it may be on its way to a worker
//	second comparison    job 7 is not known, and has not changed since: it is scheduled, and logged
const (
	busyBeats = 30 // heartbeats between two comparisons of a busy engine, which has more to compare
	idleBeats = 6

	// overdueBy is how long a job must be due to be compared.
	overdueBy = 10 * time.Second
	// maxCompared is the number of jobs that are compared, those that have been due for longest.
	maxCompared = 200
)

// ownedJobs has the results of the comparisons.
type ownedJobs struct {
	beats     int                        // heartbeats since the last comparison
	unknown   map[workitem.JobID]version // the jobs that were not known then
	scheduled map[workitem.JobID]version // those that were scheduled then; one that is still not known is left as it is
}

// version changes with each claim and each change of the due time of a job.
type version struct {
	state state.JobState
	fence int64
	due   time.Time
}

// isDue counts a heartbeat, and reports whether a comparison follows it.
func (o *ownedJobs) isDue(busy bool) bool {
	o.beats++
	if o.beats < idleBeats || busy && o.beats < busyBeats {
		return false
	}
	o.beats = 0
	return true
}

// lost returns the jobs that were unknown at the comparison before, too, and have not changed since.
func (o *ownedJobs) lost(unknown []*state.Job) (lost []*state.Job) {
	before, scheduled := o.unknown, make(map[workitem.JobID]version)
	o.unknown = make(map[workitem.JobID]version)
	for _, j := range unknown {
		v := version{j.State, j.Fence, j.Due}
		switch {
		case o.scheduled[j.ID] == v:
			scheduled[j.ID] = v
		case before[j.ID] == v:
			scheduled[j.ID] = v
			lost = append(lost, j)
		default:
			o.unknown[j.ID] = v
		}
	}
	o.scheduled = scheduled
	return lost
}

// findUnknown schedules jobs that this engine owns and does not know. It is called after each heartbeat.
func (m *Member) findUnknown(ctx context.Context) error {
	if !m.owned.isDue(m.o.Work.Busy()) {
		return nil
	}
	jobs, err := m.o.Store.Overdue(ctx, m.o.Now().Add(-overdueBy), maxCompared)
	if err != nil {
		return err
	}
	lost := m.owned.lost(m.o.Work.Unknown(jobs))
	for _, j := range lost {
		m.o.Log.Error("this engine owns a job that it had not scheduled; it is scheduled now. Please report this, with the log before it",
			"job", j.ID, "case", j.Root, "state", j.State, "due", j.Due)
	}
	return m.adopt(ctx, lost)
}
