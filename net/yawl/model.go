package yawl

import "github.com/tasq-dev/tasq/net"

// specification is the common model of both formats.
type specification struct {
	nets           []*rawNet
	decompositions map[string]bool // ids of nets and services; nil if they need not be declared
}

type rawNet struct {
	id, label string
	wanted    string // the text for the name; the id if empty
	line      int
	root      bool
	nodes     []*rawNode
}

type nodeKind uint8

const (
	aTask nodeKind = iota
	aCondition
	theInput
	theOutput
)

// rawNode is a condition or a task.
type rawNode struct {
	kind        nodeKind
	id, label   string
	wanted      string // the text for the name; the id if empty
	element     string // its name in reports
	line        int
	join, split net.Rule
	flows       []rawFlow
	removes     []rawRemoval
	decomposes  string // id of a net or of a service; "" for none
	works       bool   // it has a timer or several instances, so it is not a routing task
}

// rawFlow goes from a node to another. In a split by predicates, order is the order of evaluation.
type rawFlow struct {
	to        string
	line      int
	predicate string
	order     int
	fallback  bool
}

// rawRemoval is a member of a cancellation set: an element, or the flow from one to another.
type rawRemoval struct {
	id       string
	from, to string
	line     int
}
