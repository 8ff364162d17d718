package store

import (
	"math/bits"
	"time"

	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// Ended counts the work items of a task, or the cases of a workflow, that ended in the same way, after about the same time, and in one hour if
// counted by hour.
//
// An item is counted when it ends: once in the state in which it ended, and if it was started, once more in the state
// Started, by how long it waited. For example, an item that is due at 9:00, starts at 9:20 and completes at 10:05:
//
//	state      hour   took
//	completed  10:00  45 m
//	started    10:00  20 m
type Ended struct {
	Workflow string
	Task     string         // "" for cases
	State    workitem.State // Completed or Failed, also for cases; Started for the waits of items; what was canceled is not counted
	Hour     time.Time      // the beginning of the hour of the end, in UTC; zero if all hours are one
	Took     int            // the class of the durations, see [TookClass]; 0 for those that failed
	N        int64
}

// EndedCounts has the number of each kind of ended items and cases, whose N is 0.
type EndedCounts map[Ended]int64

// AddItem adds n to the counts that an item belongs to: none if it has not ended, or was canceled.
func (c EndedCounts) AddItem(workflow string, it *workitem.Item, n int64) {
	if it.State != workitem.Completed && it.State != workitem.Failed {
		return
	}
	e := Ended{Workflow: workflow, Task: it.Task, State: it.State, Hour: it.Ended.UTC().Truncate(time.Hour)}
	if it.State == workitem.Completed && !it.Started.IsZero() {
		e.Took = TookClass(it.Ended.Sub(it.Started))
	}
	c[e] += n
	if !it.Started.IsZero() {
		e.State, e.Took = workitem.Started, TookClass(Waited(it))
		c[e] += n
	}
}

// AddCase adds n to the count that a case belongs to, with its duration from creation to end: none if it has not ended, or was canceled.
func (c EndedCounts) AddCase(k *state.Case, n int64) {
	e := Ended{Workflow: k.Workflow, Hour: k.Ended.UTC().Truncate(time.Hour)}
	switch k.State {
	case state.CaseCompleted:
		e.State, e.Took = workitem.Completed, TookClass(k.Ended.Sub(k.Created))
	case state.CaseFailed:
		e.State = workitem.Failed
	default:
		return
	}
	c[e] += n
}

// Waited returns the time from when an item was due, or was created if it was due at once, to its start; 0 if it was
// started before, as a person may do.
func Waited(it *workitem.Item) time.Duration {
	due := it.Created
	if it.Due.After(due) {
		due = it.Due
	}
	return max(it.Started.Sub(due), 0)
}

// Durations are counted by classes, eight for each power of two of microseconds:
//
//	class       0 1 2 3 4 5 6 7 8 ... 15  16  17  ... 23  24  25 ...
//	from, us    0 1 2 3 4 5 6 7 8 ... 15  16  18  ... 30  32  36 ...
//
// So the middle of a class is at most 6 % from any duration in it.
const (
	classesLog = 3
	classes    = 1 << classesLog
)

// TookClass returns the histogram class of a duration; 0 if the duration is zero or negative. Longer
// durations have the same or a higher class.
func TookClass(d time.Duration) int {
	us := max(d.Microseconds(), 0)
	if us < classes {
		return int(us)
	}
	high := bits.Len64(uint64(us)) - 1
	return classes*(high-classesLog+1) + int(us>>(high-classesLog))&(classes-1)
}

// TookOf returns the middle of a class, which differs by at most 6 % from each duration of the class.
func TookOf(class int) time.Duration {
	return (leastOf(class) + leastOf(class+1) - time.Microsecond) / 2
}

// leastOf is the least duration of a class.
func leastOf(class int) time.Duration {
	if class < classes {
		return time.Duration(class) * time.Microsecond
	}
	return time.Duration(classes+class%classes) << (class/classes - 1) * time.Microsecond
}
