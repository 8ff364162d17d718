package main

import (
	"fmt"
	"io"
	"slices"
)

// verifyTables prints what was measured of verification.
func (b *bench) verifyTables(w io.Writer, r job) {
	var checks, searches, sizes []line
	for _, l := range libraries {
		checks = append(checks, line{"check-" + l.name, l.who, tree, "none"})
		searches = append(searches, line{"naive-" + l.name, l.who, tree, "none"})
	}
	for _, n := range large {
		sizes = append(sizes, line{n.name, n.who, tree, "none"})
	}
	b.table(w, "Verification with all witnesses, one core (ms: the whole library; us: a net)", checks,
		[]column{{"n", "nets"}, {"sound", "sound"}, {"weakly sound", "weakly"}, {"unsound", "unsound"},
			{"unknown", "unknown"}, {"read", "reading ms"}, {"pass", "verifying ms"}, {"sum", "sum of medians ms"},
			{"p50", "p50 us"}, {"p99", "p99 us"}, {"max", "max us"}})
	b.table(w, fmt.Sprintf("Nets of %s nodes, one core", count(largeNodes)), sizes,
		[]column{{"ms", "verifying ms"}, {"first", "the first time ms"}, {"states", "states"}, {"peak", "peak memory MiB"}})
	b.table(w, fmt.Sprintf("The naive search of all states, up to %s (ms: all nets; us: a net that it decided)",
		count(r.budget())), searches,
		[]column{{"n", "nets"}, {"decided", "decided"}, {"sum", "ms"}, {"tasq", "Tasq, the same nets, ms"},
			{"ratio", "naive / Tasq"}, {"p50", "p50 us"}, {"p99", "p99 us"}, {"max", "max us"}, {"over", "given up"}, {"lost", "ms on those"},
			{"spared", "Tasq, those, ms"}})
}

// verifyTargets are those about verification.
func (b *bench) verifyTargets() []target {
	const perNet = 0.0197 // ms, of a prototype
	all := []target{
		{"verification, IBM's 570 nets, one core", 60, 570 * perNet, "ms", b.get("check-ibm", "pass"), false},
		{"verification, the slowest of them", 2, 0, "ms", b.get("check-ibm", "max").times(1.0 / 1000), false},
	}
	for _, n := range large {
		all = append(all, target{"verification, " + count(largeNodes) + " nodes, " + n.who, 100, 0, "ms",
			b.get(n.name, "ms"), false})
	}
	var peaks sample
	for _, n := range large {
		peaks = append(peaks, b.get(n.name, "peak")...)
	}
	if peaks != nil {
		peaks = sample{slices.Max(peaks)}
	}
	return append(all, target{"verification, " + count(largeNodes) + " nodes, peak memory", 200, 0, "MiB", peaks, false})
}
