// Package observe shows an engine to OpenTelemetry: traces from the caller of a command through the jobs and steps of its case, and
// metrics of commands, jobs and what waits. It is a module of its own, so that a program that does not use it depends on nothing of it.
//
//	o, err := observe.New(observe.Options{})
//	e, err := engine.Config{Wrap: []engine.Middleware{o.Middleware()}}.Open(ctx, sqlite.File("orders.db"), orders)
//	unregister, err := o.Watch(e)
//
// A command has a span, which is a child of the one in the context of its caller, and ends when the command is durable. A case keeps
// the span that started it (workflow.Trace): each call of the function of one of its jobs, also after a wait, in a child case or in another
// process, is a child of that span, and each step that runs a function is a child of the call.
//
// Package observe/prometheus serves the metrics to Prometheus, and observe/grafana/tasq.json is a dashboard of them.
package observe

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/step"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// Scope is the name of the tracer and of the meter.
const Scope = "github.com/tasq-dev/tasq/observe"

// Options say where traces and metrics go. The zero value uses the global providers of OpenTelemetry.
type Options struct {
	Tracers trace.TracerProvider // Default: otel.GetTracerProvider()
	Meters  metric.MeterProvider // Default: otel.GetMeterProvider()
	Now     func() time.Time     // the engine's time; default: time.Now
}

// Observer measures engines. Make one with [New]. It is safe for concurrent use.
type Observer struct {
	tracer trace.Tracer
	now    func() time.Time
	meters meters
}

// New makes an observer. The error is that of the provider of meters.
func New(o Options) (*Observer, error) {
	if o.Tracers == nil {
		o.Tracers = otel.GetTracerProvider()
	}
	if o.Meters == nil {
		o.Meters = otel.GetMeterProvider()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	m, err := newMeters(o.Meters.Meter(Scope))
	return &Observer{tracer: o.Tracers.Tracer(Scope), now: o.Now, meters: m}, err
}

// Middleware is what an engine is given as engine.Config.Wrap.
func (o *Observer) Middleware() engine.Middleware {
	return engine.Middleware{Command: o.command, Job: o.job, Step: o.step, Commit: o.commit}
}

// command traces and measures a command, and gives its span to the case that it starts.
func (o *Observer) command(ctx context.Context, c workflow.Command, next engine.Commander) (workflow.Result, error) {
	if ctx.Value(own{}) != nil {
		return next(ctx, c)
	}
	if !trace.SpanContextFromContext(ctx).IsValid() { // it comes from another process
		ctx = extract(ctx, c.Trace)
	}
	name := string(c.Kind)
	if c.Workflow != "" {
		name += " " + c.Workflow
	}
	ctx, span := o.tracer.Start(ctx, name, trace.WithSpanKind(trace.SpanKindProducer), trace.WithAttributes(
		attribute.String("tasq.command", string(c.Kind)), attribute.String("tasq.actor", c.Actor)))
	defer span.End()
	c.Trace = inject(ctx)
	began := time.Now()
	result, err := next(ctx, c)
	if id := result.Case; !id.IsZero() {
		span.SetAttributes(attribute.String("tasq.case", id.String()))
	}
	if id := result.Item; !id.IsZero() {
		span.SetAttributes(attribute.String("tasq.item", id.String()))
	}
	code := engine.Code(err)
	fail(span, err, code)
	o.meters.command.Record(ctx, time.Since(began).Seconds(), metric.WithAttributes(
		attribute.String("command", string(c.Kind)), attribute.String("code", code)))
	return result, err
}

// commit measures the size of a commit.
func (o *Observer) commit(c engine.Commit) {
	ctx := context.Background()
	o.meters.commands.Record(ctx, int64(c.Commands))
	o.meters.changes.Record(ctx, int64(c.Changes))
	o.meters.bytes.Record(ctx, int64(c.Bytes))
}

// job traces and measures a call of the function of a job.
func (o *Observer) job(ctx context.Context, w *activities.Work, next func(context.Context) error) error {
	if !trace.SpanContextFromContext(ctx).IsValid() {
		ctx = extract(ctx, w.Trace)
	}
	task := w.Name
	who := []attribute.KeyValue{attribute.String("tasq.case", w.Case.ID.String()), attribute.String("tasq.root", w.Case.Root.String()),
		attribute.String("tasq.job", w.Job.String()), attribute.Int("tasq.attempt", w.Attempt), attribute.String("tasq.queue", w.Queue)}
	if w.Item != nil {
		if task == "" {
			task = w.Item.Task
		}
		who = append(who, attribute.String("tasq.item", w.Item.ID.String()))
	}
	of := []attribute.KeyValue{attribute.String("workflow", w.Case.Workflow), attribute.String("task", task)}
	ctx, span := o.tracer.Start(ctx, w.Case.Workflow+"."+task, trace.WithSpanKind(trace.SpanKindConsumer), trace.WithAttributes(who...))
	defer span.End()
	o.meters.lag.Record(ctx, max(o.now().Sub(w.Due), 0).Seconds(), metric.WithAttributes(append(of, attribute.String("queue", w.Queue))...))
	began, code, outcome := time.Now(), workitem.CodePanic, "failed" // unless it returns
	defer func() {
		span.SetAttributes(attribute.String("tasq.outcome", outcome))
		o.meters.job.Record(ctx, time.Since(began).Seconds(), metric.WithAttributes(
			append(of, attribute.String("outcome", outcome), attribute.String("code", code))...))
	}()
	err := next(ctx)
	switch {
	case err == nil:
		code, outcome = "", "completed"
	case errors.Is(err, step.ErrSuspended), errors.Is(err, step.ErrYielded):
		code, outcome = "", "suspended"
	default:
		code = workitem.FailureOf(err).Code
		fail(span, err, code)
	}
	return err
}

// step traces a call of the function of a step.
func (o *Observer) step(ctx context.Context, _ *activities.Work, name string, next func(context.Context) error) error {
	ctx, span := o.tracer.Start(ctx, "step "+name, trace.WithAttributes(attribute.String("tasq.step", name)))
	defer span.End()
	err := next(ctx)
	if err != nil {
		fail(span, err, workitem.FailureOf(err).Code)
	}
	return err
}
