package verify

import (
	"github.com/tasq-dev/tasq/net"
)

// Incomplete is the code that stands for [Report.Exhausted] where codes are listed: there may be more findings than those
// that are reported.
const Incomplete net.Code = "incomplete"

// Undecided is the code that stands for the verdict [Unknown] where codes are listed: a verification ran out of its
// budget.
const Undecided net.Code = "unknown"

// FindingCodes lists the codes of what makes a net unsound, sorted. [Unsafe] is only said of plain nets.
func FindingCodes() []net.Code {
	return []net.Code{DeadTask, ImproperCompletion, NoOptionToComplete, Unbounded, Unsafe}
}

// WarningCodes lists the codes of what is probably not meant, sorted: those of [Report.Warnings], [Incomplete] and
// [Undecided].
func WarningCodes() []net.Code {
	return []net.Code{
		AndSplitXorJoin, Incomplete, Isolated, OrJoinCircle, OrJoinIsAnd, OrJoinIsXor, RegionUseless, net.RoutingCycle,
		SeveralEnds, Undecided, XorJoinTwice, XorSplitAndJoin,
	}
}

// HoldCodes lists the codes of what [Holds] finds, sorted.
func HoldCodes() []net.Code { return []net.Code{HoldDeadlock} }
