package bpmn

import (
	"slices"
	"strconv"

	"github.com/tasq-dev/tasq/net/internal/xmlread"
)

// Pools that exchange messages wait for each other, so each may be sound while all of them together are not. They are
// read a second time, into one net:
//
//	sender -> message -> receiver, which also needs its own token
//
// A process with a message start event starts whenever a message arrives; the others start together. Receive tasks and
// events for messages wait for a message. A message from a pool without a process can always arrive.

// joint is a group of pools that become one net. It is nil for a single process.
type joint struct {
	el        *xmlread.Element          // the collaboration
	processes map[*xmlread.Element]bool // of its pools
	messages  []message
	within    map[*xmlread.Element]bool  // the sub-processes that contain an end of a message flow
	nodes     map[*xmlread.Element]*node // nodes of the second reading
	starts    []*scope                   // processes that start without a message
	unclear   bool                       // the pools cannot be joined
}

// message is a message flow between elements of two pools.
type message struct{ from, to *xmlread.Element }

// Limits for collaborations: the file is read once more for each group of pools.
const (
	maxMessages = 10_000
	maxJoints   = 20
)

// joinPools adds the collaborations of a file to the result.
func (d *decoder) joinPools(root *xmlread.Element) {
	if len(d.messages) > maxMessages {
		d.note(NotCarried, d.pool, "it has more than "+strconv.Itoa(maxMessages)+" messages, so its pools are not read as one net")
		return
	}
	for i, j := range d.joints() {
		if i >= maxJoints {
			d.note(NotCarried, j.el, "more than "+strconv.Itoa(maxJoints)+" groups of pools exchange messages; the others are "+
				"not read as one net")
			return
		}
		again := newDecoder(d.file)
		again.joint, again.names, again.byProcess = j, d.names, d.byProcess
		again.rounds = d.rounds
		if err := again.parse(root); err != nil {
			continue // it was read before
		}
		if !j.unclear && len(j.starts) > 0 {
			again.emitJoint(d.workflows.Name(xmlread.Label(j.el.Attr("name")), j.el.ID(), "collaboration"))
			if again.members <= maxRegions {
				d.result.Collaborations = append(d.result.Collaborations, again.result.Collaborations...)
				continue
			}
		}
		d.note(NotCarried, j.el, "its pools are not read as one net: none begins by itself, or one that several messages "+
			"can start holds event sub-processes")
	}
}

// joints groups the pools that exchange messages.
func (d *decoder) joints() []*joint {
	var all []*joint
	of := map[*scope]*joint{}
	for _, m := range d.delivered() {
		from, to := m[0].scope.process(), m[1].scope.process()
		a, b := of[from], of[to]
		switch {
		case a == nil && b == nil:
			a = &joint{processes: map[*xmlread.Element]bool{}, within: map[*xmlread.Element]bool{},
				nodes: map[*xmlread.Element]*node{}, el: d.pool}
			all = append(all, a)
		case a == nil:
			a = b
		case b != nil && a != b:
			a.take(b)
			all = slices.DeleteFunc(all, func(j *joint) bool { return j == b })
			for s, j := range of {
				if j == b {
					of[s] = a
				}
			}
		}
		of[from], of[to] = a, a
		a.processes[from.el], a.processes[to.el] = true, true
		a.messages = append(a.messages, message{m[0].el, m[1].el})
		for _, n := range m {
			for s := n.scope; s.owner != nil; s = s.owner.scope {
				a.within[s.el] = true
			}
		}
	}
	return all
}

func (j *joint) take(o *joint) {
	for el := range o.processes {
		j.processes[el] = true
	}
	for el := range o.within {
		j.within[el] = true
	}
	j.messages = append(j.messages, o.messages...)
}

// delivered lists the message flows that join pools, with sender and receiver. A receiver that also gets messages from
// outside can always continue, so nothing needs to be joined.
func (d *decoder) delivered() [][2]*node {
	var all [][2]*node
	free := map[*node]bool{}
	for _, el := range d.messages {
		from, to := d.byID[local(el.Attr("sourceRef"))], d.byID[local(el.Attr("targetRef"))]
		if reason := undelivered(from, to); reason != "" {
			d.note(NotCarried, el, reason)
			if to != nil {
				free[to] = true
			}
			continue
		}
		all = append(all, [2]*node{from, to})
	}
	return slices.DeleteFunc(all, func(m [2]*node) bool { return free[m[1]] })
}

// undelivered returns the reason why a message flow does not join pools, or "".
func undelivered(from, to *node) string {
	switch {
	case from == nil || to == nil:
		return "it begins or ends at a pool or outside of the file, not at an element of a process: messages from there can always come"
	case from.gone || to.gone:
		return "it begins or ends at an element that is not read"
	case from.scope.process() == to.scope.process():
		return "it stays inside one pool"
	case !from.canSend():
		return "the " + from.el.String() + " sends no messages"
	case !to.canReceive():
		return "the " + to.el.String() + " does not wait for messages: that do receive tasks and events for messages"
	case from.isRepeated() || to.isRepeated():
		return "it begins or ends at something that runs several times"
	}
	return ""
}

func (n *node) canSend() bool {
	switch n.kind {
	case activity, callActivity, subProcess:
		return !n.handler
	case endEvent, throwEvent:
		return n.trigger == "message" || n.trigger == ""
	}
	return false
}

func (n *node) canReceive() bool {
	switch n.kind {
	case activity:
		return n.el.Name == "receiveTask"
	case startEvent:
		ordinary := n.scope.owner != nil && !n.scope.isHandler()
		return !ordinary && (n.trigger == "message" || n.trigger == "" && n.scope.owner == nil)
	case catchEvent:
		return n.trigger == "message" || n.trigger == ""
	case boundaryEvent:
		return n.trigger == "message"
	}
	return false
}

// isRepeated reports whether the node, or an enclosing one, runs in several instances or in a loop.
func (n *node) isRepeated() bool {
	for ; n != nil; n = n.scope.owner {
		if n.repeats != nil {
			return true
		}
	}
	return false
}

// inlines reports whether a sub-process must be part of the enclosing net, because a message flow crosses its border.
func (j *joint) inlines(n *node) bool { return j != nil && j.within[n.el] && len(n.sub.nodes) > 0 }

// deliver connects senders to receivers.
func (j *joint) deliver() {
	if j == nil {
		return
	}
	for _, m := range j.messages {
		from, to := j.nodes[m.from], j.nodes[m.to]
		if from == nil || to == nil || from.gone || to.gone {
			continue
		}
		to.receives = true
		if !slices.Contains(from.sends, to) {
			from.sends = append(from.sends, to)
		}
	}
}

// settle determines which pools start without a message, and which may be started several times.
func (j *joint) settle() {
	if j == nil {
		return
	}
	for _, n := range j.nodes {
		if n.receives {
			j.settleReceiver(n)
		}
	}
	processes := map[*scope]bool{}
	for _, n := range j.nodes {
		if s := n.scope.process(); !processes[s] {
			processes[s] = true
			j.settleProcess(s)
		}
	}
}

// settleReceiver makes a receiver continue without a message if it takes tokens of a loop, or competes for a token for
// which there are other ones: it could take the token before the message arrives.
func (j *joint) settleReceiver(n *node) {
	competes := slices.ContainsFunc(n.in, func(f *flow) bool { return f.from.kind == eventBased })
	if n.stops() || competes && len(n.in) > 1 {
		n.receives = false
		for _, m := range j.nodes {
			m.sends = slices.DeleteFunc(m.sends, func(to *node) bool { return to == n })
		}
	}
}

// stops reports whether an event takes tokens of a loop.
func (n *node) stops() bool {
	for s := n.scope; s != nil; s = s.parent() {
		if s.stop == n {
			return true
		}
	}
	return n.host != nil && n.host.sub != nil && n.host.sub.stop == n
}

func (j *joint) settleProcess(s *scope) {
	woken, handles := false, false
	for _, n := range s.nodes {
		woken = woken || n.isWoken()
		handles = handles || n.handler
	}
	alternatives, all := s.starts()
	if len(all) > 0 || slices.ContainsFunc(alternatives, func(n *node) bool { return !n.isWoken() }) {
		j.starts = append(j.starts, s)
	}
	if woken {
		s.loose, s.parallel = true, true
		j.unclear = j.unclear || handles || s.thrown
	}
}
