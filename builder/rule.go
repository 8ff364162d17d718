package builder

import (
	"fmt"

	"github.com/tasq-dev/tasq/net"
)

// Rule is how a task's inputs are combined (its join) or its outputs chosen (its split). The zero value is no rule,
// which is right for a task with a single flow on that side, and a problem for any other.
type Rule uint8

// The rules.
const (
	And Rule = iota + 1 // all flows
	Xor                 // exactly one flow
	Or                  // one flow or more; a join waits until no further token can come
)

// String returns "and", "xor" or "or"; "unset" for the zero value.
func (r Rule) String() string {
	switch r {
	case 0:
		return "unset"
	case And, Xor, Or:
		return r.rule().String()
	}
	return fmt.Sprintf("rule(%d)", uint8(r))
}

func (r Rule) rule() net.Rule {
	switch r {
	case Xor:
		return net.Xor
	case Or:
		return net.Or
	}
	return net.And
}
