package main

import (
	"runtime/debug"
	"slices"
	"time"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/postgres"
	"github.com/tasq-dev/tasq/store/sqlite"
)

// job is the input of a child process.
type job struct {
	dir      string // where its files go
	quick    bool
	span     span
	rest     time.Duration // how long idling is watched
	verbose  bool          // it prints more on standard error
	finished int           // finished cases that a grown database on a server has
	dsn      string        // of an empty database on a server; "" measures in a file
	window   time.Duration // of [postgres.Window]
}

// store is where Tasq keeps what is measured. The options are for a file.
func (r job) store(opts ...sqlite.Option) store.Opener {
	if r.dsn != "" {
		return postgres.Open(r.dsn, postgres.Window(r.window))
	}
	return file(r.dir, opts...)
}

// pick chooses by the size of the run.
func (r job) pick(quick, full int) int {
	if r.quick {
		return quick
	}
	return full
}

func newJob(dir string, quick bool) job {
	if quick {
		return job{dir: dir, quick: true, rest: 5 * time.Second,
			span: span{warm: 300 * time.Millisecond, length: time.Second}}
	}
	return job{dir: dir, rest: time.Minute, span: span{warm: time.Second, length: 3 * time.Second}}
}

// lasting changes how long a closed loop is measured, unless it is 0.
func (r job) lasting(length time.Duration) job {
	if length > 0 {
		r.span.length = length
	}
	return r
}

// verbosely has it print more on standard error.
func (r job) verbosely(more bool) job {
	r.verbose = more
	return r
}

// holding changes how many finished cases a grown database on a server has, unless it is 0.
func (r job) holding(finished int) job {
	if r.finished = r.grown(); finished > 0 {
		r.finished = finished
	}
	return r
}

// budget is how many states the naive search of a net may look at.
func (r job) budget() int { return r.pick(20_000, 200_000) }

// The sizes of the large files, in finished or pending cases of one item.
func (r job) grown() int    { return r.pick(300_000, 5_000_000) }
func (r job) old() int      { return r.pick(100_000, 1_000_000) }
func (r job) pending() int  { return r.pick(100_000, wantPending) }
func (r job) sleeping() int { return r.pick(50_000, wantSleeping) }

// The numbers that the targets for memory are about.
const (
	wantPending  = 1_000_000
	wantSleeping = 100_000
)

// smallFile is the small one that a grown file is compared with.
const smallFile = 10_000

// step is one measurement, which runs in a process of its own: so no run pays for another's garbage, CPU and memory are
// those of this one, and a process can be killed.
type step struct {
	name   string
	shared string // folder that outlives the run; "" gets a fresh one each time
	needs  string // archive of models without which it is left out
	server bool   // it needs a PostgreSQL server, without which it is left out
	once   bool   // in the first round only: a matter of size, or too long
	rare   bool   // of a quick run, in the first round only
	long   bool   // not in a quick run
	kill   bool   // it is killed as soon as it says "full"
	run    func(job) (metrics, error)
}

// steps are all measurements, in the order of a round.
var steps = slices.Concat(rateSteps, functionSteps(), sizeSteps, crowdSteps(), verifySteps(), postgresSteps())

// rateSteps are closed loops: they are what the rounds are for.
var rateSteps = []step{
	{name: "tasq-1", run: func(r job) (metrics, error) { return cases(r, 1, oneTask) }},
	{name: "tasq-1-normal", run: func(r job) (metrics, error) { return cases(r, 1, oneTask, sqlite.LoseLastCommits()) }},
	{name: "raw-1", run: func(r job) (metrics, error) { return raw(r, 1) }},
	{name: "tasq-64", run: func(r job) (metrics, error) { return cases(r, 64, oneTask) }},
	{name: "tasq-64-normal", run: func(r job) (metrics, error) { return cases(r, 64, oneTask, sqlite.LoseLastCommits()) }},
	{name: "tasq-64-gogc", run: func(r job) (metrics, error) {
		debug.SetGCPercent(400)
		return cases(r, 64, oneTask)
	}},
	{name: "tasq-64-hands", run: func(r job) (metrics, error) { return hands(r, 64) }},
	{name: "raw-64", run: func(r job) (metrics, error) { return raw(r, 64) }},
	{name: "river-64", run: func(r job) (metrics, error) { return jobsOf(r, 64, newRiver) }},
	{name: "river-drain", run: func(r job) (metrics, error) { return drain(r, r.pick(2_000, 10_000), newRiver) }},
	{name: "backlite-64", run: func(r job) (metrics, error) { return jobsOf(r, 64, newBacklite) }},
	{name: "three-1", run: func(r job) (metrics, error) { return cases(r, 1, threeTasks) }},
	{name: "three-64", run: func(r job) (metrics, error) { return cases(r, 64, threeTasks) }},
	{name: "running", run: toRunning},
	{name: "river-1", run: func(r job) (metrics, error) { return jobsOf(r, 1, newRiver) }},
	{name: "backlite-1", run: func(r job) (metrics, error) { return jobsOf(r, 1, newBacklite) }},
}

// sizeSteps are about much of something.
var sizeSteps = []step{
	{name: "fill-grown", shared: "grown", once: true, run: func(r job) (metrics, error) { return filled(r, r.grown()) }},
	{name: "small", run: func(r job) (metrics, error) {
		if err := fill(r.dir, smallFile); err != nil {
			return nil, err
		}
		return cases(r, 64, oneTask)
	}},
	{name: "grown", shared: "grown", run: func(r job) (metrics, error) { return cases(r, 64, oneTask) }},

	{name: "fill-old", shared: "old", once: true, run: func(r job) (metrics, error) { return filled(r, r.old()) }},
	{name: "crash", shared: "old", kill: true},
	{name: "open", shared: "old", run: func(r job) (metrics, error) { return opened(r, r.old(), oneTask) }},

	{name: "or-join", run: func(job) (metrics, error) { return orJoins(40, false) }},
	{name: "or-join-regions", run: func(job) (metrics, error) { return orJoins(40, true) }},

	{name: "pending", shared: "pending", once: true, run: func(r job) (metrics, error) {
		return memory(r, oneWorker, blocked, r.pending(), wantPending)
	}},
	{name: "pending-open", shared: "pending", once: true, run: func(r job) (metrics, error) {
		return opened(r, r.pending(), blocked)
	}},
	{name: "asleep", shared: "asleep", once: true, run: func(r job) (metrics, error) {
		return memory(r, oneWorker, asleep, r.sleeping(), wantSleeping)
	}},
	{name: "asleep-open", shared: "asleep", once: true, run: func(r job) (metrics, error) {
		return opened(r, r.sleeping(), asleep)
	}},
	{name: "idle", once: true, run: idle},
}

// filled fills a file and says how long that took.
func filled(r job, n int) (metrics, error) {
	at := time.Now()
	err := fill(r.dir, n)
	return metrics{"seconds": time.Since(at).Seconds()}, err
}

// nothing reads nothing.
func nothing(store.Reader) error { return nil }
