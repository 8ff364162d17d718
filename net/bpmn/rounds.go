package bpmn

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/net/internal/xmlread"
)

// An activity that runs several times, in a loop or in several instances, is a composite task. Its workflow has a task
// for each run:
//
//	three instances at once   in -> each -> (pack, pack_2, pack_3) -> all -> out
//	one after the other       in -> pack -> pack_2 -> pack_3 -> out
//	a loop of up to two       in -> pack -> more -> pack_2 -> enough -> out, more -> enough
//	as often as data say      in -> again -> pack -> more -> again, more -> out
//
// The last one runs once or more, in sequence: the number is unknown, and has no known limit.

// maxRounds is the largest number of runs that is represented exactly.
const maxRounds = 20

// repetition is how often an activity runs.
type repetition struct {
	el       *xmlread.Element
	least    int
	most     int // 0 if unknown
	together bool
}

// repetition reads a marker of an activity, or of a process, which has no activity.
func (d *decoder) repetition(s *scope, n *node, c *xmlread.Element) {
	if n == nil {
		d.noteRaw(MultiInstance, c, s.el.String(), "a process that runs several times is read as one that runs once")
		return
	}
	r := &repetition{el: c, least: 1, together: c.Attr("isSequential") != "true"}
	number := c.Attr("loopMaximum")
	if c.Name == "standardLoopCharacteristics" {
		r.together = false
		if c.Attr("testBefore") == "true" {
			r.least = 0
		}
	} else if k := c.Child("loopCardinality"); k != nil && c.Child("completionCondition") == nil {
		number = k.Text
	}
	if most, err := strconv.Atoi(strings.TrimSpace(number)); err == nil && most >= 1 && most <= maxRounds {
		r.most = most
		if c.Name != "standardLoopCharacteristics" {
			r.least = most
		}
	}
	n.repeats = r
}

// hasRounds reports whether an activity has a workflow for its runs. It has none if something is thrown out of it, or
// if it is part of the enclosing net.
func (n *node) hasRounds() bool {
	return n.repeats != nil && len(n.outcomes) == 0 && (n.sub == nil || !n.sub.inline)
}

// noteRepetitions adds notes on repetitions that are not represented exactly.
func (d *decoder) noteRepetitions(s *scope) {
	for _, n := range s.nodes {
		if n.sub != nil {
			d.noteRepetitions(n.sub)
		}
		switch {
		case n.repeats == nil:
		case !n.hasRounds():
			d.noteRaw(MultiInstance, n.repeats.el, n.el.String(), "it runs several times, and an event can lead out of it; "+
				"it is read as done once")
		case n.repeats.most == 0:
			often := map[bool]string{true: "once or more", false: "any number of times"}[n.repeats.least > 0]
			d.noteRaw(MultiInstance, n.repeats.el, n.el.String(), "how often it runs is not a number from 1 to "+
				strconv.Itoa(maxRounds)+" in the file; it is read as done "+often+", one after the other")
		}
	}
}

// wordy returns a text for the name of a workflow.
func (n *node) wordy() string {
	if n.label != "" {
		return n.label
	}
	return n.id
}

// emitRounds builds the workflow of an activity that runs several times.
func (d *decoder) emitRounds(n *node) {
	e := d.emitter(d.rounds[n.el], n.label, n.el)
	in, out := e.condition("in", net.Start, n.el), e.condition("out", net.End, n.el)
	r := n.repeats
	names := make([]string, max(1, r.most))
	for i := range names {
		names[i] = e.names.Name(n.label, n.id, n.el.Name)
		e.identify(n, names[i])
		e.once(n, names[i])
	}
	switch {
	case r.most == 0:
		e.unbounded(n, in, names[0], out)
	case r.together && r.most > 1:
		each, all := e.routing("each", net.And, net.And, n.el), e.routing("all", net.And, net.And, n.el)
		e.flow(in, each, n.el)
		for _, name := range names {
			e.flow(each, name, n.el)
			e.flow(name, all, n.el)
		}
		e.flow(all, out, n.el)
	default:
		e.rows(n, in, names, out)
	}
	d.note(Closed, n.el, fmt.Sprintf("it may run several times; the workflow %s holds its runs", d.rounds[n.el]))
	e.out.Unnamed = e.unnamed.Names()
	d.result.Nets = append(d.result.Nets, *e.out)
}

// unbounded adds a task that runs any number of times, including zero.
func (e *emitter) unbounded(n *node, in, name, out string) {
	again := e.routing("again", net.Xor, net.And, n.el)
	more := e.routing("more", net.Xor, net.Xor, n.el)
	e.flow(again, name, n.el)
	e.flow(name, more, n.el)
	e.flow(more, again, n.el)
	e.flow(more, out, n.el)
	if n.repeats.least > 0 {
		e.flow(in, again, n.el)
		return
	}
	first := e.routing("first", net.And, net.Xor, n.el)
	e.flow(in, first, n.el)
	e.flow(first, again, n.el)
	e.flow(first, out, n.el)
}

// rows adds tasks that run in sequence, and may end after any of them.
func (e *emitter) rows(n *node, in string, names []string, out string) {
	enough := ""
	if n.repeats.least < len(names) {
		enough = e.routing("enough", net.Xor, net.And, n.el)
		e.flow(enough, out, n.el)
	}
	at := in
	for i, name := range names {
		if i >= n.repeats.least {
			more := e.routing("more", net.Xor, net.Xor, n.el)
			e.flow(at, more, n.el)
			e.flow(more, enough, n.el)
			at = more
		}
		e.flow(at, name, n.el)
		at = name
	}
	if enough != "" {
		out = enough
	}
	e.flow(at, out, n.el)
}
