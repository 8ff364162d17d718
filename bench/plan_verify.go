package main

import "github.com/tasq-dev/tasq/net/verify"

// large are the nets of many nodes, each with the verdict that it has by construction.
var large = []struct {
	name, who string
	draw      func() subject
	verdict   verify.Verdict
}{
	{"check-large-plain", "plain, refined at random", func() subject {
		return subject{name: "refined", petri: drawPlain(1, largeNodes)}
	}, verify.Sound},
	{"check-large-chain", "workflow, chain of blocks", func() subject {
		return subject{name: "chain", definition: drawChain(1, largeNodes, false)}
	}, verify.Sound},
	{"check-large-more", "workflow, or-blocks and regions too", func() subject {
		return subject{name: "chain with or-blocks and regions", definition: drawChain(1, largeNodes, true)}
	}, verify.Sound},
	{"check-large-mutant", "plain, a token is lost", func() subject {
		return subject{name: "mutant", petri: mutate(drawPlain(1, largeNodes))}
	}, verify.Unsound},
}

// verifySteps measure verification: the given libraries, large nets, and the naive search.
func verifySteps() []step {
	var all []step
	for _, l := range libraries {
		all = append(all, step{name: "check-" + l.name, needs: l.archive, rare: l.name != "ibm",
			run: func(r job) (metrics, error) { return verifyLibrary(r, l) }})
	}
	for _, n := range large {
		all = append(all, step{name: n.name, rare: true, run: func(r job) (metrics, error) {
			return verifyLarge(r, n.draw(), n.verdict)
		}})
	}
	for _, l := range libraries {
		all = append(all, step{name: "naive-" + l.name, needs: l.archive, once: true,
			run: func(r job) (metrics, error) { return searchLibrary(r, l) }})
	}
	return all
}
