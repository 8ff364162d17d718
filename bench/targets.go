package main

import "io"

// target is what a figure is to reach.
type target struct {
	what           string
	reach, stretch float64
	unit           string
	got            sample
	more           bool // more is better
}

func (t target) verdict() string {
	m := t.got.median()
	better := func(limit float64) bool { return t.more && m >= limit || !t.more && m <= limit }
	switch {
	case t.stretch > 0 && better(t.stretch):
		return "stretch reached"
	case better(t.reach):
		return "reached"
	}
	return "SHORT"
}

// targets compares the medians with what the project set out to reach on two cores with a disk that syncs in 0.1 ms.
func (b *bench) targets(w io.Writer, r job) {
	const mib = 1 << 20
	guess := ""
	if b.quick {
		guess = ", worked out"
	}
	rows := [][]string{{"target (FULL)", "reach", "stretch", "median [range]", "verdict"}}
	for _, t := range append([]target{
		{"one-task case, one caller, p50", 0.50, 0.35, "ms", b.get("tasq-1", "p50"), false},
		{"one-item cases, 64 in flight", 8000, 15000, "items/s", b.get("tasq-64", "rate"), true},
		{"three-task cases, one caller", 900, 1300, "cases/s", b.get("three-1", "rate"), true},
		{"three-task cases, 64 in flight", 2700, 5000, "cases/s", b.get("three-64", "rate"), true},
		{"CPU an item, 64 in flight", 100, 60, "us", b.get("tasq-64", "cpu"), false},
		{"syncs an item, 64 in flight", 0.2, 0.05, "", b.get("tasq-64", "syncs"), false},
		{"enqueue to running, p50", 0.30, 0.15, "ms", b.get("running", "p50"), false},
		{"CPU an item, " + count(r.grown()) + " items over " + count(smallFile), 1.3, 1.15, "x",
			b.get("grown", "cpu").over(b.get("small", "cpu")), false},
		{"memory of 1 M pending items, RSS" + guess, 128, 90, "MiB", b.get("pending", "wanted").times(1.0 / mib), false},
		{"memory of each of 100 k sleeping cases, RSS" + guess, 1024, 300, "B",
			b.get("asleep", "wanted").times(1.0 / wantSleeping), false},
		{"or-join decision, 200 tasks, p99", 50, 10, "us", b.get("or-join-regions", "p99"), false},
		{"opening after kill -9, " + count(r.old()) + " items", 1, 0.3, "s", b.get("open", "open"), false},
		{"idle: queries a minute", 0, 0, "", b.get("idle", "queries"), false},
	}, append(b.functionTargets(guess), b.verifyTargets()...)...) {
		if t.got == nil {
			continue
		}
		stretch := "-"
		if t.stretch > 0 {
			stretch = short(t.stretch) + " " + t.unit
		}
		rows = append(rows, []string{t.what, short(t.reach) + " " + t.unit, stretch, t.got.String() + " " + t.unit,
			t.verdict()})
	}
	if len(rows) > 1 {
		grid(w, "Targets", rows)
	}
}

// elsewhere quotes what was measured on a quiet machine of the kind that the targets are for. Temporal and goqite
// cannot be measured here, since the module proxy does not serve them.
func elsewhere(w io.Writer) {
	const title = "Measured elsewhere: the same kind of machine without other load, SQLite FULL, not in this run"
	grid(w, title, [][]string{
		{"what", "DBOS 1.2.0", "go-workflows 1.4.3", "Temporal 1.32.1", "goqite 0.4.0"},
		{"one activity, one caller, p50 ms", "1.11", "6.3", "99.9", "-"},
		{"best activities/s", "2870", "291", "107", "2240"},
		{"three activities, one caller / many, cases/s", "549 / 452", "68 / 97", "- / 36", "-"},
		{"CPU us an activity", "339-1075", "2650-4855", "11700-28300", "417"},
		{"syncs an activity", "1.05-3.1", "4.4-7.4", "10-22", "3"},
	})
}
