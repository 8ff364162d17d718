// Package verify decides whether a net is sound: whether every case can complete, from every state, with nothing left
// over, and whether every task can start. A [Finding] shows what is wrong by a [Witness], a run that the engine can
// replay. [Net] verifies a workflow net and [Petri] a plain one; [Bypass] finds a run to a task that avoids another.
//
// A worked case: A starts B and C, and J starts when either of them is through (an xor-join). The first to complete
// ends the case, and the other is left over.
//
//	start -> A -> B -> J -> end       and-split A, xor-join J
//	         '--> C -> '
//
//	improper-completion: a case can complete while work is left over: "A->C"
//	by the run: A; B; J; then end 1, A->C 1
//
// How it is decided. A net is lowered twice: to a reduce.Net, which is made smaller by rules that preserve soundness,
// and to a statespace.System, the net as it is, which is explored state by state.
//
//	net.Net    --.     reduce.Net         often nothing is left of it to search
//	             |-->
//	net.Petri  --'     statespace.System  findings and shortest runs come from here
//
// Then, until it is decided:
//
//   - If the reduced net is sound, so is the net. What is left of it is searched if need be.
//   - Otherwise the exact system is searched breadth first. A task is one move where it makes no difference that it is
//     busy for a while, and two where it does (see moments.go).
//   - Where that search does not come to an end, a search with stubborn sets and random walks look for what it has not
//     found.
//
// Every search has a budget, see [Options]; what ran out is in [Report.Exhausted], and a net that is not decided is
// Unknown. Whatever an or-join waits for is decided by package net, so a witness is what the engine does.
package verify
