package main

import (
	"fmt"
)

// system is one that runs durable functions.
type system struct {
	name, who, module string
	open              newDurable
	replays           int // steps in all, for what is replayed in a quick run
	wave              int // functions that are replayed at a time: so as many share a commit, long or short; peers poll
	naps              int // functions that sleep, in a quick run
}

// systems are Tasq and its peers.
var systems = []system{
	{"tasq", "Tasq", "", newTasq, 4000, 4, 0},
	{"dbos", "DBOS", "github.com/dbos-inc/dbos-transact-golang", newDBOS, 2000, 64, 1000},
	{"gowf", "go-workflows", "github.com/cschleiden/go-workflows", newGoWorkflows, 400, 64, 200},
}

// dreamSteps are about functions that sleep until tomorrow.
var dreamSteps = []step{
	{name: "dreams", shared: "dreams", once: true, run: func(r job) (metrics, error) {
		return memory(r, dreamers, dreams.Workflow, r.sleeping(), wantSleeping)
	}},
	{name: "dreams-open", shared: "dreams", once: true, run: func(r job) (metrics, error) {
		return opened(r, r.sleeping(), dreams.Workflow)
	}},
}

// from is the version that was measured.
func (s system) from() string {
	if s.module == "" {
		return tree
	}
	return version(s.module)
}

// napping is how many functions of a peer sleep.
func (r job) napping(s system) int { return r.pick(s.naps, 10*s.naps) }

func fnName(who string, steps, callers int) string {
	return fmt.Sprintf("fn%d-%d-%s", steps, callers, who)
}

// functionSteps measure durable functions. The systems take turns, so that what is compared is measured within seconds.
func functionSteps() []step {
	var all []step
	for _, n := range []int{1, 3, 10} {
		for _, callers := range []int{1, 16, 64} {
			for _, s := range systems {
				all = append(all, step{name: fnName(s.name, n, callers), long: callers == 16, run: func(r job) (metrics, error) {
					return functionsOf(r, callers, n, s.open)
				}})
			}
			if n > 1 && callers > 1 {
				all = append(all, step{name: fnName("river", n, callers), long: callers == 16, run: func(r job) (metrics, error) {
					return riverSteps(r, callers, n)
				}})
			}
		}
	}
	for _, s := range systems {
		all = append(all, step{name: "wake-" + s.name, run: func(r job) (metrics, error) { return wakes(r, s.open) }})
		all = append(all, replaySteps(s)...)
		if s.naps > 0 {
			all = append(all, step{name: "nap-" + s.name, once: true, run: func(r job) (metrics, error) {
				return peerAsleep(r, r.napping(s), s.open)
			}})
		}
	}
	return append(append(all, queueSteps()...), dreamSteps...)
}
