package net

// Incomplete is the code that stands for [Report.Exhausted] where codes are listed: there may be more findings than those
// that are reported.
const Incomplete Code = "incomplete"

// Undecided is the code that stands for the verdict [Unknown] where codes are listed: a verification ran out of its
// budget.
const Undecided Code = "unknown"

// ProblemCodes lists the codes of what makes a definition not well-formed, sorted. A [RoutingCycle] is among them,
// though it does not keep a net from being compiled.
func ProblemCodes() []Code {
	return []Code{
		ConditionToCondition, DuplicateEnd, DuplicateName, DuplicateStart, FlowIntoStart, FlowOutOfEnd, NoEnd, NoFlowIn,
		NoFlowOut, NoPathToEnd, NoStart, RecursiveComposite, RoutingCycle, UnknownName, Unreachable,
	}
}

// FindingCodes lists the codes of what makes a net unsound, sorted. [Unsafe] is only said of plain nets.
func FindingCodes() []Code {
	return []Code{DeadTask, ImproperCompletion, NoOptionToComplete, Unbounded, Unsafe}
}

// WarningCodes lists the codes of what is probably not meant, sorted: those of [Report.Warnings], [Incomplete] and
// [Undecided].
func WarningCodes() []Code {
	return []Code{
		AndSplitXorJoin, Incomplete, Isolated, OrJoinCircle, OrJoinIsAnd, OrJoinIsXor, RegionUseless, RoutingCycle,
		SeveralEnds, Undecided, XorJoinTwice, XorSplitAndJoin,
	}
}
