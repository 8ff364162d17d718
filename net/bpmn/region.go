package bpmn

import (
	"slices"

	"github.com/tasq-dev/tasq/net"
)

// span is the part of a definition that was emitted for a scope: from the beginning to where its ends are joined, and
// from there to its end.
type span struct{ begin, ends, end [3]int }

// mark returns the numbers of tasks, conditions and flows.
func (e *emitter) mark() [3]int {
	return [3]int{len(e.def.Tasks), len(e.def.Conditions), len(e.def.Flows)}
}

// cancel adds members to the region of a task, each once and never the task itself.
func (e *emitter) cancel(owner string, members []string) {
	e.members += len(members)
	if e.members > maxRegions {
		return // the file is refused for it
	}
	t := &e.def.Tasks[e.tasks[owner]]
	seen := make(map[string]bool, len(members)+len(t.Cancels))
	for _, m := range t.Cancels {
		seen[m] = true
	}
	for _, m := range members {
		if m != owner && !seen[m] {
			seen[m] = true
			t.Cancels = append(t.Cancels, m)
		}
	}
}

// all lists what can have a token or be active in a scope, for the region of a task that stops it.
func (e *emitter) all(s *scope, owner string) []string {
	return e.within(s.inside.begin, s.inside.end, owner)
}

// allButEnded is [emitter.all] without the ends that were reached and wait for the last end of the scope, which are
// joined anyway. They must not be in the region: an or-join does not wait for an input that can only be marked by
// removing another, so a reached end would not wait for an event that terminates the process.
func (e *emitter) allButEnded(s *scope, owner string) []string {
	all := e.within(s.inside.begin, s.inside.ends, owner)
	return slices.DeleteFunc(all, func(name string) bool { return slices.Contains(s.flags(), name) })
}

// within lists the tasks that own work items or cases, and the conditions except for those that the owner is about to
// mark and those that a routing task empties immediately.
func (e *emitter) within(begin, end [3]int, owner string) []string {
	if e.members += end[0] - begin[0] + end[2] - begin[2]; e.members > maxRegions {
		return nil
	}
	var members []string
	for _, t := range e.def.Tasks[begin[0]:end[0]] {
		if t.Kind != net.Routing {
			members = append(members, t.Name)
		}
	}
	for _, c := range e.def.Conditions[begin[1]:end[1]] {
		members = append(members, c.Name)
	}
	for _, f := range e.def.Flows[begin[2]:end[2]] {
		if !e.isCondition(f.From) && !e.isCondition(f.To) && f.From != owner && !e.passesAtOnce(f.To) {
			members = append(members, net.ImplicitName(f.From, f.To))
		}
	}
	return members
}

func (e *emitter) passesAtOnce(task string) bool {
	t := &e.def.Tasks[e.tasks[task]]
	return t.Kind == net.Routing && t.Join == net.Xor
}

// besides lists what waits beside an activity for other events than the given one. If that event also takes tokens of a
// loop, its own condition may still be marked, and is listed too.
func (n *node) besides(event *node) []string {
	if n.sub != nil && n.sub.stop == event {
		return n.armed
	}
	var others []string
	for i := 0; i+1 < len(n.armed); i += 2 {
		if n.armed[i+1] != event.name {
			others = append(others, n.armed[i], n.armed[i+1])
		}
	}
	return others
}
