package main

import (
	"context"
	"database/sql"
	"errors"
	"net/url"
	"path/filepath"
	"time"

	"github.com/mikestefanello/backlite"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riversqlite"
	"github.com/riverqueue/river/rivermigrate"
)

// openPeer opens a file for a peer: the driver and the pragmas that Tasq uses, synchronous=FULL among them.
func openPeer(dir string, connections int) (*sql.DB, error) {
	q := url.Values{"_txlock": {"immediate"}, "_pragma": {"busy_timeout(10000)", "journal_mode(WAL)", "synchronous(FULL)",
		"cache_size(-65536)", "temp_store(MEMORY)", "wal_autocheckpoint(10000)"}}
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "peer.db")+"?"+q.Encode())
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(connections)
	return db, db.Ping()
}

// errand is the job of either peer: an order, and who waits for it.
type errand struct {
	order
	Caller int `json:"caller"`
}

// Kind implements river.JobArgs.
func (errand) Kind() string { return "errand" }

// Config implements backlite.Task.
func (errand) Config() backlite.QueueConfig {
	return backlite.QueueConfig{Name: "errand", MaxAttempts: 1, Timeout: time.Minute, Backoff: time.Second}
}

// peer is a job queue.
type peer struct {
	put   func(errand) error
	many  func([]errand) error
	start func() error
	stop  func() error
	ended func(n int) (wait func()) // called before start; waits until n jobs have ended and their ends are committed
}

type riverWorker struct {
	river.WorkerDefaults[errand]
	db   *sql.DB
	work func(context.Context, *sql.DB, *river.Job[errand]) error
}

func (w *riverWorker) Work(ctx context.Context, j *river.Job[errand]) error {
	return w.work(ctx, w.db, j)
}

func newRiver(dir string, work func(errand)) (*peer, error) {
	return newRiverOf(dir, func(_ context.Context, _ *sql.DB, j *river.Job[errand]) error {
		work(j.Args)
		return nil
	})
}

// newRiverOf has the settings of River's own benchmark, which polls a hundred times as often as its defaults do, and
// the one connection that its SQLite driver asks for.
func newRiverOf(dir string, work func(context.Context, *sql.DB, *river.Job[errand]) error) (*peer, error) {
	db, err := openPeer(dir, 1)
	if err != nil {
		return nil, err
	}
	driver := riversqlite.New(db)
	migrator, err := rivermigrate.New(driver, &rivermigrate.Config{Logger: quiet})
	if err != nil {
		return nil, err
	}
	if _, err := migrator.Migrate(noTimeout, rivermigrate.DirectionUp, nil); err != nil {
		return nil, err
	}
	workers := river.NewWorkers()
	river.AddWorker(workers, &riverWorker{db: db, work: work})
	client, err := river.NewClient(driver, &river.Config{
		Logger: quiet, Workers: workers, FetchCooldown: 2 * time.Millisecond, FetchPollInterval: 20 * time.Millisecond,
		Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 2000}},
	})
	if err != nil {
		return nil, err
	}
	return riverPeer(client, db.Close), nil
}

// riverPeer is a client of River as a peer; shut closes its database.
func riverPeer[Tx any](client *river.Client[Tx], shut func() error) *peer {
	return &peer{
		put: func(e errand) error {
			_, err := client.Insert(noTimeout, e, nil)
			return err
		},
		many: func(all []errand) error {
			params := make([]river.InsertManyParams, len(all))
			for i, e := range all {
				params[i].Args = e
			}
			_, err := client.InsertMany(noTimeout, params)
			return err
		},
		start: func() error { return client.Start(noTimeout) },
		ended: func(n int) func() {
			events, cancel := client.SubscribeConfig(&river.SubscribeConfig{
				ChanSize: n, Kinds: []river.EventKind{river.EventKindJobCompleted},
			})
			return func() {
				defer cancel()
				for range n {
					<-events
				}
			}
		},
		stop: func() error { return errors.Join(client.Stop(noTimeout), shut()) },
	}
}

// newBacklite uses one connection, with which it is three times as fast on SQLite as with several, and 64 workers.
func newBacklite(dir string, work func(errand)) (*peer, error) {
	db, err := openPeer(dir, 1)
	if err != nil {
		return nil, err
	}
	client, err := backlite.NewClient(backlite.ClientConfig{DB: db, NumWorkers: 64, ReleaseAfter: time.Hour})
	if err != nil {
		return nil, err
	}
	if err := client.Install(); err != nil {
		return nil, err
	}
	client.Register(backlite.NewQueue(func(_ context.Context, e errand) error {
		work(e)
		return nil
	}))
	ctx, cancel := context.WithCancel(noTimeout)
	return &peer{
		put: func(e errand) error {
			_, err := client.Add(e).Save()
			return err
		},
		start: func() error {
			client.Start(ctx)
			return nil
		},
		stop: func() error {
			client.Stop(noTimeout)
			cancel()
			return db.Close()
		},
	}, nil
}

type newPeer func(dir string, work func(errand)) (*peer, error)

// jobsOf is the closed loop on a peer: each caller inserts a job and waits until its function has run. The peers
// commit that it has run later, and no one waits for it here, which is in their favour.
func jobsOf(r job, callers int, open newPeer) (metrics, error) {
	ran := make([]chan time.Time, callers)
	for i := range ran {
		ran[i] = make(chan time.Time, 1)
	}
	p, err := open(r.dir, func(e errand) { ran[e.Caller] <- time.Now() })
	if err != nil {
		return nil, err
	}
	if err := p.start(); err != nil {
		return nil, err
	}
	before := used()
	m, err := load(callers, r.span, func(caller int) error {
		if err := p.put(errand{order: anOrder, Caller: caller}); err != nil {
			return err
		}
		<-ran[caller]
		return nil
	})
	if err = errors.Join(err, p.stop()); err != nil {
		return nil, err
	}
	return m.since(before, m["n"]), nil
}

// drain inserts n jobs in batches of 500 before River's workers start, and measures the whole cycle, up to the commit
// of the last job's end. It is what a queue is best at, since no one waits for a single job.
func drain(r job, n int, open newPeer) (metrics, error) {
	p, err := open(r.dir, func(errand) {})
	if err != nil {
		return nil, err
	}
	wait := p.ended(n)
	before, at := used(), time.Now()
	for left := n; left > 0; left -= 500 {
		batch := make([]errand, min(left, 500))
		for i := range batch {
			batch[i].order = anOrder
		}
		if err := p.many(batch); err != nil {
			return nil, err
		}
	}
	if err := p.start(); err != nil {
		return nil, err
	}
	wait()
	took := time.Since(at)
	if err := p.stop(); err != nil {
		return nil, err
	}
	return metrics{"rate": float64(n) / took.Seconds()}.since(before, float64(n)), nil
}
