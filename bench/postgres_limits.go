package main

import (
	"io"
	"time"

	"github.com/dbos-inc/dbos-transact-golang/dbos"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/limit"
)

// The numbers of the measured limits: more calls a minute than are made, and fewer slots than there are callers.
const (
	amplePerMinute = 1_000_000
	fewSlots       = 8
)

// limited is a kind of limit that all processes with a database share, as Tasq and DBOS have it.
type limited struct {
	name, title string
	tasq        []builder.FuncOption
	dbos        []dbos.QueueOption
}

func limitedKinds() []limited {
	share := func(l limit.Limit) []builder.FuncOption {
		return []builder.FuncOption{builder.Limits(builder.Takes(l.Shared(), 0))}
	}
	return []limited{
		{name: "none", title: "no limit"},
		{"rate", "a million a minute", share(limit.Calls(amplePerMinute, time.Minute)),
			[]dbos.QueueOption{dbos.WithRateLimiter(&dbos.RateLimiter{Limit: amplePerMinute, Period: time.Minute})}},
		{"slots", "eight at once", share(limit.Resource("slots", fewSlots)), []dbos.QueueOption{dbos.WithGlobalConcurrency(fewSlots)}},
	}
}

// limitSteps are closed loops of 64 callers whose functions do nothing but take a limit.
func limitSteps() (all []step) {
	for _, l := range limitedKinds() {
		all = append(all, step{name: "pg-limit-" + l.name + "-tasq", run: func(r job) (metrics, error) {
			return functionsOf(r, 64, 0, func(_ string, s script) (durable, error) { return tasqIn(r.store(), s, l.tasq...) })
		}}, step{name: "pg-limit-" + l.name + "-dbos", run: func(r job) (metrics, error) {
			return jobsOf(r, 64, dbosQueueOn(r.dsn, l.dbos...))
		}})
	}
	return all
}

// dbosPolls is how often DBOS looks for workflows in its queue: two hundred times as often as by default.
const dbosPolls = 5 * time.Millisecond

// dbosQueueOn is a queue of workflows of DBOS, since its limits are those of queues.
func dbosQueueOn(dsn string, opts ...dbos.QueueOption) newPeer {
	return func(_ string, work func(errand)) (*peer, error) {
		ctx, err := dbos.NewContext(noTimeout, dbos.Config{AppName: "bench", DatabaseURL: dsn, Logger: quiet})
		if err != nil {
			return nil, err
		}
		fn := func(_ dbos.Context, e errand) (receipt, error) {
			work(e)
			return aReceipt, nil
		}
		dbos.RegisterWorkflow(ctx, fn, dbos.WithWorkflowName("function"))
		q, err := dbos.RegisterQueue(ctx, "errands", append(opts, dbos.WithQueueBasePollingInterval(dbosPolls))...)
		if err != nil {
			return nil, err
		}
		return &peer{
			put: func(e errand) error {
				_, err := dbos.RunWorkflow(ctx, fn, e, dbos.WithQueue(q))
				return err
			},
			start: func() error { return dbos.Launch(ctx) },
			stop:  func() error { return dbos.Shutdown(ctx, time.Minute) },
		}, nil
	}
}

func (b *bench) limitTable(w io.Writer, version string) {
	var lines []line
	for _, l := range limitedKinds() {
		lines = append(lines, line{"pg-limit-" + l.name + "-tasq", "Tasq, " + l.title, tree, full},
			line{"pg-limit-" + l.name + "-dbos", "DBOS, " + l.title, version, full})
	}
	b.table(w, "On PostgreSQL, functions that take a shared limit, 64 in flight", lines,
		[]column{{"rate", "/s"}, {"p50", "p50 ms"}, {"p99", "p99 ms"}, {"cpu", "CPU us"}, {"server", "server's CPU us"}})
}
