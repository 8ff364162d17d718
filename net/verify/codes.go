package verify

import (
	"github.com/tasq-dev/tasq/net"
)

// Incomplete is the code that represents [Report.Exhausted] in lists of codes: there may be more findings than those
// that are reported.
const Incomplete net.Code = "incomplete"

// Undecided is the code that represents the verdict [Unknown] in lists of codes: a verification has exhausted its budget.
const Undecided net.Code = "unknown"

// FindingCodes returns the codes of findings, which make a net unsound, sorted. [Unsafe] applies only to plain nets.
func FindingCodes() []net.Code {
	return []net.Code{DeadTask, ImproperCompletion, NoOptionToComplete, Unbounded, Unsafe}
}

// WarningCodes returns the codes of warnings, sorted: those of [Report.Warnings], [Incomplete] and [Undecided].
func WarningCodes() []net.Code {
	return []net.Code{
		AndSplitXorJoin, Incomplete, Isolated, OrJoinCircle, OrJoinIsAnd, OrJoinIsXor, RegionUseless, net.RoutingCycle,
		SeveralEnds, Undecided, XorJoinTwice, XorSplitAndJoin,
	}
}

// HoldCodes returns the codes of the findings of [Holds], sorted.
func HoldCodes() []net.Code { return []net.Code{HoldDeadlock} }
