package main

import (
	"fmt"
	"io"
)

// functionTables prints what was measured of durable functions.
func (b *bench) functionTables(w io.Writer, r job) {
	river := version("github.com/riverqueue/river/riverdriver/riversqlite")
	cost := []column{{"rate", "functions/s"}, {"p50", "p50 ms"}, {"p99", "p99 ms"}, {"cpu", "CPU us"}, {"syncs", "syncs"}}
	for _, n := range []int{1, 3, 10} {
		b.table(w, fmt.Sprintf("Functions of %s (CPU and syncs a function)", plural(n, "step")), fnLines(n, river), cost)
	}
	b.table(w, "An event wakes a function: from Send to the line after the wait", systemLines("wake-%s"),
		[]column{{"p50", "p50 ms"}, {"p99", "p99 ms"}})
	b.table(w, "Functions with a history, resumed in the process that ran them",
		replayLines(""), []column{{"step", "CPU us a new step"}, {"p50", "p50 ms"}, {"cpu", "CPU us a resume"},
			{"perstep", "CPU us a replayed step"}, {"syncs", "syncs"}})
	b.table(w, "The same, resumed by a process that has just opened the file",
		replayLines("-again"), []column{{"p50", "p50 ms"}, {"cpu", "CPU us a resume"},
			{"perstep", "CPU us a replayed step"}, {"syncs", "syncs"}})
	b.table(w, "Jobs enqueued, with no worker", queueLines(river),
		[]column{{"rate", "jobs/s"}, {"p50", "p50 ms a call"}, {"cpu", "CPU us"}, {"syncs", "syncs"}})
	b.table(w, "Jobs enqueued 500 in a call, and done", []line{
		{"tasq-drain", "Tasq", tree, full}, {"river-drain", "River, drained afterwards", river, full},
	}, []column{{"rate", "jobs/s"}, {"cpu", "CPU us"}, {"syncs", "syncs"}})
	b.table(w, "Memory a function that sleeps until tomorrow, in bytes", append([]line{
		{"dreams", "Tasq, " + count(r.sleeping()), tree, full},
		{"dreams-open", "Tasq, the same, after opening again", tree, full},
	}, napLines(r)...), []column{{"heap", "Go heap"}, {"rss", "RSS"}, {"open", "opening s"}})
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func fnLines(n int, river string) []line {
	var all []line
	for _, callers := range []int{1, 16, 64} {
		for _, s := range systems {
			all = append(all, line{fnName(s.name, n, callers), s.who + ", " + plural(callers, "caller"), s.from(), full})
		}
		all = append(all, line{fnName("river", n, callers), "River, " + plural(callers, "caller"), river, full})
	}
	return all
}

func systemLines(format string) []line {
	var all []line
	for _, s := range systems {
		all = append(all, line{fmt.Sprintf(format, s.name), s.who, s.from(), full})
	}
	return all
}

func replayLines(suffix string) []line {
	var all []line
	for _, s := range systems {
		for _, n := range journals {
			all = append(all, line{replayName(s.name, n) + suffix, fmt.Sprintf("%s, %d steps", s.who, n), s.from(), full})
		}
	}
	return all
}

func queueLines(river string) []line {
	who := append([]system{systems[0], {name: "river", who: "River"}}, systems[1:]...)
	var all []line
	for _, how := range []struct{ prefix, title string }{
		{"put-1-", "one by one, 1 caller"}, {"put-64-", "one by one, 64 callers"}, {"bulk-", "500 in a call"}, {"most-", "10,000 in a call"},
	} {
		for _, s := range who {
			from := s.from()
			if s.name == "river" {
				from = river
			}
			all = append(all, line{how.prefix + s.name, s.who + ", " + how.title, from, full})
		}
	}
	return all
}

func napLines(r job) []line {
	var all []line
	for _, s := range systems {
		if s.naps > 0 {
			all = append(all, line{"nap-" + s.name, s.who + ", " + count(r.napping(s)), s.from(), full})
		}
	}
	return all
}

// functionRatios compare Tasq's functions with those of its peers, round by round.
func functionRatios() []ratio {
	var all []ratio
	for _, n := range []int{3, 10} {
		for _, peer := range systems[1:] {
			for _, callers := range []int{1, 64} {
				mine, theirs := fnName("tasq", n, callers), fnName(peer.name, n, callers)
				head := fmt.Sprintf("%d steps, %s: ", n, plural(callers, "caller"))
				all = append(all,
					ratio{head + "functions/s, Tasq / " + peer.who, mine, theirs, "rate"},
					ratio{head + "CPU, " + peer.who + " / Tasq", theirs, mine, "cpu"})
			}
		}
	}
	return append(all,
		ratio{"wake-up, p50: DBOS / Tasq", "wake-dbos", "wake-tasq", "p50"},
		ratio{"wake-up, p50: go-workflows / Tasq", "wake-gowf", "wake-tasq", "p50"},
		ratio{"jobs/s, 500 in a call: Tasq / River", "bulk-tasq", "bulk-river", "rate"},
		ratio{"jobs/s, 10,000 in a call: Tasq / River", "most-tasq", "most-river", "rate"},
		ratio{"jobs/s, enqueued and done: Tasq / River", "tasq-drain", "river-drain", "rate"},
		ratio{"CPU a replayed step, after 100 steps and a restart: DBOS / Tasq", "replay-dbos-100-again",
			"replay-tasq-100-again", "perstep"},
		ratio{"CPU a new step: after 1,000 steps / after 10", replayName("tasq", 1000), replayName("tasq", 10), "step"},
		ratio{"CPU a replayed step: 1,000 steps / 100", replayName("tasq", 1000), replayName("tasq", 100), "perstep"})
}

// functionTargets are those about functions.
func (b *bench) functionTargets(guess string) []target {
	return []target{
		{"functions of 3 steps, one caller", 900, 1300, "functions/s", b.get(fnName("tasq", 3, 1), "rate"), true},
		{"functions of 10 steps, one caller", 450, 700, "functions/s", b.get(fnName("tasq", 10, 1), "rate"), true},
		{"memory of each of 100 k sleeping functions, RSS" + guess, 1024, 300, "B",
			b.get("dreams", "wanted").times(1.0 / wantSleeping), false},
	}
}
