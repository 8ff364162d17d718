package store

import (
	"math/bits"
	"time"

	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// Ended counts the work items of a task, or the cases of a workflow, that ended in the same way, after about the same time, and in one hour if
// counted by hour.
type Ended struct {
	Workflow string
	Task     string         // "" for cases
	State    workitem.State // Completed or Failed, also for cases; what was canceled is not counted
	Hour     time.Time      // the beginning of the hour, in UTC; zero if all hours are one
	Took     int            // the class of the durations, see [TookClass]; 0 for those that failed
	N        int64
}

// EndedOf returns the count that an item belongs to; false if it has not ended, or was canceled.
func EndedOf(workflow string, it *workitem.Item) (e Ended, ok bool) {
	if it.State != workitem.Completed && it.State != workitem.Failed {
		return Ended{}, false
	}
	return endedAs(workflow, it.Task, it.State, it.Started, it.Ended), true
}

// EndedCase returns the count that a case belongs to, with its duration from creation to end; false if it has not ended,
// or was canceled.
func EndedCase(c *state.Case) (e Ended, ok bool) {
	switch c.State {
	case state.CaseCompleted:
		return endedAs(c.Workflow, "", workitem.Completed, c.Created, c.Ended), true
	case state.CaseFailed:
		return endedAs(c.Workflow, "", workitem.Failed, c.Created, c.Ended), true
	}
	return Ended{}, false
}

func endedAs(workflow, task string, as workitem.State, from, to time.Time) Ended {
	e := Ended{Workflow: workflow, Task: task, State: as, Hour: to.UTC().Truncate(time.Hour)}
	if as == workitem.Completed && !from.IsZero() {
		e.Took = TookClass(to.Sub(from))
	}
	return e
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
