package bpmn

import "github.com/tasq-dev/tasq/net/internal/xmlread"

// scope is a process or a sub-process with its direct elements.
type scope struct {
	el       *xmlread.Element
	owner    *node // the sub-process; nil for a process
	nodes    []*node
	inline   bool // part of the enclosing net
	parallel bool // it may have several tokens at the same time
	again    bool // one of its ends may be reached a second time, see [scope.settleEnds]
	loose    bool // in a collaboration: a process that several messages may start, see [decoder.settleLoose]
	thrown   bool // something is thrown in it to an interrupting catcher
	catchers map[caught][]*node
	stop     *node // the event that stops its loops, if it has any without a path out

	armed         []string // what waits for events while the scope is active: conditions and tasks, see [emitter.handlers]
	nothingThrown string   // the flag for no throw, if the scope needs one; see [emitter.end]
	leaving       []throw  // what is thrown on to the enclosing scope, which is in the same definition
	idle          string   // the condition for not counting an end, if ends are counted; see [emitter.count]
	extra         []throw  // what composite tasks in it throw
	inside        span     // what was emitted for it
}

// parent returns the enclosing scope, nil for a process.
func (s *scope) parent() *scope {
	if s.owner == nil {
		return nil
	}
	return s.owner.scope
}

// isHandler reports whether it is an event sub-process.
func (s *scope) isHandler() bool { return s.owner != nil && s.owner.handler }

type nodeKind uint8

const (
	activity nodeKind = iota
	callActivity
	subProcess
	startEvent
	endEvent
	catchEvent
	throwEvent
	boundaryEvent
	exclusive
	parallel
	inclusive
	complexGateway
	eventBased
)

var nodeKinds = map[string]nodeKind{
	"task": activity, "userTask": activity, "serviceTask": activity, "scriptTask": activity, "manualTask": activity,
	"businessRuleTask": activity, "sendTask": activity, "receiveTask": activity,
	"callActivity": callActivity,
	"subProcess":   subProcess, "transaction": subProcess, "adHocSubProcess": subProcess,
	"startEvent": startEvent, "endEvent": endEvent,
	"intermediateCatchEvent": catchEvent, "intermediateThrowEvent": throwEvent, "implicitThrowEvent": throwEvent,
	"boundaryEvent":    boundaryEvent,
	"exclusiveGateway": exclusive, "parallelGateway": parallel, "inclusiveGateway": inclusive,
	"complexGateway": complexGateway, "eventBasedGateway": eventBased,
}

func (k nodeKind) isGateway() bool { return k >= exclusive }

// node is a flow node.
type node struct {
	el           *xmlread.Element
	kind         nodeKind
	id, label    string
	scope        *scope
	sub          *scope // of a sub-process
	in, out      []*flow
	fallback     string // id of the default flow
	trigger      string // "message", "timer", "error" ...; "" for an event without a definition
	ref          string // code of the error or escalation, name of the link
	attachedTo   string
	host         *node   // of a boundary event
	boundary     []*node // events attached to it
	interrupting bool
	handler      bool // an event sub-process
	instantiate  bool
	called       string      // id of what a call activity calls
	repeats      *repetition // how often it runs; nil for once
	several      bool        // a parallel event-based gateway

	catcher     *node   // where an error, escalation or cancellation thrown here is caught; a boundary or start event
	outcomes    []*node // of a composite task: who catches what ends it, besides its normal end
	thrown      []*node // by whom, for a catcher
	link        *node   // where a link event leads
	linkedFrom  []*node // the link events that lead here
	gathers     bool    // an end event that waits for all its flows
	gone        bool    // not read, with its flows
	cut         bool    // a flow to it, or the activity to which it is attached, is omitted
	unreachable []*node // of a parallel gateway: the unreachable elements that it waits for

	sends        []*node  // in a collaboration: the receivers of its messages
	receives     bool     // in a collaboration: it waits for a message of another pool
	inbox        string   // the condition that holds messages for it
	name         string   // in the net
	enter, leave string   // names in the net: where flows enter and leave
	armed        []string // of an activity: the conditions and tasks that wait beside it
}

// flow is a sequence flow.
type flow struct {
	el        *xmlread.Element
	from, to  *node
	condition *xmlread.Element
	stop      bool // the event that stops the scope also takes its token, see [scope.markStops]
}

// isWoken reports whether a message of another pool starts a process at this node.
func (n *node) isWoken() bool {
	return n.receives && n.scope.owner == nil && (n.kind == startEvent || n.instantiate && n.startsSilently())
}

// process returns the process of a scope.
func (s *scope) process() *scope {
	for s.owner != nil {
		s = s.owner.scope
	}
	return s
}

// isThrow reports whether the node ends or leaves its scope with an error, an escalation or a cancellation.
func (n *node) isThrow() bool {
	return (n.kind == endEvent || n.kind == throwEvent) &&
		(n.trigger == "error" || n.trigger == "escalation" || n.trigger == "cancel")
}

// leadsOn reports whether a token continues inside the scope after the node.
func (n *node) leadsOn() bool { return len(n.out) > 0 || n.link != nil }
