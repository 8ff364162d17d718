// Package reduce makes a net smaller without changing whether it is sound and safe (no place ever holds two tokens),
// until often nothing is left to search. Each rule removes places or transitions; none is needed for a right answer, so
// a rule that does not apply, or a budget that ends, costs only speed.
//
// A worked case: a parallel block in a sequence shrinks to one place, which is marked, and is the end. That is sound.
//
//	i -> S -> p -> A -> q -> J -> o      S puts into p and r, J takes from q and s
//	      '-> r -> B -> s -'
//
//	i -> S -> q -> J -> o                series: what marks p marks q at once, and likewise r and s
//	      '-> s -'
//	i -> S -> q -> J -> o                parallel places: q and s have the same producers and consumers
//	i -> S -> o                          series: what marks q marks o
//	o                                    series: the token in i stands in o
//
// The rules:
//
//	series.go    a place and a transition one behind the other
//	cross.go     a place between several transitions: each pair becomes one
//	parallel.go  transitions that do the same, places that always hold the same
//	cycles.go    places between which a token can move freely
//	race.go      branches of which the first cancels the others; resets that empty nothing
//	orjoin.go    or-joins that never have to wait (siphon.go finds the proof)
//
// What is left becomes a system to search: see [Net.System]. A [Net] with a trace translates the runs that are found
// there to runs of the net that it came from.
package reduce
