// Package statespace explores the states of a Petri net with inhibitor arcs, resets, urgent moves, and or-joins that
// the caller decides. It knows neither tasks nor findings: package net/verify lowers a net to a [System], searches it,
// and puts into words what was found.
//
// A [Search] expands states breadth first, so the path by which a state was found first is a shortest one. A worked
// case, which is the example of [Search]: C can be repeated without end.
//
//	           .-> C -.        S takes from i, and puts into r
//	           |      v        C takes from r, and puts into r and x
//	i -> S ->  r      x        E takes from r, and puts into o, which is the end
//	           |
//	           '-> E -> o
//
//	0  i       S -> 1
//	1  r       C -> 2, E -> 3
//	2  r x     C -> 4, E -> 5    C makes "r, 2 x", which covers state 2, and C does the same with more tokens in x:
//	3  o                         so x gets the count ω in state 4, and x is unbounded
//	4  r ωx    C -> 4, E -> 6
//	5  o x                       the run is over with a token left over: improper completion
//	6  o ωx
//
// States are numbered as they are found. A [Space] holds for each the tokens in its places, its parent, and the move
// from there. When every state is expanded, a walk backwards from the complete states over all edges finds the states
// from which no run can complete.
//
// Where the states are too many, two weaker searches find what they can: one with stubborn sets, which leaves out
// orders of independent moves ([NewStubbornSearch]), and single random walks ([Walker]).
package statespace
