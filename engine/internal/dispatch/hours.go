package dispatch

import (
	"math"
	"time"

	"github.com/tasq-dev/tasq/schedule"
	"github.com/tasq-dev/tasq/workitem"
)

// A job whose function has hours, and that is due while their window is closed, leaves its queue until the window opens; so it holds no
// worker, and others of its queue pass. The window is part of the definition, so all engines decide the same.
//
//	due ──▶ queue ──▶ a worker is free ──▶ the window is open ──▶ limits, claim
//	          ▲                                │ it is closed
//	          └──────── it opens ◀─────────────┘

// hours are the windows of the functions of an engine.
type hours struct {
	list []*shift // entry.hours is the index, from 1
	of   map[schedule.Window]uint16
}

// shift is a window, and the jobs that wait until it opens.
type shift struct {
	window schedule.Window
	jobs   map[workitem.JobID][]entry // each with its entries, see entriesOf
	from   int64                      // opens was computed for this time
	opens  int64
}

// never is when a window opens that does not.
const never = math.MaxInt64

// index finds or makes the number of a window; 0 for one that is always open.
func (h *hours) index(w schedule.Window) uint16 {
	if w.IsZero() {
		return 0
	}
	if i, known := h.of[w]; known {
		return i
	}
	if h.of == nil {
		h.of = make(map[schedule.Window]uint16)
	}
	h.list = append(h.list, &shift{window: w, jobs: make(map[workitem.JobID][]entry)})
	h.of[w] = uint16(len(h.list))
	return h.of[w]
}

// isClosed reports whether an entry is of a function whose window is closed.
func (h *hours) isClosed(n *entry, now int64) bool {
	return n.hours != 0 && !h.list[n.hours-1].window.Contains(time.UnixMicro(now))
}

// wait has a job wait until its window opens.
func (h *hours) wait(n entry) {
	s := h.list[n.hours-1]
	s.jobs[n.job] = append(s.jobs[n.job], n)
}

// drop forgets a job, which has another entry or none from now on.
func (h *hours) drop(job workitem.JobID) {
	for _, s := range h.list {
		delete(s.jobs, job)
	}
}

// open calls f with the jobs whose window has opened, and removes them.
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

// next is the first time from now on at which the window is open.
func (s *shift) next(now int64) int64 {
	if now < s.from || now >= s.opens { // the clock was set back, or it is time
		s.from, s.opens = now, never
		if at := s.window.Open(time.UnixMicro(now)); !at.IsZero() {
			s.opens = at.UnixMicro()
		}
	}
	return s.opens
}

// due is when the first of the windows opens that jobs wait for; never if none waits.
func (h *hours) due(now int64) (due int64) {
	due = never
	for _, s := range h.list {
		if len(s.jobs) > 0 {
			due = min(due, s.next(now))
		}
	}
	return due
}

// each calls f with the entries that wait.
func (h *hours) each(f func(*entry)) {
	for _, s := range h.list {
		for _, list := range s.jobs {
			for i := range list {
				f(&list[i])
			}
		}
	}
}
