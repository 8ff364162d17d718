// Package reduce makes a net smaller without changing whether it is sound and safe (no place ever has two tokens).
// Often so little remains that no search is needed. Each rule removes places or transitions. The verdict does not
// depend on any rule, so a rule that does not apply, or an exhausted budget, only costs time.
//
// For example, a parallel block in a sequence is reduced to one place, which is marked and is the end. That is sound.
//
//	i -> S -> p -> A -> q -> J -> o      S puts into p and r, J takes from q and s
//	      '-> r -> B -> s -'
//
//	i -> S -> q -> J -> o                series: what marks p marks q immediately, and likewise r and s
//	      '-> s -'
//	i -> S -> q -> J -> o                parallel places: q and s have the same producers and consumers
//	i -> S -> o                          series: what marks q marks o
//	o                                    series: the token in i is in o
//
// The rules:
//
//	series.go    a place and a transition in sequence
//	cross.go     a place between several transitions: each pair becomes one
//	parallel.go  transitions with the same effect, places that always have the same tokens
//	cycles.go    places between which a token can move freely
//	race.go      branches of which the first cancels the others; resets without effect
//	orjoin.go    or-joins that never have to wait (siphon.go finds the proof)
//
// The remaining net becomes a system to search: see [Net.System]. A [Net] with a trace translates its runs to runs of
// the original net.
package reduce
