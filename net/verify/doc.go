// Package verify decides whether a net is sound: from every reachable state, every case can complete with nothing left
// over, and every task can start in some case. Each [Finding] has a [Witness] if a run can show it: a run that the
// engine can replay. [Net] verifies a workflow net, and [Petri] a plain Petri net; [Bypass] finds a run to a task that
// avoids another, and [Holds] finds deadlocks over limits that cases hold.
//
// An example: A starts B and C, and J starts when either of them is done (an xor-join). The first one to complete
// ends the case, and the other is left over.
//
//	start -> A -> B -> J -> end       and-split A, xor-join J
//	         '--> C -> '
//
//	improper-completion: a case can complete while work is left over: "A->C"
//	by the run: A; B; J; then end 1, A->C 1
//
// # Algorithm
//
// A net is lowered twice: to a reduce.Net, which is made smaller by rules that preserve soundness,
// and to a statespace.System, the net as it is, which is explored state by state.
//
//	net.Net    --.     reduce.Net         often nothing is left of it to search
//	             |-->
//	net.Petri  --'     statespace.System  findings and shortest runs come from here
//
// Then, until there is a decision:
//
//   - If the reduced net is sound, so is the net. If reduction leaves a rest, the rest is searched.
//   - Otherwise the exact system is searched breadth first. A task is one move if it makes no difference that it is
//     busy for a while, and two if it does (see moments.go).
//   - If that search does not finish, a search with stubborn sets and random walks look for violations that it has not
//     reached.
//
// Every search has a budget, see [Options]. [Report.Exhausted] names the limit that was reached, and a net that is not
// decided is Unknown. Package net decides or-joins here as in the engine, so the engine can replay every witness.
package verify
