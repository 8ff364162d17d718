package dispatch

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tasq-dev/tasq/engine/internal/kernel"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// loopGuard detects loops that take no time: a task whose timer is due at once, and which its timer enables again. Each
// round is a separate command, so the bounds of the kernel for one command do not stop it. On a real clock such a loop
// is work like any other. On a clock that stands, as in tests and scenario files, it would keep the engine busy without
// end. So the rounds of one task at one time are counted, and after maxRounds the next job of the task is held back
// until the clock moves.
type loopGuard struct {
	at    int64           // the moment, in microseconds since 1970
	since map[roundOf]int // the first generation of each task at that time
	last  map[roundOf]int
	held  []*state.Job
	err   error
}

// roundOf identifies a task of a case.
type roundOf struct {
	at   workitem.CaseID
	task string
}

const (
	firstCheck = 100   // generations of a task before the first check: most tasks never have as many
	maxRounds  = 5_000 // of one task at one time; about a second
)

// holds counts a job that was opened, and reports whether it is held back.
func (s *loopGuard) holds(j *state.Job) bool {
	if j.Generation < firstCheck || j.Due.After(j.Created) {
		return false
	}
	if at := j.Created.UnixMicro(); at != s.at {
		if len(s.held) > 0 {
			return false // until the clock moves
		}
		s.at, s.since, s.last = at, make(map[roundOf]int), make(map[roundOf]int)
	}
	of := roundOf{j.Case, j.Task}
	if _, known := s.since[of]; !known {
		s.since[of] = j.Generation
	}
	s.last[of] = j.Generation
	if s.last[of]-s.since[of] < maxRounds {
		return false
	}
	s.held = append(s.held, j)
	s.err = fmt.Errorf("%w: at one moment, %s, case %s went round more than %d times: %s; let one of these tasks take some time, "+
		"or the loop have a way out that is taken", kernel.ErrRunaway, j.Created.Format("2006-01-02T15:04:05.000Z"), j.Case,
		maxRounds, s.rounds(j.Case))
	return true
}

// rounds describes the tasks of a loop, with how often each was enabled.
func (s *loopGuard) rounds(id workitem.CaseID) string {
	var list []string
	for _, of := range slices.SortedFunc(maps.Keys(s.since), func(a, b roundOf) int { return cmp.Compare(a.task, b.task) }) {
		if n := s.last[of] - s.since[of]; of.at == id && n > 0 {
			list = append(list, fmt.Sprintf("task %s was enabled %d times", of.task, n))
		}
	}
	return strings.Join(list, ", ")
}

// release returns the jobs that were held back at a time other than now.
func (s *loopGuard) release(now int64) []*state.Job {
	if len(s.held) == 0 || now == s.at {
		return nil
	}
	held := s.held
	*s = loopGuard{}
	return held
}

// forget drops a job that was canceled while it was held back.
func (s *loopGuard) forget(id workitem.JobID) {
	s.held = slices.DeleteFunc(s.held, func(j *state.Job) bool { return j.ID == id })
	if len(s.held) == 0 {
		s.err = nil
	}
}

// runaway describes the loop that takes no time; nil if there is none.
func (s *scheduler) runaway() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.loops.err
}
