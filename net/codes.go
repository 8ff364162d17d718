package net

// Codes of package net/verify, for tests of the engine that are about to name them there.
const (
	ImproperCompletion Code = "improper-completion"
	NoOptionToComplete Code = "no-option-to-complete"
	DeadTask           Code = "dead-task"
	AndSplitXorJoin    Code = "and-split-xor-join"
	XorJoinTwice       Code = "xor-join-twice"
)
