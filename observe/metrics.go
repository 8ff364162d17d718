package observe

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workflow"
)

// seconds are the bounds of the buckets of durations: from commands of a millisecond to functions of an hour.
var seconds = metric.WithExplicitBucketBoundaries(.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600)

// meters are what is measured.
//
//	tasq.command.duration   command, code            of commands, until they are durable
//	tasq.job.duration       workflow, task, outcome, code   of calls of the functions of jobs
//	tasq.job.lag            workflow, task, queue    from the time at which a job was due to its call
//	tasq.commit.commands                             commands that share a commit
//	tasq.commit.changes                              changes of a commit
//	tasq.commit.size                                 bytes of the changes of a commit
//	tasq.live               what, workflow, task, state     cases, work items and jobs that have not ended
//	tasq.failed             what, workflow, task     cases and work items that failed
//	tasq.queue.running      queue                    jobs with a worker of this engine
//	tasq.queue.overdue      queue                    jobs that are due and have not begun
//	tasq.queue.oldest       queue                    since when the first of them is due
//	tasq.timers.overdue                              timers that are due and have not begun
type meters struct {
	meter             metric.Meter
	command, job, lag metric.Float64Histogram

	commands, changes, bytes metric.Int64Histogram // of a commit

	live, failed, running, overdue, timers metric.Int64ObservableGauge
	oldest                                 metric.Float64ObservableGauge
}

func newMeters(m metric.Meter) (meters, error) {
	all := meters{meter: m}
	var errs []error
	histogram := func(name, text string) metric.Float64Histogram {
		h, err := m.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(text), seconds)
		errs = append(errs, err)
		return h
	}
	amount := func(name, unit, text string, bounds ...float64) metric.Int64Histogram {
		h, err := m.Int64Histogram(name, metric.WithUnit(unit), metric.WithDescription(text), metric.WithExplicitBucketBoundaries(bounds...))
		errs = append(errs, err)
		return h
	}
	gauge := func(name, text string) metric.Int64ObservableGauge {
		g, err := m.Int64ObservableGauge(name, metric.WithDescription(text))
		errs = append(errs, err)
		return g
	}
	all.command = histogram("tasq.command.duration", "Duration of commands until they are durable.")
	all.job = histogram("tasq.job.duration", "Duration of calls of the functions of jobs.")
	all.lag = histogram("tasq.job.lag", "Time from when a job was due until its function was called.")
	all.commands = amount("tasq.commit.commands", "", "Commands that share a commit.", 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
	all.changes = amount("tasq.commit.changes", "", "Changes of a commit.", 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 10_000, 100_000)
	all.bytes = amount("tasq.commit.size", "By", "Bytes of the changes of a commit.", 100, 1000, 10_000, 100_000, 1e6, 1e7, 1e8)
	all.live = gauge("tasq.live", "Cases, work items and jobs that have not ended.")
	all.failed = gauge("tasq.failed", "Cases and work items that failed.")
	all.running = gauge("tasq.queue.running", "Jobs with a worker of this engine.")
	all.overdue = gauge("tasq.queue.overdue", "Jobs that are due in this engine and have not begun.")
	all.timers = gauge("tasq.timers.overdue", "Timers that are due in this engine and have not begun.")
	var err error
	all.oldest, err = m.Float64ObservableGauge("tasq.queue.oldest", metric.WithUnit("s"),
		metric.WithDescription("Time since when the first job that has not begun is due."))
	return all, errors.Join(append(errs, err)...)
}

// Watch reports at each collection of the metrics what waits in an engine. It reads counts that the store keeps and what the engine
// has in memory, so it costs the same however many cases there are. Unregister ends it; call it before the engine is closed.
func (o *Observer) Watch(e *engine.Engine) (unregister func() error, err error) {
	m := o.meters
	r, err := m.meter.RegisterCallback(func(ctx context.Context, out metric.Observer) error {
		return errors.Join(o.counts(ctx, e, out), o.queues(ctx, e, out))
	}, m.live, m.failed, m.running, m.overdue, m.oldest, m.timers)
	if err != nil {
		return nil, err
	}
	return r.Unregister, nil
}

// counts reports what the store counts.
func (o *Observer) counts(ctx context.Context, e *engine.Engine, out metric.Observer) error {
	var counts []store.Count
	err := e.View(ctx, func(r store.Reader) (err error) {
		counts, err = r.Counts(ctx)
		return err
	})
	for _, c := range counts {
		of := []attribute.KeyValue{attribute.String("what", c.What), attribute.String("workflow", c.Workflow), attribute.String("task", c.Task)}
		switch c.State {
		case "completed", "canceled", "done":
		case "failed":
			out.ObserveInt64(o.meters.failed, c.N, metric.WithAttributes(of...))
		default:
			out.ObserveInt64(o.meters.live, c.N, metric.WithAttributes(append(of, attribute.String("state", c.State))...))
		}
	}
	return err
}

// own marks the commands of the observer itself, which are not observed.
type own struct{}

// queues reports how the queues of the engine stand.
func (o *Observer) queues(ctx context.Context, e *engine.Engine, out metric.Observer) error {
	result, err := e.Do(context.WithValue(ctx, own{}, true), workflow.Queues())
	for _, q := range result.Queues {
		of := metric.WithAttributes(attribute.String("queue", q.Queue))
		out.ObserveInt64(o.meters.running, int64(q.Running), of)
		out.ObserveInt64(o.meters.overdue, int64(q.Waiting), of)
		age := time.Duration(0)
		if !q.Oldest.IsZero() {
			age = max(o.now().Sub(q.Oldest), 0)
		}
		out.ObserveFloat64(o.meters.oldest, age.Seconds(), of)
	}
	timers := 0
	for _, b := range e.Overdue() {
		if b.Timers {
			timers += b.Due
		}
	}
	out.ObserveInt64(o.meters.timers, int64(timers))
	return err
}
