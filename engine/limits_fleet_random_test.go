package engine_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/internal/testsize"
	"github.com/tasq-dev/tasq/limit"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// The shared limits of the random histories of fleets. Numbers of the first two are set while engines run.
var (
	fleetSlots    = limit.Resource("slots", 3).Shared()
	fleetCalls    = limit.Calls(6, 300*time.Millisecond).Shared()
	fleetCustomer = limit.Resource("customer", 1).Shared() // of each key
)

const (
	fleetMost   = 6 // Config.MaxPending of each engine
	fleetDeaths = 3 // a job whose engine has died once more is given up
)

type fleetJob struct {
	N    int
	Key  string
	Busy time.Duration
}

// fleetFunction is a function of the histories, with its queue and what it takes. The queue without a name has a bound, and is not filled by those
// that wait for the rate.
type fleetFunction struct {
	name, queue            string
	slots, calls, customer int64
}

var fleetFunctions = []fleetFunction{{"slot", "", 1, 0, 0}, {"lane", "", 1, 0, 1}, {"wide", "", 2, 0, 0}, {"both", "rates", 1, 1, 0}, {"many", "rates", 0, 3, 0}}

// fleetCall is one call of a function.
type fleetCall struct {
	fleetFunction
	in         fleetJob
	begin, end time.Time
}

// numberSpan is a time in which a number of a limit may be in force in some engine.
type numberSpan struct {
	n        int64
	from, to time.Time
}

// fleetHistory is a random history of several engines on one database. It notes what functions see, and what is set when; check compares
// that with the journal.
type fleetHistory struct {
	fleetOf
	c       *pgx.Conn
	r       *rand.Rand
	members []*fleetEngine // nil where none is open
	runs    []builder.Run[int]
	numbers map[string][]numberSpan
	deaths  map[int64]time.Time // of engines by their numbers: before the statement
	refused int

	gate    chan struct{} // closed when functions that take turns may end
	entries []*store.Entry

	mu    sync.Mutex
	calls []*fleetCall
	turns []fleetTurn // in the order in which they began
}

type fleetEngine struct {
	*engine.Engine
	functions []*builder.FuncRef[fleetJob, int]
	turn      *builder.FuncRef[fleetJob, int]
}

// fleetTurn is the call of a function that takes turns.
type fleetTurn struct {
	in  *fleetEngine
	key string
}

func newFleetHistory(t *testing.T, seed int) *fleetHistory {
	h := &fleetHistory{fleetOf: newFleet(t), r: rand.New(rand.NewPCG(uint64(seed), 5)), members: make([]*fleetEngine, 3),
		numbers: make(map[string][]numberSpan), gate: make(chan struct{}), deaths: make(map[int64]time.Time)}
	h.dsn += "&tasq_poll=20ms" // heartbeats follow each other quickly
	for _, l := range []limit.Limit{fleetSlots, fleetCalls, fleetCustomer} {
		h.numbers[l.Name] = []numberSpan{{n: l.N, to: time.Now().Add(time.Hour)}}
	}
	var err error
	h.c, err = pgx.Connect(t.Context(), h.fleetOf.dsn[:len(h.dsn)-len("&tasq_poll=20ms")])
	require.NoError(t, err)
	t.Cleanup(func() { _ = h.c.Close(context.Background()) })
	for i := range h.members[:2] {
		h.enter(i)
	}
	return h
}

// enter opens an engine.
func (h *fleetHistory) enter(i int) {
	m := new(fleetEngine)
	var all []engine.Workflow
	key := func(in fleetJob) string { return in.Key }
	for _, f := range fleetFunctions {
		opts := []builder.FuncOption{builder.FairBy(key), builder.OnQueue(f.queue)}
		for _, use := range []struct {
			l limit.Limit
			n int64
		}{{fleetSlots, f.slots}, {fleetCalls, f.calls}} {
			if use.n > 0 {
				opts = append(opts, builder.Limits(builder.Takes(use.l, use.n)))
			}
		}
		if f.customer > 0 {
			opts = append(opts, builder.Limits(builder.TakesBy(fleetCustomer, f.customer, key)))
		}
		m.functions = append(m.functions, builder.MustFunc(f.name, func(ctx context.Context, in fleetJob) (int, error) {
			return h.call(ctx, &fleetCall{fleetFunction: f, in: in, begin: time.Now()})
		}, opts...))
		all = append(all, m.functions[len(m.functions)-1])
	}
	m.turn = builder.MustFunc("turn", func(ctx context.Context, in fleetJob) (int, error) {
		h.mu.Lock()
		h.turns = append(h.turns, fleetTurn{m, in.Key})
		h.mu.Unlock()
		select {
		case <-h.gate:
			return in.N, nil
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}, builder.FairBy(key), builder.OnQueue("turns"))
	m.Engine = h.fleetOf.open(engine.Config{Workers: 4, Queues: map[string]int{"turns": 1}, MaxPending: map[string]int{"": fleetMost}}, append(all, m.turn)...)
	h.members[i] = m
}

func (h *fleetHistory) call(ctx context.Context, c *fleetCall) (int, error) {
	h.mu.Lock()
	h.calls = append(h.calls, c)
	h.mu.Unlock()
	defer func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		c.end = time.Now()
	}()
	select {
	case <-time.After(c.in.Busy):
		return c.in.N, nil
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// number is what a statement gives.
func (h *fleetHistory) number(query string, args ...any) (n int) {
	h.t.Helper()
	require.NoError(h.t, h.c.QueryRow(h.t.Context(), query, args...).Scan(&n), query)
	return n
}

// soon waits until something is the case. It is a bound against hanging.
func (h *fleetHistory) soon(what string, is func() bool) {
	h.t.Helper()
	for end := time.Now().Add(time.Minute); !is(); <-time.After(5 * time.Millisecond) {
		require.True(h.t, time.Now().Before(end), what)
	}
}

// some is a random engine that is open.
func (h *fleetHistory) some() *fleetEngine {
	for {
		if m := h.members[h.r.IntN(len(h.members))]; m != nil {
			return m
		}
	}
}

// each calls f with the engines that are open.
func (h *fleetHistory) each(f func(*fleetEngine)) {
	for _, m := range h.members {
		if m != nil {
			f(m)
		}
	}
}

const (
	waitingJobs = "SELECT count(*) FROM tasq.jobs WHERE queue = '' AND state = 'pending'"
	liveJobs    = "SELECT count(*) FROM tasq.jobs WHERE queue = '' AND state IN ('pending', 'running')" // a running one may wait again
)

// start starts a run of a function of a queue, and reports whether it was not refused. It may be refused only if the queue is full. The count that says so may be a
// moment old, so a start is asked for again if there is room.
func (h *fleetHistory) start(m *fleetEngine, queue string) bool {
	in := fleetJob{N: len(h.runs), Key: string(rune('a' + h.r.IntN(3))), Busy: time.Duration(h.r.IntN(200)) * time.Millisecond}
	of := h.r.IntN(len(m.functions))
	for fleetFunctions[of].queue != queue {
		of = h.r.IntN(len(m.functions))
	}
	f, priority := m.functions[of], max(0, h.r.IntN(6)-3)
	started := false
	h.soon("a start is refused although the queue has room", func() bool {
		run, err := f.Run(h.t.Context(), m.Engine, in, workflow.Priority(priority))
		if started = err == nil; started {
			h.runs = append(h.runs, run)
			return true
		}
		require.ErrorIs(h.t, err, engine.ErrFull)
		return queue == "" && h.number(liveJobs) >= fleetMost
	})
	if !started {
		h.refused++
	}
	return started
}

// set sets a limit. The numbers before it may be in force until all engines have the new one, and have claimed what was admitted before.
func (h *fleetHistory) set(name string, n int64) {
	h.numbers[name] = append(h.numbers[name], numberSpan{n: n, from: time.Now(), to: time.Now().Add(time.Hour)})
	_, err := h.some().Do(h.t.Context(), workflow.SetLimit(name, n))
	require.NoError(h.t, err)
	h.each(func(m *fleetEngine) {
		h.soon("an engine does not learn the number of "+name, func() bool {
			r, err := m.Do(h.t.Context(), workflow.Limits())
			require.NoError(h.t, err)
			i := slices.IndexFunc(r.Limits, func(l workflow.LimitInfo) bool { return l.Limit.Name == name })
			return r.Limits[i].Limit.N == n
		})
		require.NoError(h.t, m.Update(h.t.Context(), func(*engine.Tx) error { return nil }))
	})
	all := h.numbers[name]
	for i := range all[:len(all)-1] {
		all[i].to = minTime(all[i].to, time.Now())
	}
}

// die has the database say that an engine is dead, which is not.
func (h *fleetHistory) die() {
	if len(h.deaths) == fleetDeaths {
		return
	}
	at, id := time.Now(), int64(0)
	err := h.c.QueryRow(h.t.Context(), "UPDATE tasq.processes SET state = 'dead' WHERE id = "+
		"(SELECT id FROM tasq.processes WHERE state = 'live' ORDER BY random() LIMIT 1) RETURNING id").Scan(&id)
	if !errors.Is(err, pgx.ErrNoRows) {
		require.NoError(h.t, err)
		h.deaths[id] = at
	}
}

// happens is one step of the history.
func (h *fleetHistory) happens() {
	switch what := h.r.IntN(20); {
	case what < 9:
		for range 1 + h.r.IntN(4) {
			h.start(h.some(), "")
		}
	case what < 12:
		h.start(h.some(), "rates")
	case what == 12:
		h.set(fleetSlots.Name, h.r.Int64N(6))
	case what == 13:
		h.set(fleetCalls.Name, h.r.Int64N(10))
	case what < 16:
		h.die()
	case what < 18:
		i := h.r.IntN(len(h.members))
		switch m := h.members[i]; {
		case m == nil:
			h.enter(i)
		case slices.ContainsFunc(h.members, func(other *fleetEngine) bool { return other != nil && other != m }):
			h.members[i] = nil
			require.NoError(h.t, m.Close())
		}
	default:
		<-time.After(time.Duration(h.r.IntN(40)) * time.Millisecond)
	}
}

// fill has a paused queue filled. Once each engine has counted, all refuse, also one that is opened then.
func (h *fleetHistory) fill() {
	_, err := h.some().Do(h.t.Context(), workflow.PauseQueue(""))
	require.NoError(h.t, err)
	h.each(func(m *fleetEngine) {
		h.soon("an engine does not learn that the queue is paused", func() bool {
			r, err := m.Do(h.t.Context(), workflow.Queues())
			require.NoError(h.t, err)
			return slices.ContainsFunc(r.Queues, func(q workflow.QueueInfo) bool { return q.Queue == "" && q.Paused })
		})
		require.NoError(h.t, m.Update(h.t.Context(), func(*engine.Tx) error { return nil })) // what was claimed before is
	})
	h.soon("jobs run in a paused queue", func() bool {
		return h.number("SELECT count(*) FROM tasq.jobs WHERE queue = '' AND state = 'running'") == 0
	})
	for h.number(waitingJobs) < fleetMost {
		h.start(h.some(), "")
	}
	h.count()
	before := h.number(waitingJobs)
	h.each(func(m *fleetEngine) { require.False(h.t, h.start(m, ""), "%d wait", before) })
	if i := slices.Index(h.members, nil); i >= 0 {
		h.enter(i)
		require.False(h.t, h.start(h.members[i], ""), "%d wait as it is opened", before)
	}
	require.Equal(h.t, before, h.number(waitingJobs))
	_, err = h.some().Do(h.t.Context(), workflow.ResumeQueue(""))
	require.NoError(h.t, err)
}

// count waits until each engine has counted what waits elsewhere, which follows a heartbeat: after the second one it has.
func (h *fleetHistory) count() {
	are := 0
	h.each(func(*fleetEngine) { are++ })
	h.soon("an engine does not join anew", func() bool { return h.number("SELECT count(*) FROM tasq.processes WHERE state = 'live'") == are })
	for range 2 {
		at := time.Time{}
		require.NoError(h.t, h.c.QueryRow(h.t.Context(), "SELECT clock_timestamp()").Scan(&at))
		h.soon("no heartbeat", func() bool {
			return h.number("SELECT count(*) FROM tasq.processes p JOIN tasq.pulses u ON u.process = p.id WHERE p.state = 'live' AND u.beat <= $1", at) == 0
		})
	}
}

// takeTurns has one key start many runs on all engines, whose workers are busy, and then others one each on one engine, which keeps those: before
// each, at most two of each other key start there.
func (h *fleetHistory) takeTurns() {
	run := func(m *fleetEngine, key string) {
		run, err := m.turn.Run(h.t.Context(), m.Engine, fleetJob{N: len(h.runs), Key: key})
		require.NoError(h.t, err)
		h.runs = append(h.runs, run)
	}
	busy := 0
	h.each(func(m *fleetEngine) {
		run(m, "first")
		busy++
	})
	begun := func() int {
		h.mu.Lock()
		defer h.mu.Unlock()
		return len(h.turns)
	}
	h.soon("an engine is idle", func() bool { return begun() == busy })
	for range 20 {
		run(h.some(), "many")
	}
	m, singles := h.some(), []string{"ada", "bob", "eve"}
	for _, key := range singles {
		run(m, key)
	}
	close(h.gate)
	h.soon("jobs wait", func() bool { return begun() == busy+20+len(singles) })
	many := 0
	for _, turn := range h.turns {
		switch {
		case turn.in == m && turn.key == "many":
			many++
		case slices.Contains(singles, turn.key):
			require.Equal(h.t, m, turn.in, "%s has one job, which its engine keeps", turn.key)
			require.LessOrEqual(h.t, many, 2, "jobs of another key before the first of %s", turn.key)
		}
	}
}

// finish lifts what was set, and requires that all ends, and that nothing is in use then.
func (h *fleetHistory) finish() {
	h.set(fleetSlots.Name, fleetSlots.N)
	h.set(fleetCalls.Name, 1000)
	m := h.some()
	for i, run := range h.runs {
		require.Equal(h.t, fmt.Sprint("completed: ", i), ends(h.t, m.Engine, run.ID))
	}
	h.soon("a slot is taken though nothing runs", func() bool {
		return h.number("SELECT count(*) FROM tasq.limits l, jsonb_object_keys(l.state::jsonb -> 'held') k, tasq.processes p "+
			"WHERE p.id = k::bigint AND p.state = 'live'") == 0 // those of the others are free, and stay in the row until it is asked for
	})
	for entry, err := range store.AllEntries(h.t.Context(), m, store.JournalFilter{}) {
		require.NoError(h.t, err)
		h.entries = append(h.entries, entry)
	}
	h.each(func(m *fleetEngine) { require.NoError(h.t, m.Close()) })
}

// fleetClaim is the claim of a job, as the journal has it.
type fleetClaim struct {
	at, over time.Time // over: when the job left its worker
	process  int64
}

// claims are the claims of each run, in their order; a run has one job at a time.
func (h *fleetHistory) claims() map[workitem.CaseID][]*fleetClaim {
	processes := make(map[int64]int64)
	rows, err := h.c.Query(h.t.Context(), "SELECT seq, process FROM tasq.journal")
	require.NoError(h.t, err)
	for rows.Next() {
		var seq, process int64
		require.NoError(h.t, rows.Scan(&seq, &process))
		processes[seq] = process
	}
	require.NoError(h.t, rows.Err())
	all, done := make(map[workitem.CaseID][]*fleetClaim), make(map[workitem.CaseID]int)
	for _, entry := range h.entries {
		for _, c := range entry.Changes {
			moved, ok := c.(*state.JobMoved)
			if !ok {
				continue
			}
			of := all[entry.Root]
			if len(of) > 0 && of[len(of)-1].over.IsZero() {
				of[len(of)-1].over = entry.At
			}
			if moved.To == state.JobRunning {
				all[entry.Root] = append(of, &fleetClaim{at: entry.At, process: processes[entry.Seq]})
			}
			if moved.To == state.JobDone {
				done[entry.Root]++
			}
		}
	}
	for _, run := range h.runs {
		require.Equal(h.t, 1, done[run.ID], "a run ends once")
	}
	return all
}

// heldCall is a call with the claim by which it counts.
type heldCall struct {
	*fleetCall
	claim *fleetClaim
}

// counted are the calls that count for limits: those of claims that the journal has, until the engine of the claim was declared dead. What a
// function does for an engine that is dead, and does not know it yet, is counted by none.
func (h *fleetHistory) counted() (calls []heldCall) {
	claims := h.claims()
	for _, c := range h.calls {
		var of *fleetClaim
		for _, claim := range claims[h.runs[c.in.N].ID] {
			if !claim.at.After(c.begin) {
				of = claim
			}
		}
		if of == nil || !of.over.IsZero() && of.over.Before(c.begin) {
			continue
		}
		if died, dead := h.deaths[of.process]; dead {
			if !died.After(c.begin) {
				continue
			}
			c.end = minTime(c.end, died)
		}
		calls = append(calls, heldCall{c, of})
	}
	slices.SortFunc(calls, func(a, b heldCall) int { return a.begin.Compare(b.begin) })
	return calls
}

// allowed is the largest number that a limit may have had in an engine in some time.
func (h *fleetHistory) allowed(name string, from, to time.Time) (most int64) {
	for _, span := range h.numbers[name] {
		if !span.from.After(to) && !span.to.Before(from) {
			most = max(most, span.n)
		}
	}
	return most
}

// check compares what functions saw with the limits. A job may begin some time after it was admitted: one of a rate within Hold, and any other
// soon, as its claim is sent in the moment in which it is admitted. All times are of one clock.
func (h *fleetHistory) check() {
	calls := h.counted()
	require.NotEmpty(h.t, calls)
	for i, c := range calls {
		var slots, ofKey int64
		for _, other := range calls[:i+1] {
			if other.end.After(c.begin) || other == c {
				slots += other.slots
				if other.in.Key == c.in.Key {
					ofKey += other.customer
				}
			}
		}
		if c.slots > 0 {
			require.LessOrEqual(h.t, slots, h.allowed(fleetSlots.Name, c.claim.at.Add(-300*time.Millisecond), c.begin), "slots")
		}
		if c.customer > 0 {
			require.LessOrEqual(h.t, ofKey, fleetCustomer.N, "slots of customer %s", c.in.Key)
		}
		h.checkWindow(calls, c.claim.at)
	}
	h.t.Logf("%d calls, %d of them count, %d starts refused, %d deaths", len(h.calls), len(calls), h.refused, len(h.deaths))
}

// checkWindow checks the window that begins at a time. A call is in it if its claim and its beginning are: it was counted between.
func (h *fleetHistory) checkWindow(calls []heldCall, from time.Time) {
	var n int64
	var claimed, begun time.Time
	for _, c := range calls {
		if c.fleetFunction.calls == 0 || c.claim.at.Before(from) || !c.begin.Before(from.Add(fleetCalls.Per)) {
			continue
		}
		n, begun = n+c.fleetFunction.calls, c.begin
		if c.claim.at.After(claimed) {
			claimed = c.claim.at
		}
	}
	require.LessOrEqual(h.t, n, h.allowed(fleetCalls.Name, claimed.Add(-fleetCalls.Hold()), begun), "calls in a window")
}

func minTime(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// Random functions on several engines take of shared limits, which are set meanwhile, while engines close, are opened and are taken for dead: no limit is
// exceeded, starts are refused if and only if the queue is full, and each run ends once.
func TestRandomHistoriesOfLimitsInAFleet(t *testing.T) {
	t.Parallel()
	for seed := range testsize.Pick(1, 3, 60) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			h := newFleetHistory(t, seed)
			for range 40 {
				h.happens()
			}
			h.fill()
			h.takeTurns()
			h.finish()
			h.check()
		})
	}
}
