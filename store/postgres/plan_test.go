package postgres_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/postgres"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/store/storetest"
	"github.com/tasq-dev/tasq/workitem"

	"github.com/tasq-dev/tasq/internal/testsize"
)

// manyCases is how many copies of a case there are in a grown database: so many that the server's planner reads no table whole that has an
// index for the query, if it expects as many rows as there are.
const manyCases = 5_000

// grow copies the rows of a root case. One in five hundred lives, and one has failed; the others have completed. Every second item is in the default
// queue. The cases have keys of their own, ten of each customer, and all are of one region. Somebody asked for the oldest cases.
func grow(t *testing.T, dsn string, root workitem.CaseID, n int, analyze string) {
	t.Helper()
	c, err := pgx.Connect(t.Context(), dsn)
	require.NoError(t, err)
	defer c.Close(context.Background())
	state := func(live, done string) string {
		return "CASE n % 500 WHEN 0 THEN '" + live + "' WHEN 1 THEN 'failed' ELSE '" + done + "' END"
	}
	id := func(kind int) string {
		return fmt.Sprintf("('0190' || lpad(to_hex(n), 8, '0') || '7000800000000000000%d')::uuid", kind)
	}
	for table, own := range map[string]map[string]string{
		"journal":    {"root": id(1), "seq": "n * 10 + x.rev", "actor": "CASE WHEN n <= 4000 THEN 'ann' ELSE '' END"},
		"cases":      {"root": id(1), "id": id(1), "state": state("started", "completed"), "business_key": "'C-' || n", "labels": `format('{"customer":"c-%s","region":"eu"}', n % 2000)`},
		"work_items": {"root": id(1), "id": id(2), "case_id": id(1), "state": state("started", "completed"), "queue": "CASE n % 2 WHEN 0 THEN x.queue ELSE '' END"},
		"jobs":       {"root": id(1), "id": id(3), "case_id": id(1), "item": id(2), "state": state("pending", "done"), "holder": "0"},
		"steps":      {"root": id(1), "id": id(4), "case_id": id(1), "job": id(3), "item": id(2), "owner": id(2)},
		"messages":   {"root": id(1), "id": id(5), "case_id": id(1)},
	} {
		rows, err := c.Query(t.Context(), "SELECT column_name::text FROM information_schema.columns WHERE table_schema = 'tasq' AND table_name = $1", table)
		require.NoError(t, err)
		columns, err := pgx.CollectRows(rows, pgx.RowTo[string])
		require.NoError(t, err)
		values := make([]string, len(columns))
		for i, name := range columns {
			if values[i] = own[name]; values[i] == "" {
				values[i] = "x." + name
			}
		}
		_, err = c.Exec(t.Context(), fmt.Sprintf("INSERT INTO tasq.%s (%s) SELECT %s FROM generate_series(1, %d) n, tasq.%s x WHERE x.root = '%s'",
			table, strings.Join(columns, ", "), strings.Join(values, ", "), n, table, root))
		require.NoError(t, err, table)
	}
	_, err = c.Exec(t.Context(), analyze)
	require.NoError(t, err)
}

// rowsRead is how many rows of tables, by an index or not, the session has read and not yet reported to the server's statistics.
func rowsRead(ctx context.Context, t *testing.T, r store.Reader) (n int) {
	t.Helper()
	require.NoError(t, r.DB().QueryRowContext(ctx, "SELECT (SELECT sum(seq_tup_read + idx_tup_fetch) FROM pg_stat_xact_user_tables "+
		"WHERE schemaname = 'tasq')").Scan(&n))
	return n
}

// A page of a listing costs what it shows, however many cases there are: the planner finds the index in whose order the rows are. What an
// engine asks as it opens the database is among it.
func TestAPageReadsNoWholeTable(t *testing.T) {
	t.Parallel()
	dsn := prepared.Database(t)
	w := storetest.NewWorld(t, postgres.Open(dsn+"&max_parallel_workers_per_gather=0"), 1) // what they read is counted elsewhere
	var root workitem.CaseID
	w.Update(func(b *storetest.Batch) { root = b.Start(`1`) })
	grow(t, dsn, root, 4*manyCases, "VACUUM ANALYZE")
	newest, page, queue, empty, unnamed := store.Page{Desc: true, Limit: 1}, store.Page{Limit: 50}, "editors", "without-work", ""
	live, failed := []workitem.State{workitem.Initialized, workitem.Started}, []workitem.State{workitem.Failed}
	var copied workitem.CaseID
	require.NoError(t, copied.UnmarshalText([]byte("01900000-0007-7000-8000-000000000001")))
	for name, filters := range map[string][]any{
		"cases": {
			store.CaseFilter{Page: newest}, store.CaseFilter{Page: page}, store.CaseFilter{Page: page, Workflow: "article"},
			store.CaseFilter{Page: page, States: []state.CaseState{state.CaseStarted}}, store.CaseFilter{Root: copied}, store.CaseFilter{ID: copied}, store.CaseFilter{IDs: []workitem.CaseID{copied}, Page: page},
			store.CaseFilter{Page: page, States: []state.CaseState{state.CaseFailed}}, store.CaseFilter{Page: page, RootOnly: true},
			store.CaseFilter{Page: page, Code: new("none")}, store.CaseFilter{Page: page, Key: "none"}, store.CaseFilter{Page: page, Predecessors: []workitem.CaseID{copied, {1}}}, store.CaseFilter{Page: page, Suspended: true},
			store.CaseFilter{Page: page, States: []state.CaseState{state.CaseCanceled}},
			store.CaseFilter{Page: page, Labels: map[string]string{"customer": "none"}},
			store.CaseFilter{Page: page, Labels: map[string]string{"region": "eu"}}, store.CaseFilter{Page: page, Labels: map[string]string{"region": "eu", "size": "none"}},
			store.CaseFilter{Page: page, Labels: map[string]string{"region": "eu", "customer": "c-7"}},
			store.CaseFilter{Page: page, Labels: map[string]string{"a": "none", "region": "eu"}},
			store.CaseFilter{Page: page, Removable: time.Unix(1, 0)},
		},
		"items": {
			store.ItemFilter{Page: newest}, store.ItemFilter{Page: page}, store.ItemFilter{Page: page, Workflow: "article"},
			store.ItemFilter{Page: page, States: live}, store.ItemFilter{Page: page, States: failed}, store.ItemFilter{Case: copied},
			store.ItemFilter{Page: page, States: live, Queue: &queue}, store.ItemFilter{Root: copied}, store.ItemFilter{Roots: []workitem.CaseID{copied}},
			store.ItemFilter{Page: page, Workflow: "another"}, store.ItemFilter{Page: page, Queue: &empty},
			store.ItemFilter{Page: page, Queue: &unnamed}, store.ItemFilter{Page: page, Code: new("none")}, store.ItemFilter{Page: page, Code: new("")}, store.ItemFilter{Page: page, Attempt: 2}, store.ItemFilter{Page: page, Holder: "ann"},
			store.ItemFilter{Page: page, States: []workitem.State{workitem.Canceled}},
			store.ItemFilter{Page: page, Task: "none", States: live}, store.ItemFilter{Page: page, Task: "none", States: failed},
			store.ItemFilter{Page: page, States: live, Queue: &empty},
		},
		"jobs": {
			store.JobFilter{Page: newest}, store.JobFilter{Page: page}, store.JobFilter{Page: page, Workflow: "article"},
			store.JobFilter{Page: page, Workflow: "another"}, store.JobFilter{Case: copied}, store.JobFilter{Root: copied},
			store.JobFilter{Page: page, Queue: &empty, States: []state.JobState{state.JobPending}},
			store.JobFilter{Page: page, States: []state.JobState{state.JobFailed}}, store.JobFilter{Due: time.Unix(1, 0), States: []state.JobState{state.JobPending}},
			store.JobFilter{Kind: state.JobIncident, States: []state.JobState{state.JobWaiting}},
		},
		"steps": {store.StepFilter{Page: newest}, store.StepFilter{Case: copied}, store.StepFilter{Root: copied},
			store.StepFilter{Item: workitem.ID{1}}, store.StepFilter{Job: workitem.JobID{1}}, store.StepFilter{Page: page}},
		"messages": {store.MessageFilter{Page: newest}, store.MessageFilter{Case: copied}, store.MessageFilter{Root: copied}},
		"journal": {store.JournalFilter{Limit: 50}, store.JournalFilter{Limit: 50, Desc: true}, store.JournalFilter{Root: copied},
			store.JournalFilter{Limit: 50, Named: true}, store.JournalFilter{Limit: 50, Named: true, Desc: true}, store.JournalFilter{Limit: 50, By: "ann", Desc: true}},
	} {
		for i, filter := range filters {
			t.Run(fmt.Sprintf("%s %d", name, i), func(t *testing.T) {
				for range 7 { // the server makes a plan for any arguments after the fifth time, if that costs no more
					w.View(func(ctx context.Context, r store.Reader) {
						before := rowsRead(ctx, t, r)
						list(ctx, t, r, filter)
						require.Less(t, rowsRead(ctx, t, r)-before, manyCases, "%+v", filter) // a thousand say that a workflow has many cases
					})
				}
			})
		}
	}
	w.View(func(ctx context.Context, r store.Reader) {
		before := rowsRead(ctx, t, r)
		_, _, err := r.Queues(ctx, 20)
		require.NoError(t, err)
		require.Less(t, rowsRead(ctx, t, r)-before, manyCases)
	})
	w.View(func(ctx context.Context, r store.Reader) {
		jobs, err := r.Jobs(ctx, store.JobFilter{Page: page})
		require.NoError(t, err)
		before := rowsRead(ctx, t, r)
		heads, err := r.IncidentHeads(ctx, []workitem.JobID{jobs[0].ID, jobs[1].ID})
		require.NoError(t, err)
		require.Len(t, heads, 2)
		_, _, err = r.OpenIncidents(ctx, 20)
		require.NoError(t, err)
		require.Less(t, rowsRead(ctx, t, r)-before, manyCases)
	})
	w.View(func(ctx context.Context, r store.Reader) {
		before := rowsRead(ctx, t, r)
		_, err := r.Tree(ctx, copied)
		require.NoError(t, err)
		require.Less(t, rowsRead(ctx, t, r)-before, 100)
	})
}

func list(ctx context.Context, t *testing.T, r store.Reader, filter any) {
	t.Helper()
	var err error
	switch f := filter.(type) {
	case store.CaseFilter:
		_, err = r.Cases(ctx, f)
	case store.ItemFilter:
		_, err = r.Items(ctx, f)
	case store.JobFilter:
		_, err = r.Jobs(ctx, f)
	case store.StepFilter:
		_, err = r.Steps(ctx, f)
	case store.MessageFilter:
		_, err = r.Messages(ctx, f)
	case store.JournalFilter:
		_, err = r.Journal(ctx, f)
	default:
		t.Fatalf("no list of a %T", f)
	}
	require.NoError(t, err)
}

// readByAll is how many rows all sessions that have ended have read of tables, by an index or not: it opens the store again.
func readByAll(t *testing.T, w *storetest.World, c *pgx.Conn) (n int) {
	t.Helper()
	require.NoError(t, w.Store.Close())
	require.Eventually(t, func() bool {
		var there bool
		require.NoError(t, c.QueryRow(t.Context(), "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND "+
			"pid <> pg_backend_pid() AND application_name = 'tasq') OR pg_stat_force_next_flush() IS NULL").Scan(&there))
		return !there
	}, time.Minute, time.Millisecond)
	require.NoError(t, c.QueryRow(t.Context(), "SELECT sum(seq_tup_read + idx_tup_fetch) FROM pg_stat_user_tables").Scan(&n))
	w.Open()
	return n
}

// What a commit reads does not depend on how many cases there are, also if the server has planned its statements while there was none.
func TestACommitReadsNoWholeTable(t *testing.T) {
	t.Parallel()
	dsn := prepared.Database(t)
	w := storetest.NewWorld(t, sharedOpener{postgres.Open(dsn)}, 1)
	c, err := pgx.Connect(t.Context(), dsn)
	require.NoError(t, err)
	defer c.Close(context.Background())
	before := readByAll(t, w, c) // with what other tests have read that had the database
	var roots []workitem.CaseID
	plans := func(b *storetest.Batch) (seqscan string) { // of the user's SQL
		require.NoError(t, b.Tx.DB().QueryRowContext(t.Context(), "SHOW enable_seqscan").Scan(&seqscan))
		return seqscan
	}
	w.Update(func(b *storetest.Batch) {
		require.Equal(t, "on", plans(b))
		roots = append(roots, b.Start(`1`))
	})
	w.Update(func(b *storetest.Batch) { b.Claim(roots[0], roots[0]) })
	_, err = c.Exec(t.Context(), "ANALYZE") // the tables have one row
	require.NoError(t, err)
	w.Update(func(b *storetest.Batch) {
		require.Equal(t, "on", plans(b))
		roots = append(roots, b.Start(`1`))
	})
	w.Update(func(b *storetest.Batch) {
		b.Claim(roots[1], roots[1])
		require.Equal(t, "on", plans(b))
	})
	const cases, commits = 2000, 50
	w.Update(func(b *storetest.Batch) {
		for range cases {
			roots = append(roots, b.Start(`1`))
		}
	})
	for _, root := range roots[2 : commits+2] {
		w.Update(func(b *storetest.Batch) { b.Claim(root, root) })
	}
	require.Less(t, readByAll(t, w, c)-before, 20*cases, "one that reads the tables whole reads %d", 3*cases*commits)
}

// Taking some jobs of a long queue costs what is taken, and not what is left.
func TestTakingJobsReadsNoneOfTheOthers(t *testing.T) {
	t.Parallel()
	dsn := prepared.Database(t)
	w := storetest.NewWorld(t, sharedOpener{postgres.Open(dsn)}, 1)
	var root workitem.CaseID
	w.Update(func(b *storetest.Batch) { root = b.Start(`1`) })
	grow(t, dsn, root, manyCases, "VACUUM ANALYZE")
	c, err := pgx.Connect(t.Context(), dsn)
	require.NoError(t, err)
	defer c.Close(context.Background())
	_, err = c.Exec(t.Context(), "UPDATE tasq.jobs SET state = 'pending', holder = 0")
	require.NoError(t, err)
	_, err = c.Exec(t.Context(), "VACUUM ANALYZE")
	require.NoError(t, err)
	before := readByAll(t, w, c)
	fleet, ok := w.Store.(store.Fleet)
	require.True(t, ok)
	require.NoError(t, fleet.Announce(t.Context(), []string{"fp-article"}))
	for range 7 {
		jobs, err := fleet.Take(t.Context(), store.TakeFilter{Max: 100})
		require.NoError(t, err)
		require.Len(t, jobs, 100)
	}
	require.Less(t, readByAll(t, w, c)-before, 7*1000)
}

// Whether a queue is full costs what is counted: no job that has ended, and none of another queue if it has a name.
func TestCountingWaitingJobsReadsNoneOfTheOthers(t *testing.T) {
	t.Parallel()
	dsn := prepared.Database(t)
	w := storetest.NewWorld(t, sharedOpener{postgres.Open(dsn)}, 1)
	var root workitem.CaseID
	w.Update(func(b *storetest.Batch) { root = b.Start(`1`) })
	grow(t, dsn, root, manyCases, "VACUUM ANALYZE")
	c, err := pgx.Connect(t.Context(), dsn)
	require.NoError(t, err)
	defer c.Close(context.Background())
	_, err = c.Exec(t.Context(), "UPDATE tasq.jobs SET holder = 0, kind = 'run', due = n, state = CASE WHEN n <= 2000 THEN 'done' ELSE 'pending' END, "+
		"queue = CASE WHEN n <= 4000 THEN 'others' ELSE 'mail' END FROM (SELECT root AS r, row_number() OVER () AS n FROM tasq.jobs) rows WHERE root = r")
	require.NoError(t, err)
	_, err = c.Exec(t.Context(), "VACUUM ANALYZE")
	require.NoError(t, err)
	before := readByAll(t, w, c)
	fleet, ok := w.Store.(store.Fleet)
	require.True(t, ok)
	for range 7 {
		found, err := fleet.Waiting(t.Context(), map[string]int{"mail": 100})
		require.NoError(t, err)
		require.Equal(t, map[string]int{"mail": 100}, found)
	}
	require.Less(t, readByAll(t, w, c)-before, 7*300)
}

// Freeing the jobs of an engine that has died costs what they are, also if it takes many portions.
func TestFreeingTheJobsOfADeadEngineReadsEachOnce(t *testing.T) {
	t.Parallel()
	dsn := prepared.Database(t)
	w := storetest.NewWorld(t, sharedOpener{postgres.Open(dsn)}, 1)
	var root workitem.CaseID
	w.Update(func(b *storetest.Batch) { root = b.Start(`1`) })
	n := testsize.Pick(manyCases, 4*manyCases, 4*manyCases) // five portions, and twenty
	grow(t, dsn, root, n, "VACUUM ANALYZE")
	c, err := pgx.Connect(t.Context(), dsn)
	require.NoError(t, err)
	defer c.Close(context.Background())
	before := readByAll(t, w, c) // which frees the jobs of engines that are gone, too
	_, err = c.Exec(t.Context(), "UPDATE tasq.jobs SET state = 'pending', holder = 1000; "+
		"INSERT INTO tasq.processes (id, name, state, reads, token, joined) OVERRIDING SYSTEM VALUE VALUES (1000, 'gone', 'dead', 1, 1, now()); "+
		"INSERT INTO tasq.pulses (process, beat, pace, busy) VALUES (1000, now(), '1s', false)")
	require.NoError(t, err)
	_, err = c.Exec(t.Context(), "VACUUM ANALYZE")
	require.NoError(t, err)
	fleet, ok := w.Store.(store.Fleet)
	require.True(t, ok)
	news, err := fleet.Tick(t.Context(), store.EngineState{})
	require.NoError(t, err)
	require.Equal(t, 1, news.Died)
	require.True(t, news.Free)
	var left int
	require.NoError(t, c.QueryRow(t.Context(), "SELECT count(*) FROM tasq.jobs WHERE holder > 0").Scan(&left))
	require.Zero(t, left)
	require.Less(t, readByAll(t, w, c)-before, 8*n) // the statement of this test among it
}

// What belongs to some root cases is found by their keys, also if the server has no statistics of the tables yet.
func TestTheRowsOfRootCasesAreFoundWithoutStatistics(t *testing.T) {
	t.Parallel()
	const some = 100
	dsn := prepared.Database(t)
	w := storetest.NewWorld(t, postgres.Open(dsn+"&max_parallel_workers_per_gather=0"), 1)
	var root workitem.CaseID
	w.Update(func(b *storetest.Batch) { root = b.Start(`1`) })
	c, err := pgx.Connect(t.Context(), dsn)
	require.NoError(t, err)
	defer c.Close(context.Background())
	for _, table := range []string{"journal", "cases", "work_items", "jobs", "steps", "messages"} {
		_, err := c.Exec(t.Context(), "ALTER TABLE tasq."+table+" SET (autovacuum_enabled = false)")
		require.NoError(t, err)
	}
	grow(t, dsn, root, manyCases, "SELECT")
	var roots []workitem.CaseID
	w.View(func(ctx context.Context, r store.Reader) {
		page, err := r.Cases(ctx, store.CaseFilter{RootOnly: true, Page: store.Page{Limit: some}})
		require.NoError(t, err)
		for _, k := range page {
			roots = append(roots, k.ID)
		}
	})
	page := store.Page{Limit: 10_000}
	for _, filter := range []any{
		store.CaseFilter{Roots: roots, Page: page}, store.ItemFilter{Roots: roots, Page: page}, store.JobFilter{Roots: roots, Page: page},
		store.StepFilter{Roots: roots, Page: page}, store.MessageFilter{Roots: roots, Page: page},
		store.JournalFilter{Roots: roots, Limit: page.Limit},
	} {
		for range 7 {
			w.View(func(ctx context.Context, r store.Reader) {
				before := rowsRead(ctx, t, r)
				list(ctx, t, r, filter)
				require.Less(t, rowsRead(ctx, t, r)-before, 12*some, "%T", filter)
			})
		}
	}
}

// The queries of a reader have a LIMIT: the planner neither compiles one nor starts workers for it, though it may expect many rows. The
// user's SQL in a view is planned with the settings of the role.
func TestAReaderPlansItsQueriesForFewRows(t *testing.T) {
	t.Parallel()
	dsn := prepared.Database(t)
	w := storetest.NewWorld(t, postgres.Open(dsn), 1)
	w.Update(func(b *storetest.Batch) { b.Start(`1`) })
	name, as := role(t, dsn)
	execOn(t, dsn, "GRANT USAGE ON SCHEMA tasq TO "+name, "GRANT SELECT ON ALL TABLES IN SCHEMA tasq TO "+name,
		"CREATE FUNCTION public.planned() RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN "+
			"IF current_setting('jit') = 'on' OR current_setting('max_parallel_workers_per_gather') <> '0' THEN RAISE 'planned for many rows'; END IF; "+
			"RETURN true; END $$",
		"ALTER TABLE tasq.cases ENABLE ROW LEVEL SECURITY", "CREATE POLICY planned ON tasq.cases USING (public.planned())")
	r, err := postgres.Open(as).Open(t.Context(), store.Options{ReadOnly: true})
	require.NoError(t, err)
	defer r.Close()
	require.NoError(t, r.View(t.Context(), func(v store.Reader) error {
		list(t.Context(), t, v, store.CaseFilter{})
		var jit, workers string
		for range 2 {
			require.NoError(t, v.DB().QueryRowContext(t.Context(), "SELECT current_setting('jit'), current_setting('max_parallel_workers_per_gather')").Scan(&jit, &workers))
			require.Equal(t, []string{"on", "2"}, []string{jit, workers})
			_, err := v.DB().QueryContext(t.Context(), "SELECT 1 / 0") // nor does an error change that
			require.Error(t, err)
		}
		return nil
	}))
	require.NoError(t, r.View(t.Context(), func(v store.Reader) error { // in the same session
		list(t.Context(), t, v, store.CaseFilter{})
		return nil
	}))
}
