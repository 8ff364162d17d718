package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/dbos-inc/dbos-transact-golang/dbos"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"github.com/tasq-dev/tasq/internal/pgtest"
)

// window is that of the engines whose rows are written after their commits.
const window = 20 * time.Millisecond

// postgresSteps are closed loops on a PostgreSQL server, with synchronous_commit on. Tasq is one engine, as its peers are one client.
func postgresSteps() []step {
	all := []step{
		{name: "pg-tasq-1", run: func(r job) (metrics, error) { return cases(r, 1, oneTask) }},
		{name: "pg-raw-1", run: func(r job) (metrics, error) { return rawPostgres(r, 1) }},
		{name: "pg-tasq-64", run: func(r job) (metrics, error) { return cases(r, 64, oneTask) }},
		{name: "pg-raw-64", run: func(r job) (metrics, error) { return rawPostgres(r, 64) }},
		{name: "pg-river-64", run: func(r job) (metrics, error) { return jobsOf(r, 64, riverOn(r.dsn)) }},
		{name: "pg-tasq-drain", run: func(r job) (metrics, error) { return drainTasq(r, r.pick(2_000, 10_000)) }},
		{name: "pg-river-drain", run: func(r job) (metrics, error) { return drain(r, r.pick(2_000, 10_000), riverOn(r.dsn)) }},
	}
	for _, callers := range []int{1, 64} {
		all = append(all, step{name: fmt.Sprintf("pg-fn3-%d-tasq", callers), run: func(r job) (metrics, error) {
			return functionsOf(r, callers, 3, func(_ string, s script) (durable, error) { return tasqIn(r.store(), s) })
		}}, step{name: fmt.Sprintf("pg-fn3-%d-dbos", callers), run: func(r job) (metrics, error) {
			return functionsOf(r, callers, 3, func(_ string, s script) (durable, error) {
				return dbosIn(dbos.Config{AppName: "bench", DatabaseURL: r.dsn, Logger: quiet}, s)
			})
		}})
	}
	for _, s := range all {
		if strings.HasPrefix(s.name, "pg-tasq-") || strings.HasSuffix(s.name, "-tasq") {
			all = append(all, step{name: s.name + "-window", run: func(r job) (metrics, error) {
				r.window = window
				return s.run(r)
			}})
		}
	}
	for _, size := range []struct {
		name string
		n    int
	}{{"bulk", bulk}, {"most", most}} {
		all = append(all, step{name: "pg-" + size.name + "-tasq", rare: true, run: func(r job) (metrics, error) {
			return puts(r, 1, size.n, func(string) (*queue, error) { return tasqQueueIn(r.store()) })
		}}, step{name: "pg-" + size.name + "-river", rare: true, run: func(r job) (metrics, error) {
			return puts(r, 1, size.n, func(dir string) (*queue, error) { return peerQueue(dir, riverOn(r.dsn)) })
		}})
	}
	all = append(all, limitSteps()...)
	for _, n := range []int{1, 4} {
		all = append(all, step{name: fmt.Sprintf("pg-processes-%d", n), run: func(r job) (metrics, error) { return processes(r, n) }})
	}
	all = append(all, step{name: "pg-failover", rare: true, run: failover}, step{name: "pg-growth", once: true, run: growth})
	for i, s := range all {
		all[i].server = true
		all[i].run = func(r job) (metrics, error) { return inDatabase(r, s.run) }
	}
	return all
}

// hasServer reports whether there is a PostgreSQL server, which is started if need be. The children get it by the environment.
func (b *bench) hasServer() bool {
	if b.noServer != nil {
		return false
	}
	dsn, err := pgtest.Durable()
	if err == nil {
		err = os.Setenv(pgtest.EnvServer, dsn)
	}
	b.noServer = err
	return err == nil
}

// inDatabase measures in an empty database of the server.
func inDatabase(r job, run func(job) (metrics, error)) (m metrics, err error) {
	admin, err := pgx.Connect(noTimeout, os.Getenv(pgtest.EnvServer))
	if err != nil {
		return nil, err
	}
	defer admin.Close(noTimeout)
	findServer(admin)
	name := "bench_" + strings.ReplaceAll(uuid.NewString(), "-", "")
	if _, err := admin.Exec(noTimeout, "CREATE DATABASE "+name); err != nil {
		return nil, err
	}
	defer func() {
		if _, dropped := admin.Exec(noTimeout, "DROP DATABASE "+name+" WITH (FORCE)"); err == nil {
			err = dropped
		}
	}()
	c := admin.Config()
	r.dsn = fmt.Sprintf("postgres://%s:%s@%s:%d/%s?sslmode=disable", c.User, c.Password, c.Host, c.Port, name)
	return run(r)
}

// riverOn is newRiver on a server: with the driver that River recommends there, and the same settings.
func riverOn(dsn string) newPeer {
	return func(_ string, work func(errand)) (*peer, error) {
		pool, err := pgxpool.New(noTimeout, dsn)
		if err != nil {
			return nil, err
		}
		driver := riverpgxv5.New(pool)
		migrator, err := rivermigrate.New(driver, &rivermigrate.Config{Logger: quiet})
		if err != nil {
			return nil, err
		}
		if _, err := migrator.Migrate(noTimeout, rivermigrate.DirectionUp, nil); err != nil {
			return nil, err
		}
		workers := river.NewWorkers()
		river.AddWorker(workers, river.WorkFunc(func(_ context.Context, j *river.Job[errand]) error {
			work(j.Args)
			return nil
		}))
		client, err := river.NewClient(driver, &river.Config{
			Logger: quiet, Workers: workers, FetchCooldown: 2 * time.Millisecond, FetchPollInterval: 20 * time.Millisecond,
			Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 2000}},
		})
		if err != nil {
			return nil, err
		}
		return riverPeer(client, func() error {
			pool.Close()
			return nil
		}), nil
	}
}

// rawPostgres is a plain program on pgx that keeps what a one-task case needs and nothing else: a row for the case and one for its job,
// and an entry of a journal for its start, its claim and its end. As with Tasq, the start is one commit, and the claim and the end of a
// short job are another one. Each caller has a connection; nothing is folded.
func rawPostgres(r job, callers int) (metrics, error) {
	cfg, err := pgxpool.ParseConfig(r.dsn)
	if err != nil {
		return nil, err
	}
	cfg.MaxConns = int32(callers)
	pool, err := pgxpool.NewWithConfig(noTimeout, cfg)
	if err != nil {
		return nil, err
	}
	defer pool.Close()
	_, err = pool.Exec(noTimeout, `CREATE TABLE cases (id uuid PRIMARY KEY, state text NOT NULL, input text NOT NULL, output text);
		CREATE TABLE jobs (id uuid PRIMARY KEY, case_id uuid NOT NULL, state text NOT NULL);
		CREATE TABLE journal (root uuid, rev int, at timestamptz NOT NULL, command text NOT NULL, changes text NOT NULL, PRIMARY KEY (root, rev))`)
	if err != nil {
		return nil, err
	}
	const input, output = `{"customer":"0197a3c4-0000-7000-8000-000000000000","amount":12.5,"note":"two boxes, by the back door"}`,
		`{"ok":true,"text":"forty bytes of a result"}`
	before := used()
	m, err := load(callers, r.span, func(int) error {
		id, job := uuid.Must(uuid.NewV7()), uuid.Must(uuid.NewV7())
		var start, end pgx.Batch
		start.Queue("INSERT INTO cases VALUES ($1, 'started', $2)", id, input)
		start.Queue("INSERT INTO jobs VALUES ($1, $2, 'pending')", job, id)
		start.Queue("INSERT INTO journal VALUES ($1, 1, now(), 'start', $2)", id, input)
		end.Queue("UPDATE cases SET state = 'completed', output = $2 WHERE id = $1", id, output)
		end.Queue("UPDATE jobs SET state = 'done' WHERE id = $1", job)
		end.Queue("INSERT INTO journal VALUES ($1, 2, now(), 'claim', ''), ($1, 3, now(), 'complete', $2)", id, output)
		if err := pool.SendBatch(noTimeout, &start).Close(); err != nil {
			return err
		}
		return pool.SendBatch(noTimeout, &end).Close()
	})
	if err != nil {
		return nil, err
	}
	return m.since(before, m["n"]), nil
}

func (b *bench) postgresTables(w io.Writer) {
	river, db := version("github.com/riverqueue/river"), version("github.com/dbos-inc/dbos-transact-golang")
	raw := "pgx " + version("github.com/jackc/pgx/v5")
	columns := []column{{"rate", "/s"}, {"p50", "p50 ms"}, {"p99", "p99 ms"}, {"cpu", "CPU us"}, {"server", "server's CPU us"}}
	b.table(w, "On PostgreSQL, one-task cases", []line{
		{"pg-tasq-1", "Tasq, one caller", tree, full}, {"pg-tasq-1-window", "Tasq with a window, one caller", tree, full}, {"pg-raw-1", "raw program, one caller", raw, full},
		{"pg-tasq-64", "Tasq, 64 in flight", tree, full}, {"pg-tasq-64-window", "Tasq with a window, 64 in flight", tree, full}, {"pg-raw-64", "raw program, 64 in flight", raw, full},
		{"pg-river-64", "River, 64 in flight, inserted to run", river, full},
	}, columns)
	b.table(w, "On PostgreSQL, jobs enqueued 500 in a call, and done", []line{
		{"pg-tasq-drain", "Tasq", tree, full}, {"pg-tasq-drain-window", "Tasq with a window", tree, full}, {"pg-river-drain", "River, drained afterwards", river, full},
	}, []column{{"rate", "jobs/s"}, {"cpu", "CPU us"}, {"server", "server's CPU us"}})
	b.table(w, "On PostgreSQL, jobs enqueued, while no one does them", []line{
		{"pg-bulk-tasq", "Tasq, 500 in a call", tree, full}, {"pg-bulk-river", "River, 500 in a call", river, full},
		{"pg-most-tasq", "Tasq, 10,000 in a call", tree, full}, {"pg-most-river", "River, 10,000 in a call", river, full},
	}, []column{{"rate", "jobs/s"}, {"p50", "p50 ms a call"}, {"cpu", "CPU us"}, {"server", "server's CPU us"}})
	b.table(w, "On PostgreSQL, functions of 3 steps", []line{
		{"pg-fn3-1-tasq", "Tasq, one caller", tree, full}, {"pg-fn3-1-tasq-window", "Tasq with a window, one caller", tree, full}, {"pg-fn3-1-dbos", "DBOS, one caller", db, full},
		{"pg-fn3-64-tasq", "Tasq, 64 in flight", tree, full}, {"pg-fn3-64-tasq-window", "Tasq with a window, 64 in flight", tree, full}, {"pg-fn3-64-dbos", "DBOS, 64 in flight", db, full},
	}, columns)
	b.limitTable(w, db)
	b.table(w, "On PostgreSQL, one-task cases of 64 callers in several processes", []line{
		{"pg-processes-1", "Tasq, one process", tree, full}, {"pg-processes-4", "Tasq, four processes of 16 callers", tree, full},
	}, []column{{"rate", "/s"}, {"cpu", "CPU us"}, {"server", "server's CPU us"}})
	b.table(w, "On PostgreSQL, kill -9 of one of three processes to the result of its job from another one", []line{
		{"pg-failover", "Tasq", tree, full},
	}, []column{{"p50", "median ms"}, {"max", "max ms"}, {"n", "kills"}})
	b.table(w, "On PostgreSQL, CPU a case with many finished cases over that with "+count(smallFile), []line{
		{"pg-growth", "Tasq, 64 in flight", tree, full},
	}, []column{{"n", "finished cases"}, {"cpu", "engine"}, {"server", "server"}, {"both", "both"}})
}
