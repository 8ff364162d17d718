package main

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/cschleiden/go-workflows/client"
	"github.com/cschleiden/go-workflows/workflow"
	"github.com/dbos-inc/dbos-transact-golang/dbos"
	"github.com/google/uuid"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/runs"
	tasqstep "github.com/tasq-dev/tasq/step"
	"github.com/tasq-dev/tasq/store"
)

// bulk and most are how many jobs are enqueued in one call, where there is such a call.
const (
	bulk = 500
	most = 10_000
)

// queue takes jobs that no one does meanwhile.
type queue struct {
	put   func() error
	many  func(n int) error // nil if there is no such call
	close func() error
}

// puts is the closed loop: each caller enqueues one job after the other, one by one or so many in a call. It counts
// jobs.
func puts(r job, callers, batch int, open func(dir string) (*queue, error)) (metrics, error) {
	q, err := open(r.dir)
	if err != nil {
		return nil, err
	}
	before := used()
	m, err := load(callers, r.span, func(int) error {
		if batch > 1 {
			return q.many(batch)
		}
		return q.put()
	})
	if err != nil {
		return nil, err
	}
	m["rate"] *= float64(batch)
	return m.since(before, m["n"]*float64(batch)), q.close()
}

// errandAction is the job of Tasq: a single action.
var errandAction = builder.MustFunc("errand", func(context.Context, order) (receipt, error) { return aReceipt, nil })

func tasqQueue(dir string) (*queue, error) { return tasqQueueIn(file(dir)) }

func tasqQueueIn(in store.Opener) (*queue, error) {
	e, err := open(in, -1, errandAction)
	return &queue{
		put: func() error {
			_, err := errandAction.Run(noTimeout, e, anOrder)
			return err
		},
		many: func(n int) error {
			_, err := runs.Start(noTimeout, e, errandAction, slices.Repeat([]order{anOrder}, n), nil)
			return err
		},
		close: e.Close,
	}, err
}

func riverQueue(dir string) (*queue, error) { return peerQueue(dir, newRiver) }

func peerQueue(dir string, open newPeer) (*queue, error) {
	p, err := open(dir, func(errand) {})
	if err != nil {
		return nil, err
	}
	return &queue{
		put: func() error { return p.put(errand{order: anOrder}) },
		many: func(n int) error {
			batch := make([]errand, n)
			for i := range batch {
				batch[i].order = anOrder
			}
			return p.many(batch)
		},
		close: func() error { return nil }, // it was never started, so it can't be stopped
	}, nil
}

func dbosQueue(dir string) (*queue, error) {
	db, err := openPeer(dir, 8)
	if err != nil {
		return nil, err
	}
	c, err := dbos.NewClient(noTimeout, dbos.ClientConfig{AppName: "bench", SQLiteSystemDB: db, Logger: quiet})
	if err != nil {
		return nil, err
	}
	if _, err := dbos.RegisterQueue(c, "errands"); err != nil {
		return nil, err
	}
	return &queue{
		put: func() error {
			_, err := dbos.Enqueue[receipt](c, "errands", "errand", anOrder)
			return err
		},
		close: func() error { return errors.Join(dbos.Shutdown(c, time.Second), db.Close()) },
	}, nil
}

func goQueue(dir string) (*queue, error) {
	b, db, err := goBackend(dir)
	if err != nil {
		return nil, err
	}
	c := client.New(b)
	errand := func(workflow.Context, order) (receipt, error) { return aReceipt, nil }
	return &queue{
		put: func() error {
			_, err := c.CreateWorkflowInstance(noTimeout,
				client.WorkflowInstanceOptions{InstanceID: uuid.NewString()}, errand, anOrder)
			return err
		},
		close: db.Close,
	}, nil
}

// queueSteps measure how fast jobs are enqueued.
func queueSteps() []step {
	var all []step
	for _, q := range []struct {
		name string
		open func(string) (*queue, error)
		bulk bool
	}{{"tasq", tasqQueue, true}, {"river", riverQueue, true}, {"dbos", dbosQueue, false}, {"gowf", goQueue, false}} {
		add := func(name string, callers, batch int) {
			all = append(all, step{name: name + q.name, rare: true, run: func(r job) (metrics, error) {
				return puts(r, callers, batch, q.open)
			}})
		}
		add("put-1-", 1, 1)
		add("put-64-", 64, 1)
		if q.bulk {
			add("bulk-", 1, bulk)
			add("most-", 1, most)
		}
	}
	return append(all, step{name: "tasq-drain", run: func(r job) (metrics, error) {
		return drainTasq(r, r.pick(2_000, 10_000))
	}})
}

// drainWorkers is with how many workers Tasq does short jobs fastest on two cores, of 64, 128, 256 and 2,000, which is what River has.
const drainWorkers = 128

// drainTasq is what drain is for River: the whole cycle of n jobs, which are enqueued in batches.
func drainTasq(r job, n int) (metrics, error) {
	e, err := open(r.store(), drainWorkers, errandAction)
	if err != nil {
		return nil, err
	}
	before, at := used(), time.Now()
	err = errors.Join(startMany(e, errandAction.Workflow, n), e.Drain(noTimeout))
	m := metrics{"rate": float64(n) / time.Since(at).Seconds()}
	return m.since(before, float64(n)), errors.Join(err, e.Close())
}

// dreams is a function that sleeps until tomorrow, with one step behind it.
var dreams = builder.MustFunc("dreams", func(ctx context.Context, _ order) (receipt, error) {
	_, err := tasqstep.Do(ctx, "before", func(context.Context) (receipt, error) { return aReceipt, nil })
	if err == nil {
		err = tasqstep.Sleep(ctx, "a day", 24*time.Hour)
	}
	return aReceipt, err
})

// dreamers is an engine with enough workers to send the functions to sleep.
var dreamers = engine.Config{Workers: 64, Logger: quiet}

// peerAsleep is what a peer holds for each of n functions that sleep until tomorrow.
func peerAsleep(r job, n int, open newDurable) (metrics, error) {
	d, err := open(r.dir, script{steps: 1, waits: true, naps: true, there: func(int) {}, awake: func(int) {}})
	if err != nil {
		return nil, err
	}
	if _, err := startAll(d, n/10); err != nil { // fills SQLite's page cache, and what grows once
		return nil, err
	}
	heap, rss := settled()
	if _, err := startAll(d, n); err != nil {
		return nil, err
	}
	heap2, rss2 := settled()
	return metrics{"heap": (heap2 - heap) / float64(n), "rss": (rss2 - rss) / float64(n)}, d.Close()
}
