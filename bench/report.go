package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tasq-dev/tasq/internal/modeltest"
)

// header is what the report says of the whole run.
type header struct {
	rounds     int
	sync, took time.Duration
	load       string
}

func (b *bench) get(step, metric string) sample { return b.results[step][metric] }

// column is a metric with its heading.
type column struct{ metric, title string }

// line is a row of a table: what was measured, where it comes from, and what its commits promise.
type line struct{ step, who, version, durable string }

const (
	full   = "FULL"
	normal = "NORMAL"
	tree   = "this tree"
)

func (b *bench) report(w io.Writer, h header) {
	r := newJob("", b.quick)
	river := version("github.com/riverqueue/river/riverdriver/riversqlite")
	backlite := version("github.com/mikestefanello/backlite")
	sqlite := "modernc " + version("modernc.org/sqlite")
	fmt.Fprintf(w, "# Tasq's benchmarks\n\n%s. Write and sync of 4 KiB on this disk: %s (p50).\n", machineLine(),
		h.sync.Round(time.Microsecond))
	fmt.Fprintf(w, "%d rounds in %s; load average %s before and %s after; other processes took %.0f %% of the cores "+
		"(median of the runs, at most %.0f %%).\n", h.rounds, h.took.Round(time.Second), h.load, loadAverage(),
		100*b.others.median(), 100*slices.Max(append(b.others, 0)))
	fmt.Fprintf(w, "A cell is the median [range] of the rounds. FULL: acknowledged after the disk has it. NORMAL: "+
		"a power failure may take the last commits. All on %s.\n", sqlite)

	if len(b.absent) > 0 {
		fmt.Fprintf(w, "Left out for want of models: %s; for each, %v.\n", strings.Join(b.absent, ", "), modeltest.ErrAbsent)
	}

	if b.noServer != nil {
		fmt.Fprintf(w, "Left out for want of a server: what is measured on PostgreSQL; %v.\n", b.noServer)
	}

	cost := []column{{"cpu", "CPU us"}, {"syncs", "syncs"}}
	b.table(w, "One-task case, one caller: from Start to completed, acknowledged when durable", []line{
		{"tasq-1", "Tasq", tree, full}, {"tasq-1-normal", "Tasq", tree, normal}, {"raw-1", "raw program", sqlite, full},
	}, append([]column{{"p50", "p50 ms"}, {"p99", "p99 ms"}, {"rate", "cases/s"}}, cost...))
	b.table(w, "One-item cases, 64 in flight (CPU and syncs an item)", []line{
		{"tasq-64", "Tasq, done by workers", tree, full}, {"tasq-64-normal", "Tasq, done by workers", tree, normal},
		{"tasq-64-gogc", "Tasq, the same with GOGC=400", tree, full},
		{"tasq-64-hands", "Tasq, done by the caller", tree, full}, {"raw-64", "raw program", sqlite, full},
		{"river-64", "River, inserted to run", river, full}, {"river-drain", "River, batches and drained", river, full},
		{"backlite-64", "backlite, inserted to run", backlite, full},
	}, append([]column{{"rate", "items/s"}, {"p50", "p50 ms"}, {"p99", "p99 ms"}}, cost...))
	b.table(w, "Three-task cases (CPU and syncs a case)", []line{
		{"three-1", "Tasq, one caller", tree, full}, {"three-64", "Tasq, 64 in flight", tree, full},
	}, append([]column{{"rate", "cases/s"}, {"p50", "p50 ms"}, {"p99", "p99 ms"}}, cost...))
	b.table(w, "Enqueue to running, one caller", []line{
		{"running", "Tasq", tree, full}, {"river-1", "River", river, full}, {"backlite-1", "backlite", backlite, full},
	}, []column{{"p50", "p50 ms"}, {"p99", "p99 ms"}})
	b.functionTables(w, r)
	b.table(w, "A file that grew, 64 in flight (CPU an item)", []line{
		{"small", fmt.Sprintf("%s finished items", count(smallFile)), tree, full},
		{"grown", fmt.Sprintf("%s finished items", count(r.grown())), tree, full},
	}, []column{{"cpu", "CPU us"}, {"rate", "items/s"}, {"syncs", "syncs"}})
	b.table(w, "One case whose task has many parts, done by 64 workers (us a part)",
		append(crowdLines("items", "work items"), crowdLines("cases", "child cases")...),
		[]column{{"start", "to started"}, {"all", "to completed"}, {"cpu", "CPU us"}})
	b.table(w, "Memory a case that waits, over an engine at rest, in bytes", []line{
		{"pending", count(r.pending()) + " items for a busy worker", tree, full},
		{"pending-open", "the same, after opening again", tree, full},
		{"asleep", count(r.sleeping()) + " cases that sleep until tomorrow", tree, full},
		{"asleep-open", "the same, after opening again", tree, full},
	}, []column{{"heap", "Go heap"}, {"rss", "RSS"}, {"open", "opening s"}})
	b.table(w, fmt.Sprintf("Opening after kill -9 with a full window, %s items in the file", count(r.old())), []line{
		{"open", "Tasq", tree, full},
	}, []column{{"open", "s"}})
	b.table(w, "Or-join decisions on nets of 200 tasks", []line{
		{"or-join", "blocks", tree, "none"}, {"or-join-regions", "blocks, cancellation", tree, "none"},
	}, []column{{"p50", "p50 us"}, {"p99", "p99 us"}, {"max", "max us"}, {"n", "decisions"}, {"open", "undecided"}})
	b.table(w, "Idle with 100 sleeping cases, a minute", []line{{"idle", "Tasq", tree, full}},
		[]column{{"queries", "queries"}, {"looks", "looks at data_version"}, {"files", "file reads, writes, syncs"},
			{"cpu", "CPU ms"}})
	b.postgresTables(w)
	b.verifyTables(w, r)
	b.ratios(w)
	b.targets(w, r)
	elsewhere(w)
}

// table prints the lines that were measured.
func (b *bench) table(w io.Writer, title string, lines []line, columns []column) {
	rows := [][]string{{"what", "version", "durable"}}
	for _, c := range columns {
		rows[0] = append(rows[0], c.title)
	}
	for _, l := range lines {
		if b.results[l.step] == nil {
			continue
		}
		row := []string{l.who, l.version, l.durable}
		for _, c := range columns {
			row = append(row, b.get(l.step, c.metric).String())
		}
		rows = append(rows, row)
	}
	if len(rows) > 1 {
		grid(w, title, rows)
	}
}

// grid prints a table that is easy to read as it is, and is Markdown too.
func grid(w io.Writer, title string, rows [][]string) {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	fmt.Fprintf(w, "\n## %s\n\n", title)
	for n, row := range rows {
		for i, cell := range row {
			fmt.Fprintf(w, "| %s%s ", cell, strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)))
		}
		fmt.Fprintln(w, "|")
		if n == 0 {
			for _, width := range widths {
				fmt.Fprintf(w, "| %s ", strings.Repeat("-", width))
			}
			fmt.Fprintln(w, "|")
		}
	}
}

// count writes a number of things.
func count(n int) string {
	switch {
	case n >= 1_000_000 && n%1_000_000 == 0:
		return fmt.Sprintf("%d M", n/1_000_000)
	case n >= 1000 && n%1000 == 0:
		return fmt.Sprintf("%d k", n/1000)
	}
	return fmt.Sprint(n)
}

// ratio compares a metric of two measurements.
type ratio struct{ what, step, over, metric string }

func (b *bench) ratios(w io.Writer) {
	rows := [][]string{{"ratio", "median [range]"}}
	for _, q := range append([]ratio{
		{"items/s, 64 in flight: Tasq / River, drained", "tasq-64", "river-drain", "rate"},
		{"items/s, 64 in flight: Tasq / River, one by one", "tasq-64", "river-64", "rate"},
		{"items/s, 64 in flight: Tasq / backlite", "tasq-64", "backlite-64", "rate"},
		{"items/s, 64 in flight: Tasq / raw program", "tasq-64", "raw-64", "rate"},
		{"items/s, 64 in flight: NORMAL / FULL", "tasq-64-normal", "tasq-64", "rate"},
		{"CPU an item, 64 in flight: Tasq / raw program", "tasq-64", "raw-64", "cpu"},
		{"CPU an item, 64 in flight: River, drained / Tasq", "river-drain", "tasq-64", "cpu"},
		{"CPU an item, 64 in flight: backlite / Tasq", "backlite-64", "tasq-64", "cpu"},
		{"p50 of a case, one caller: Tasq / raw program", "tasq-1", "raw-1", "p50"},
		{"enqueue to running, p50: River / Tasq", "river-1", "running", "p50"},
		{"enqueue to running, p50: backlite / Tasq", "backlite-1", "running", "p50"},
		{"CPU an item: grown file / small file", "grown", "small", "cpu"},
	}, functionRatios()...) {
		if r := b.get(q.step, q.metric).over(b.get(q.over, q.metric)); r != nil {
			rows = append(rows, []string{q.what, r.String()})
		}
	}
	if len(rows) > 1 {
		grid(w, "Ratios, round by round", rows)
	}
}
