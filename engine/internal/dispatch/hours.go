package dispatch

import (
	"math"
	"time"

	"github.com/tasq-dev/tasq/schedule"
	"github.com/tasq-dev/tasq/workitem"
)

// A function can be restricted to a time window. A job that is due outside of it leaves its queue until the window
// opens, so it uses no worker, and does not block the jobs behind it. The window is part of the definition, so all
// engines decide the same.
//
//	due ──▶ queue ──▶ a worker is free ──▶ the window is open ──▶ limits, claim
//	          ▲                                │ it is closed
//	          └──────── it opens ◀─────────────┘

// hours has the windows of the functions of an engine.
type hours struct {
	list    []*windowJobs // entry.hours is the index plus 1
	indexes map[schedule.Window]uint16
}

// windowJobs is a window with the jobs that wait for it to open.
type windowJobs struct {
	window schedule.Window
	jobs   map[workitem.JobID][]entry // each with its entries, see entriesOf
	from   int64                      // the time for which opens was computed
	opens  int64
}

// never is the opening time of a window that does not open.
const never = math.MaxInt64

// index returns the number of a window, and adds it if it is new; 0 for a window that is always open.
func (h *hours) index(w schedule.Window) uint16 {
	if w.IsZero() {
		return 0
	}
	if i, known := h.indexes[w]; known {
		return i
	}
	if h.indexes == nil {
		h.indexes = make(map[schedule.Window]uint16)
	}
	h.list = append(h.list, &windowJobs{window: w, jobs: make(map[workitem.JobID][]entry)})
	h.indexes[w] = uint16(len(h.list))
	return h.indexes[w]
}

// isClosed reports whether the window of an entry is closed.
func (h *hours) isClosed(n *entry, now int64) bool {
	return n.hours != 0 && !h.list[n.hours-1].window.Contains(time.UnixMicro(now))
}

// wait makes a job wait until its window opens.
func (h *hours) wait(n entry) {
	s := h.list[n.hours-1]
	s.jobs[n.job] = append(s.jobs[n.job], n)
}

// drop removes the entries of a job.
func (h *hours) drop(job workitem.JobID) {
	for _, s := range h.list {
		delete(s.jobs, job)
	}
}

// open removes the jobs whose window has opened, and calls f with each.
func (h *hours) open(now int64, f func(entry)) {
	for _, s := range h.list {
		if len(s.jobs) == 0 || s.next(now) > now {
			continue
		}
		waited := s.jobs
		s.jobs = make(map[workitem.JobID][]entry)
		for _, list := range waited {
			for _, n := range list {
				f(n)
			}
		}
	}
}

// next returns the first time from now on at which the window is open.
func (s *windowJobs) next(now int64) int64 {
	if now < s.from || now >= s.opens { // the clock was set back, or the window has opened
		s.from, s.opens = now, never
		if at := s.window.Open(time.UnixMicro(now)); !at.IsZero() {
			s.opens = at.UnixMicro()
		}
	}
	return s.opens
}

// due returns when the first window opens for which jobs wait; never if none wait.
func (h *hours) due(now int64) (due int64) {
	due = never
	for _, s := range h.list {
		if len(s.jobs) > 0 {
			due = min(due, s.next(now))
		}
	}
	return due
}

// each calls f with the waiting entries.
func (h *hours) each(f func(*entry)) {
	for _, s := range h.list {
		for _, list := range s.jobs {
			for i := range list {
				f(&list[i])
			}
		}
	}
}
