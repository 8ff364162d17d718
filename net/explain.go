package net

import (
	"fmt"
	"slices"
	"strings"
)

// Explanation says why a task can start or what it waits for. It holds names only, so it can be stored and shown
// without the net. Its zero value explains nothing.
type Explanation struct {
	Task    string
	Join    Rule
	Busy    bool     // the task is busy, and cannot start before it has completed
	Enabled bool     // the join is satisfied
	Marked  []string // inputs with a token, in flow order
	Empty   []string // inputs without one, in flow order
	// Waits holds, for an or-join that waits though some input is marked, a run for every empty input that can still
	// get a token.
	Waits []Wait
	// Undecided is set where the search for such runs ran out of its budget. The task waits, and Waits may be
	// incomplete.
	Undecided bool
}

// Wait is a way in which an empty input of an or-join can still get a token.
type Wait struct {
	Input string   // the empty input
	From  []string // where the run begins: conditions that hold a token now, and tasks that are busy now
	Path  []string // the tasks that complete in the run, in this order; none can be left out
}

// Explain says why a task can start, or what it waits for. It agrees with [Net.Enabled], and costs more: it is for
// people, not for every step of a case.
func (n *Net) Explain(t TaskID, m Marking, busy Bits) Explanation {
	d := n.Enabled(t, m, busy)
	e := Explanation{
		Task: n.TaskName(t), Join: n.def.Tasks[t].Join,
		Busy: busy.Has(int(t)), Enabled: d.Enabled, Undecided: d.Undecided,
	}
	for _, c := range n.tasks[t].inputs {
		if m[c] > 0 {
			e.Marked = append(e.Marked, n.ConditionName(c))
		} else {
			e.Empty = append(e.Empty, n.ConditionName(c))
		}
	}
	if e.Join == Or && !e.Busy && !e.Enabled && len(e.Marked) > 0 {
		n.explainWait(&e, t, m, busy)
	}
	return e
}

func (n *Net) explainWait(e *Explanation, t TaskID, m Marking, busy Bits) {
	s := searches.Get().(*search)
	defer searches.Put(s)
	s.load(n.orJoin(t), m, busy)
	s.begin(m)
	goals := slices.Clone(s.goal)
	for q := range goals {
		if !goals[q] {
			continue
		}
		clear(s.goal)
		s.goal[q] = true
		run, a := s.witness(n)
		switch a {
		case unknown:
			e.Undecided = true
		case yes:
			w := Wait{Input: n.ConditionName(s.j.places[q])}
			w.From, w.Path = n.runNames(s, run)
			e.Waits = append(e.Waits, w)
		}
	}
}

// witness finds a run that answers the question, with nothing in it that could be left out.
func (s *search) witness(n *Net) ([]int32, answer) {
	if s.look(n) == no || s.project(n) == no {
		return nil, no
	}
	switch s.forward(false) {
	case no:
		return nil, no
	case yes:
		return s.shorten(s.forthRun()), yes
	}
	a := s.backward()
	if a != yes {
		return nil, a
	}
	return s.shorten(s.backRun()), yes
}

// forthRun lists the moves that lead to the last state that forward made.
func (s *search) forthRun() []int32 {
	var run []int32
	for i := int32(s.states.len() - 1); i >= 0; i = s.states.parent[i] {
		run = append(slices.Clone(s.states.between(i)), run...)
	}
	return run
}

// backRun lists the moves that lead from the last past that backward made to the goal. It may start a task that happens
// to be busy: then the task only has to continue.
func (s *search) backRun() []int32 {
	var run []int32
	copy(s.next, s.now)
	for i := int32(s.pasts.len() - 1); i >= 0; i = s.pasts.parent[i] {
		for _, k := range s.pasts.between(i) {
			if m := &s.j.moves[k]; m.phase != ends && s.next[len(s.j.places)+int(m.task)] > 0 {
				if k = s.goOn(m); k < 0 {
					continue
				}
			}
			s.make(&s.j.moves[k], s.next)
			run = append(run, k)
		}
	}
	return run
}

// goOn finds the move that ends a busy task as a move would that also starts it; -1 if that would only start it.
func (s *search) goOn(m *move) int32 {
	return int32(slices.IndexFunc(s.j.moves, func(o move) bool {
		return m.phase == wholly && o.phase == ends && o.task == m.task && slices.Equal(o.puts, m.puts)
	}))
}

// shorten leaves out of a run what it can do without: ever smaller parts of it.
func (s *search) shorten(run []int32) []int32 {
	for size := max(len(run)/2, 1); size > 0; {
		shorter := run
		for at := len(run) - size; at >= 0; at-- {
			if at+size > len(shorter) {
				continue
			}
			if without := slices.Concat(shorter[:at], shorter[at+size:]); s.replays(without) {
				shorter = without
			}
		}
		if len(shorter) == len(run) {
			size /= 2
		}
		run = shorter
	}
	return run
}

// replays reports whether a run can be made and answers the question.
func (s *search) replays(run []int32) bool {
	v := s.next
	copy(v, s.now)
	for _, k := range run {
		if !s.enabled(&s.j.moves[k], v) {
			return false
		}
		s.make(&s.j.moves[k], v)
	}
	return s.arrived(v)
}

// runNames lists, by name, where a run begins and the tasks that complete in it.
func (n *Net) runNames(s *search, run []int32) (from, path []string) {
	made := make([]int, s.j.cells())
	for _, k := range run {
		m := &s.j.moves[k]
		for _, c := range m.takes {
			if made[c]--; made[c] < 0 {
				made[c] = 0
				from = append(from, n.cellName(&s.j.slice, int(c)))
			}
		}
		for _, c := range m.puts {
			made[c]++
		}
		if m.phase != starts {
			path = append(path, n.TaskName(s.j.tasks[m.task]))
		}
	}
	return from, path
}

func (n *Net) cellName(s *slice, cell int) string {
	if cell < len(s.places) {
		return n.ConditionName(s.places[cell])
	}
	return n.TaskName(s.tasks[cell-len(s.places)])
}

// String explains in a sentence, and for an or-join that waits in a line more for each way.
func (e Explanation) String() string {
	who := fmt.Sprintf("%s-join %q", e.Join, e.Task)
	marked, empty := strings.Join(e.Marked, ", "), strings.Join(e.Empty, ", ")
	switch {
	case e.Busy:
		return fmt.Sprintf("task %q is busy and cannot start again before it has completed", e.Task)
	case e.Enabled && e.Join == Or && len(e.Empty) > 0:
		return fmt.Sprintf("%s can start: there is a token in %s, and none can come to %s any more", who, marked, empty)
	case e.Enabled:
		return fmt.Sprintf("%s can start: there is a token in %s", who, marked)
	case e.Join == And:
		return fmt.Sprintf("%s waits for a token in %s", who, empty)
	case len(e.Marked) == 0:
		return fmt.Sprintf("%s waits for a token in any of %s", who, empty)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s waits: there is a token in %s, but", who, marked)
	if e.Undecided {
		fmt.Fprintf(&b, " whether one can still come to %s is not decided", empty)
	} else {
		b.WriteString(" one can still come")
	}
	for _, w := range e.Waits {
		fmt.Fprintf(&b, "\n\tto %s: from %s when %s", w.Input, strings.Join(w.From, " and "), strings.Join(w.Path, ", then "))
		b.WriteString(map[bool]string{true: " completes", false: " complete"}[len(w.Path) == 1])
	}
	return b.String()
}
