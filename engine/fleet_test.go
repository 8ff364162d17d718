package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/domain"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/internal/integrity"
	"github.com/tasq-dev/tasq/internal/pgtest"
	"github.com/tasq-dev/tasq/limit"
	"github.com/tasq-dev/tasq/step"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/postgres"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"

	"github.com/tasq-dev/tasq/internal/testsize"
)

// fleetOf is a database that several engines have open.
type fleetOf struct {
	t   *testing.T
	dsn string
}

// prepared are databases whose tables are there.
var prepared = pgtest.Pool{Schema: postgres.DefaultSchema, Make: func(dsn string) error {
	s, err := postgres.Open(dsn).Open(context.Background(), store.Options{})
	if err != nil {
		return err
	}
	return s.Close()
}}

// newFleet makes an empty database, which is checked when all engines are closed.
func newFleet(t *testing.T) fleetOf {
	t.Parallel()
	return fleetOn(t, prepared.Database(t))
}

// fleetOn is newFleet for an empty database that is there.
func fleetOn(t *testing.T, dsn string) fleetOf {
	f := fleetOf{t, dsn}
	t.Cleanup(func() {
		s, err := postgres.Open(f.dsn).Open(context.Background(), store.Options{ReadOnly: true})
		require.NoError(t, err)
		require.NoError(t, integrity.Check(context.Background(), s))
		require.NoError(t, s.Close())
	})
	return f
}

// open opens an engine, which is closed with the test.
func (f fleetOf) open(cfg engine.Config, workflows ...engine.Workflow) *engine.Engine {
	f.t.Helper()
	cfg.Logger, cfg.Grace = slog.New(slog.DiscardHandler), 100*time.Millisecond
	e, err := cfg.Open(f.t.Context(), postgres.Open(f.dsn), workflows...)
	require.NoError(f.t, err)
	f.t.Cleanup(func() { _ = e.Close() })
	return e
}

// sql runs a statement on the database, beside the engines.
func (f fleetOf) sql(query string, args ...any) (n int) {
	f.t.Helper()
	c, err := pgx.Connect(context.Background(), f.dsn)
	require.NoError(f.t, err)
	defer c.Close(context.Background())
	rows, err := c.Query(context.Background(), query, args...)
	require.NoError(f.t, err)
	defer rows.Close()
	for rows.Next() {
		require.NoError(f.t, rows.Scan(&n))
	}
	require.NoError(f.t, rows.Err())
	return n
}

// until waits until the number that a statement gives is enough. It asks on one connection, as making one takes the server longer than
// the statement.
func (f fleetOf) until(query string, enough func(n int) bool) {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), time.Minute)
	defer cancel()
	c, err := pgx.Connect(ctx, f.dsn)
	require.NoError(f.t, err)
	defer c.Close(context.Background())
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for n := 0; ; <-again.C {
		require.NoError(f.t, c.QueryRow(ctx, query).Scan(&n), "%s gave %d", query, n)
		if enough(n) {
			return
		}
	}
}

// exactly is what is enough if only this number is.
func exactly(want int) func(int) bool { return func(n int) bool { return n == want } }

// ends waits until a case has ended, as an engine sees it.
func ends(t *testing.T, e *engine.Engine, id workitem.CaseID) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute) // a bound against hanging: a slow machine has a long backlog
	defer cancel()
	c, err := e.Wait(ctx, id)
	if err != nil {
		answer, _ := e.Why(t.Context(), id)
		require.NoError(t, err, "%+v", answer)
	}
	if c.Failure != nil {
		return c.State.String() + ": " + c.Failure.Code
	}
	return c.State.String() + ": " + string(c.Output)
}

func startOn(t *testing.T, e *engine.Engine, name, input string) workitem.CaseID {
	t.Helper()
	r, err := e.Do(t.Context(), workflow.Start(name, []byte(input)))
	require.NoError(t, err)
	return r.Case
}

// Work that one engine cannot begin is done by the others, once.
func TestEnginesShareTheWork(t *testing.T) {
	f := newFleet(t)
	f.sql("CREATE TABLE effects (n int, worker text)")
	var engines []*engine.Engine
	names := []string{"a", "b", "c"}
	for _, name := range names {
		w, _ := function(t, "work", func(ctx context.Context, n int) (int, error) {
			return step.Tx(ctx, "effect", func(ctx context.Context, db domain.DB) (int, error) {
				_, err := db.ExecContext(ctx, "INSERT INTO effects SELECT $1, $2 FROM pg_sleep(0.002)", n, name)
				return n, err
			})
		})
		engines = append(engines, f.open(engine.Config{Workers: 2}, w))
	}
	f.until("SELECT count(*) FROM tasq.processes WHERE state = 'live'", exactly(3))
	n := testsize.Pick(80, 150, 150)
	ids := make([]workitem.CaseID, n)
	var starts sync.WaitGroup
	for i := range n {
		starts.Go(func() {
			r, err := engines[0].Do(t.Context(), workflow.Start("work", []byte(fmt.Sprint(i))))
			if err == nil {
				ids[i] = r.Case
			}
		})
	}
	starts.Wait()
	for i, id := range ids {
		require.Equal(t, fmt.Sprintf("completed: %d", i), ends(t, engines[i%3], id))
	}
	require.Equal(t, n, f.sql("SELECT count(*) FROM effects"))
	require.Equal(t, n, f.sql("SELECT count(DISTINCT n) FROM effects"))
	require.Greater(t, f.sql("SELECT count(DISTINCT worker) FROM effects"), 1, "one engine did all")
}

// While there are jobs without an owner, no engine has a free worker: an engine takes only as many as it has room for.
func TestEnginesTakeWhatTheyHaveRoomFor(t *testing.T) {
	f := newFleet(t)
	const engines, workers, jobs = 3, 2, 40
	began, release := make(chan string, jobs), make(chan struct{})
	var last *engine.Engine
	for _, name := range []string{"a", "b", "c"} {
		w, _ := function(t, "work", func(context.Context, int) (int, error) {
			began <- name
			<-release
			return 0, nil
		})
		last = f.open(engine.Config{Workers: workers}, w)
	}
	ids := make([]workitem.CaseID, jobs)
	require.NoError(t, last.Update(t.Context(), func(tx *engine.Tx) error { // the others see all jobs at once
		for i := range ids {
			r, err := tx.Do(t.Context(), workflow.Start("work", []byte("0")))
			if err != nil {
				return err
			}
			ids[i] = r.Case
		}
		return nil
	}))
	running, late := make(map[string]int), time.After(time.Minute)
	for range engines * workers {
		select {
		case name := <-began:
			running[name]++
		case <-late:
			require.FailNow(t, "an engine is idle", "running: %v", running)
		}
	}
	require.Equal(t, map[string]int{"a": workers, "b": workers, "c": workers}, running)
	close(release)
	for _, id := range ids {
		require.Equal(t, "completed: 0", ends(t, last, id))
	}
}

// An engine explains what a job of another engine needs of limits, as far as the database has it.
func TestWhyAJobOfAnotherEngineWaits(t *testing.T) {
	f := newFleet(t)
	began, release := make(chan struct{}, 2), make(chan struct{})
	work := func() engine.Workflow {
		return builder.MustFunc("work", func(context.Context, int) (int, error) {
			began <- struct{}{}
			<-release
			return 0, nil
		}, builder.Limits(builder.Takes(limit.Resource("crane", 1), 1)))
	}
	b := f.open(engine.Config{}, work())
	a := f.open(engine.Config{}, work())
	running := startOn(t, a, "work", "0")
	<-began
	waiting := startOn(t, a, "work", "1")
	text := func() string {
		answer, err := b.Why(t.Context(), waiting)
		require.NoError(t, err)
		return answer.String()
	}
	require.Contains(t, text(), "and room for 1 of slots crane")
	require.NotContains(t, text(), "which is paused")
	_, err := a.Do(t.Context(), workflow.SetLimit("crane", 0))
	require.NoError(t, err)
	require.Contains(t, text(), "waits for 1 of slots crane, which is paused")
	_, err = a.Do(t.Context(), workflow.SetLimit("crane", 1))
	require.NoError(t, err)
	close(release)
	require.Equal(t, "completed: 0", ends(t, a, running))
	require.Equal(t, "completed: 0", ends(t, a, waiting))
}

// blocking is a workflow whose worker waits until its context ends.
func blocking(t *testing.T, began, canceled chan string, name string) engine.Workflow {
	w, _ := function(t, "block", func(ctx context.Context, _ int) (int, error) {
		began <- name
		<-ctx.Done()
		canceled <- name
		return 0, ctx.Err()
	})
	return w
}

// A run that waits, and callers that wait for it, learn of what other engines do.
func TestEnginesLearnFromOneAnother(t *testing.T) {
	f := newFleet(t)
	waits, _ := function(t, "await", func(ctx context.Context, _ int) (int, error) { return step.Await[int](ctx, "number") })
	began, canceled := make(chan string, 10), make(chan string, 10)
	a := f.open(engine.Config{}, waits, blocking(t, began, canceled, "a"))
	b := f.open(engine.Config{Workers: -1}, waits, blocking(t, began, canceled, "b"))
	c := f.open(engine.Config{Workers: -1}, waits, blocking(t, began, canceled, "c"))

	id := startOn(t, a, "await", `0`)
	ended := make(chan string)
	go func() { ended <- ends(t, c, id) }()
	_, err := b.Do(t.Context(), workflow.Send(id, "number", 7))
	require.NoError(t, err)
	require.Equal(t, "completed: 7", <-ended)

	id = startOn(t, a, "block", `0`)
	require.Equal(t, "a", <-began)
	_, err = b.Do(t.Context(), workflow.Cancel(id, workitem.Failf("late", "nobody needs it")))
	require.NoError(t, err)
	select {
	case who := <-canceled:
		require.Equal(t, "a", who)
	case <-time.After(time.Minute):
		t.Fatal("the worker of another engine did not learn that its case was canceled")
	}
	require.Equal(t, "canceled: late", ends(t, c, id))
}

// The work of an engine that was killed, or was closed, is done by another one.
func TestAnEngineIsReplaced(t *testing.T) {
	f := newFleet(t)
	began, canceled := make(chan string, 10), make(chan string, 10)
	a := f.open(engine.Config{}, blocking(t, began, canceled, "a"))
	id := startOn(t, a, "block", `0`)
	require.Equal(t, "a", <-began)
	b := f.open(engine.Config{}, blocking(t, began, canceled, "b"))
	require.NoError(t, a.Kill())
	died := time.Now()
	require.Equal(t, "b", <-began)
	t.Logf("another engine had the job %s after the death of the first", time.Since(died))
	require.Less(t, time.Since(died), time.Minute)
	c := f.open(engine.Config{}, blocking(t, began, canceled, "c"))
	closed := time.Now()
	require.NoError(t, b.Close())
	require.Equal(t, "c", <-began)
	require.Less(t, time.Since(closed), time.Minute)
	_, err := c.Do(t.Context(), workflow.Cancel(id, workitem.Failf("done", "")))
	require.NoError(t, err)
	require.Equal(t, "canceled: done", ends(t, c, id))
}

// A death is noticed as soon if all was quiet until then, also if the one that notices it has no worker: the others hear of the job.
func TestFailureDetectionOfAnIdleFleet(t *testing.T) {
	noticedSoon(t, func(engines map[string]*engine.Engine, began <-chan string) (id workitem.CaseID, dead string) {
		id = startOn(t, engines["none"], "block", `0`)
		dead = <-began
		require.NoError(t, engines[dead].Kill())
		return id, dead
	})
}

// So is that of an engine which dies right behind the commit that ends the quiet.
func TestFailureDetectionAfterTheFirstCommit(t *testing.T) {
	noticedSoon(t, func(engines map[string]*engine.Engine, _ <-chan string) (id workitem.CaseID, dead string) {
		id = startOn(t, engines["a"], "block", `0`)
		require.NoError(t, engines["a"].Kill())
		return id, "a"
	})
}

// killing begins a job, and kills the engine that has it.
type killing func(engines map[string]*engine.Engine, began <-chan string) (id workitem.CaseID, dead string)

// noticedSoon demands that a job continues within seconds whose engine was killed after all was quiet.
func noticedSoon(t *testing.T, kill killing) {
	t.Helper()
	t.Parallel()
	var took time.Duration
	for range 3 { // a slow machine may take long once
		if took = deathAfterQuiet(t, kill); took < 7*time.Second {
			return
		}
	}
	t.Fatalf("it took %s; it is some two seconds, and ten if the quiet lasts", took)
}

// deathAfterQuiet has an engine that begins a job killed after all was quiet. It returns how long it takes until another one has the job.
func deathAfterQuiet(t *testing.T, kill killing) time.Duration {
	t.Helper()
	f := fleetOn(t, prepared.Database(t))
	began, canceled := make(chan string, 10), make(chan string, 10)
	engines := map[string]*engine.Engine{}
	for _, name := range []string{"a", "b"} {
		engines[name] = f.open(engine.Config{}, blocking(t, began, canceled, name))
	}
	e := f.open(engine.Config{Workers: -1}, blocking(t, began, canceled, "none"))
	engines["none"] = e
	f.until("SELECT count(*) FROM tasq.pulses WHERE pace = '10 s' AND NOT busy", exactly(3))
	id, dead := kill(engines, began)
	died := time.Now()
	for name := dead; name == dead; name = <-began {
	}
	took := time.Since(died)
	_, err := e.Do(t.Context(), workflow.Cancel(id, workitem.Failf("done", "")))
	require.NoError(t, err)
	require.Equal(t, "canceled: done", ends(t, e, id))
	return took
}

// An engine that was declared dead, and lives, commits nothing under its old number. It rejoins and continues.
func TestAnEngineThatWasDeclaredDeadRejoins(t *testing.T) {
	f := newFleet(t)
	w, _ := function(t, "double", func(ctx context.Context, n int) (int, error) { return 2 * n, nil })
	e := f.open(engine.Config{}, w)
	for i := range 5 {
		require.Equal(t, fmt.Sprintf("completed: %d", 2*i), ends(t, e, startOn(t, e, "double", fmt.Sprint(i))))
		f.sql("UPDATE tasq.processes SET state = 'dead'")
	}
	require.Equal(t, "completed: 14", ends(t, e, startOn(t, e, "double", `7`)))
	require.Equal(t, 1, f.sql("SELECT count(*) FROM tasq.processes WHERE state = 'live'"))
}

// A job goes only to an engine that has its definition; so does a command that another program leaves.
func TestJobsGoWhereTheirDefinitionIs(t *testing.T) {
	f := newFleet(t)
	wait := func(version int) engine.Workflow {
		w, _ := function(t, fmt.Sprintf("v%d", version), func(ctx context.Context, _ int) (int, error) {
			n, err := step.Await[int](ctx, "number")
			return version * n, err
		})
		return w
	}
	old := f.open(engine.Config{}, wait(1))
	id := startOn(t, old, "v1", `0`)
	other := f.open(engine.Config{}, wait(2))
	_, err := other.Do(t.Context(), workflow.Send(id, "number", 5)) // wakes the job, which only the first engine can do
	require.NoError(t, err)
	require.Equal(t, "completed: 5", ends(t, other, id))
	_, err = other.Do(t.Context(), workflow.Start("v1", []byte(`0`)))
	require.ErrorIs(t, err, engine.ErrUnknown)
	command, err := json.Marshal(workflow.Start("v1", []byte(`0`)))
	require.NoError(t, err)
	for range 5 { // whichever engine looks first
		answer, err := postgres.Post(t.Context(), f.dsn, command)
		require.NoError(t, err)
		_, err = engine.RemoteAnswer(answer)
		require.NoError(t, err, "it is left for the engine that has the workflow")
	}
	require.Equal(t, 6, f.sql("SELECT count(*) FROM tasq.cases"))
}

// The engines of a database are listed with what they hold.
func TestEnginesAreListed(t *testing.T) {
	f := newFleet(t)
	began, canceled := make(chan string, 10), make(chan string, 10)
	a := f.open(engine.Config{Workers: 1}, blocking(t, began, canceled, "a"))
	f.open(engine.Config{}, blocking(t, began, canceled, "b"))
	startOn(t, a, "block", `0`)
	require.Equal(t, "a", <-began)
	members := func() (all []store.Member) {
		t.Helper()
		require.NoError(t, a.View(t.Context(), func(r store.Reader) (err error) {
			all, err = r.(store.Members).Members(t.Context())
			return err
		}))
		require.Len(t, all, 2)
		return all
	}
	all := members()
	require.Equal(t, int64(1), all[0].Held)
	require.Equal(t, int64(1), all[0].Running)
	require.Zero(t, all[0].Lag, "what it holds runs")
	require.Zero(t, all[1].Held)
	for _, m := range all {
		require.Equal(t, 1, m.Definitions)
		require.Less(t, m.Silent, time.Minute)
		require.Less(t, m.Skew.Abs(), 10*time.Second)
		require.WithinDuration(t, time.Now(), m.Joined, time.Minute)
	}
	startOn(t, a, "block", `1`)
	all = members()
	require.Equal(t, int64(2), all[0].Held)
	require.Positive(t, all[0].Lag, "the second one has no worker")
	require.Less(t, all[0].Lag, time.Minute)
}
