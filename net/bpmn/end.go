package bpmn

import (
	"fmt"

	"github.com/tasq-dev/tasq/net"
)

// How a scope ends. A process ends when its last token is consumed, so ends that can be reached together are joined by
// an or-join:
//
//	ends -> finish -> exit
//
// If there are event sub-processes, "main" joins the ends of the rest, and disarms them:
//
//	ends -> main -> finish -> exit
//	ends of event sub-processes -> finish
//
// An error, or another interruption, must end the scope too, but not through its exit. If there can be several tokens,
// the or-join has to wait for the throwing event as for any other end. So its token goes there as well, and a flag
// records what happened. The flag "calm" is marked initially:
//
//	throwing event -> thrown, finish       and cancels all that has not ended, and "calm"
//	finish -> over
//	over, calm -> normal -> exit
//	over, thrown -> escapes -> catcher
//
// If the catcher is outside of the definition, the throwing event is an end that cancels everything that has not ended.

// throw is a task whose completion throws something, and its catcher.
type throw struct {
	task    string
	catcher *node
}

// isFlagged reports whether a scope needs flags to record how it ended.
func (s *scope) isFlagged() bool {
	if !s.thrown || !s.parallel {
		return false
	}
	for _, n := range s.nodes {
		if !n.handler && n.isEnd() {
			return true
		}
	}
	return false
}

// flags adds the conditions that are marked initially in a scope.
func (e *emitter) flags(s *scope) {
	if s.isFlagged() {
		s.nothingThrown = e.condition(s.prefix()+"calm", net.Inner, s.el)
	}
	if s.again {
		s.idle = e.condition(s.prefix()+"idle", net.Inner, s.el)
	}
}

// flags lists the conditions that are marked initially in the scope.
func (s *scope) flags() []string {
	var flags []string
	for _, name := range []string{s.nothingThrown, s.idle} {
		if name != "" {
			flags = append(flags, name)
		}
	}
	return flags
}

// outward splits a list into the throws that leave the definition and the others.
func (s *scope) outward(throws []throw) (out, rest []throw) {
	for _, t := range throws {
		if s.inline || s.catches(t.catcher) {
			rest = append(rest, t)
		} else {
			out = append(out, t)
		}
	}
	return out, rest
}

// throwsOf lists what is thrown to interrupting catchers: by events of a scope, and out of its sub-processes other than
// event sub-processes.
func throwsOf(s *scope) []throw {
	all := s.extra
	for _, n := range s.nodes {
		switch {
		case n.handler:
		case n.catcher != nil && n.catcher.interrupting:
			all = append(all, throw{n.name, n.catcher})
		case n.sub != nil && n.sub.inline:
			all = append(all, n.sub.leaving...)
		}
	}
	return all
}

func tasksOf(throws []throw) []string {
	var names []string
	for _, t := range throws {
		names = append(names, t.task)
	}
	return names
}

// end joins the ends of a scope, and returns those that remain to be connected to its exit. One of them is reached.
func (e *emitter) end(s *scope, exit string, ends []string, handlers []handler) []string {
	if s.loose {
		return ends
	}
	out, throws := s.outward(throwsOf(s))
	ends = append(ends, tasksOf(out)...)
	flagged := s.nothingThrown != ""
	if flagged {
		ends = append(ends, tasksOf(throws)...)
	}
	if s.idle != "" {
		ends = []string{e.count(s, ends)}
	}
	if len(s.armed) > 0 && len(ends) > 0 {
		main := e.gather(s, "main", ends)
		e.later = append(e.later, func() { e.cancel(main, s.armed) })
		ends = []string{main}
	}
	var alone []string
	for _, h := range handlers {
		outOfHandler, rest := s.outward(h.throws)
		alone = append(alone, h.alone...)
		ends = append(ends, h.ends...)
		if flagged {
			ends = append(ends, tasksOf(rest)...)
		}
		if h.stops {
			alone = append(alone, tasksOf(outOfHandler)...)
		} else {
			ends = append(ends, tasksOf(outOfHandler)...)
		}
		throws, out = append(throws, rest...), append(out, outOfHandler...)
	}
	for _, t := range out {
		e.later = append(e.later, func() { e.stopRest(s, t.task) })
	}
	switch i, isTask := e.tasks[exit]; {
	case !flagged && (!s.parallel || len(ends) < 2):
	case !flagged && len(alone) == 0 && isTask:
		e.def.Tasks[i].Join = net.Or
	default:
		finish := e.gather(s, "finish", ends)
		e.note(Closed, s.el, fmt.Sprintf("it has %d ends; the routing task %s with an or-join is added behind them",
			len(ends), finish))
		ends = []string{finish}
	}
	if flagged {
		ends, throws = e.distinguishEnds(s, ends[0], throws)
	}
	e.leave(s, throws)
	return append(ends, alone...)
}

// gather adds a routing task after ends; if several can be reached, it waits for all that still can.
func (e *emitter) gather(s *scope, wanted string, ends []string) string {
	join := net.Xor
	if s.parallel && len(ends) > 1 {
		join = net.Or
	}
	name := e.routing(s.prefix()+wanted, join, net.And, s.el)
	for _, end := range ends {
		e.flow(end, name, s.el)
	}
	return name
}

// count joins ends of which some may be reached several times. It takes one token after the other, and each time an
// or-join decides whether another can come. The condition "idle" is marked initially, and whenever no token is being
// taken:
//
//	ends -> ended
//	ended, idle -> next -> last, taken
//	last, rest -> look -> looked           the or-join: "last" is marked as long as another end can be reached
//	looked, taken -> on -> rest, idle      it was
//	looked, idle -> over                   no other can
func (e *emitter) count(s *scope, ends []string) string {
	at := func(name string) string { return e.condition(s.prefix()+name, net.Inner, s.el) }
	step := func(name string, join net.Rule) string { return e.routing(s.prefix()+name, join, net.And, s.el) }
	ended, last, taken, rest, looked := at("ended"), at("last"), at("taken"), at("rest"), at("looked")
	next, look := step("next", net.And), step("look", net.Or)
	on, over := step("on", net.And), step("all_ended", net.And)
	for _, end := range ends {
		e.flow(end, ended, s.el)
	}
	for _, f := range [][2]string{
		{ended, next}, {s.idle, next}, {next, last}, {next, taken}, {last, look}, {rest, look}, {look, looked},
		{looked, on}, {taken, on}, {on, rest}, {on, s.idle}, {looked, over}, {s.idle, over},
	} {
		e.flow(f[0], f[1], s.el)
	}
	e.note(Closed, s.el, "one of its ends may be reached several times; what counts that ends with the routing task "+over)
	return over
}

// distinguishEnds adds the flags after "finish". It returns the normal end, and for each catcher the task that leads to
// it.
func (e *emitter) distinguishEnds(s *scope, finish string, throws []throw) (ends []string, escapes []throw) {
	over := e.condition(s.prefix()+"over", net.Inner, s.el)
	e.flow(finish, over, s.el)
	normal := e.routing(s.prefix()+"normal", net.And, net.And, s.el)
	e.flow(over, normal, s.el)
	e.flow(s.nothingThrown, normal, s.el)
	flags := map[*node]string{}
	for _, t := range throws {
		flag := flags[t.catcher]
		if flag == "" {
			flag = e.condition(t.catcher.name+"_thrown", net.Inner, t.catcher.el)
			flags[t.catcher] = flag
			escape := e.routing(t.catcher.name+"_escapes", net.And, net.And, t.catcher.el)
			e.flow(over, escape, s.el)
			e.flow(flag, escape, s.el)
			escapes = append(escapes, throw{escape, t.catcher})
		}
		e.flow(t.task, flag, s.el)
		e.later = append(e.later, func() {
			e.cancel(t.task, append(e.allButEnded(s, t.task), s.nothingThrown))
			if s.owner != nil { // otherwise the or-join would wait for tokens that a loop may produce again after such an event
				e.cancel(t.task, s.owner.armed)
			}
		})
	}
	return []string{normal}, escapes
}

// stopRest makes a task that ends a scope cancel what has not ended in it. If there are no other tokens, that is only
// what waits for events.
func (e *emitter) stopRest(s *scope, task string) {
	if s.parallel {
		e.cancel(task, e.allButEnded(s, task))
	} else {
		e.cancel(task, s.armed)
	}
}

// leave passes what is thrown out of a scope to its catcher, or to the enclosing scope.
func (e *emitter) leave(s *scope, throws []throw) {
	for _, t := range throws {
		if s.nothingThrown == "" {
			e.later = append(e.later, func() {
				if s.parallel {
					e.cancel(t.task, e.all(s, t.task))
				} else {
					e.cancel(t.task, s.armed)
				}
			})
		}
		if t.catcher.kind == boundaryEvent || !s.catches(t.catcher) {
			e.later = append(e.later, func() { e.cancel(t.task, s.owner.armed) })
		}
		if s.catches(t.catcher) {
			e.flow(t.task, t.catcher.enter, s.el)
		} else {
			s.leaving = append(s.leaving, t)
		}
	}
}

// terminates sets the regions of events that end a scope immediately. If there are no other tokens, nothing else needs
// to be canceled.
func (e *emitter) terminates(s *scope) {
	for _, n := range s.nodes {
		uncaught := n.isThrow() && n.catcher == nil && n.trigger != "escalation"
		if s.parallel && n.kind == endEvent && (uncaught || n.trigger == "terminate") {
			e.cancel(n.name, e.allButEnded(s, n.name))
		}
	}
}
