package observe_test

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/observe"
	"github.com/tasq-dev/tasq/observe/prometheus"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/step"
	"github.com/tasq-dev/tasq/store/sqlite"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// orders is a workflow whose child case charges, waits for an hour, ships in the second attempt, and ends with an item for a person.
func orders(t *testing.T) *builder.Workflow[string] {
	t.Helper()
	var came atomic.Int32
	inner := builder.New[string]("delivery")
	ship := builder.Task(inner, "ship", builder.Work[string, string]{
		Input: builder.CaseInput(inner), OnWorkItemStateChanged: activities.Resume(retry.Constant(2, time.Minute)),
		Run: func(ctx context.Context, in string) (string, error) {
			_, err := step.Do(ctx, "charge", func(context.Context) (int, error) { return 1, nil })
			if err == nil {
				err = step.Sleep(ctx, "dry", time.Hour)
			}
			if err == nil && came.Add(1) == 1 {
				err = &workitem.Failure{Code: "no-van", Retryable: true}
			}
			return in, err
		}})
	inner.Path(inner.Start(), ship, inner.End())
	delivery, err := inner.Build()
	require.NoError(t, err)
	b := builder.New[string]("order")
	deliver := builder.Composite(b, "deliver", delivery, builder.Cases[string]{Input: builder.CaseInput(b)})
	sign := builder.Task(b, "sign", builder.Work[string, string]{Input: builder.CaseInput(b)})
	b.Path(b.Start(), deliver, sign, b.End())
	w, err := b.Build()
	require.NoError(t, err)
	return w
}

// attr is an attribute of a span as text; "" if there is none.
func attr(s sdktrace.ReadOnlySpan, key string) string {
	for _, kv := range s.Attributes() {
		if string(kv.Key) == key {
			return kv.Value.String()
		}
	}
	return ""
}

// One trace has the span of the caller, the command that it waits for, and each call of the child case's function with its steps: after a
// wait, a failed attempt, and in the engine of another process.
func TestATraceGoesFromTheCallerOverWaitsAndProcesses(t *testing.T) {
	spans := tracetest.NewSpanRecorder()
	tracers := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))
	w := orders(t)
	o, err := observe.New(observe.Options{Tracers: tracers})
	require.NoError(t, err)
	e := enginetest.Open(t, sqlite.Memory(), engine.Config{Wrap: []engine.Middleware{o.Middleware()}}, w)

	ctx, caller := tracers.Tracer("shop").Start(t.Context(), "checkout")
	id, err := w.Start(ctx, e, "book")
	require.NoError(t, err)
	caller.End()
	e.Drain()
	e.Crash() // what the next process knows of the trace is in the database
	e.Advance(2 * time.Hour)
	enginetest.CompleteItem(e, id, "sign.1.1", "ann")
	_, err = e.Do(ctx, workflow.Cancel(id, nil))
	require.ErrorIs(t, err, engine.ErrInactive)

	trace := caller.SpanContext().TraceID()
	byName := make(map[string][]sdktrace.ReadOnlySpan)
	for _, s := range spans.Ended() {
		if s.SpanContext().TraceID() == trace {
			byName[s.Name()] = append(byName[s.Name()], s)
		}
	}
	start := byName["start order"]
	require.Len(t, start, 1)
	require.Equal(t, caller.SpanContext().SpanID(), start[0].Parent().SpanID())
	require.Equal(t, id.String(), attr(start[0], "tasq.case"))

	var outcomes []string
	calls := make(map[string]bool)
	for _, s := range byName["delivery.ship"] {
		require.Equal(t, start[0].SpanContext().SpanID(), s.Parent().SpanID())
		require.Equal(t, id.String(), attr(s, "tasq.root"))
		require.NotEqual(t, id.String(), attr(s, "tasq.case"))
		outcomes = append(outcomes, attr(s, "tasq.attempt")+" "+attr(s, "tasq.outcome")+" "+attr(s, "tasq.code"))
		calls[s.SpanContext().SpanID().String()] = true
	}
	require.Equal(t, "1 suspended ", outcomes[0])
	require.Contains(t, outcomes, "1 failed no-van")
	require.Equal(t, "2 completed ", outcomes[len(outcomes)-1])
	require.NotEmpty(t, byName["step charge"])
	for _, s := range byName["step charge"] {
		require.True(t, calls[s.Parent().SpanID().String()])
	}
	require.Len(t, byName["cancel"], 1)
	require.Equal(t, codes.Error, byName["cancel"][0].Status().Code)
	require.Equal(t, "not-active", attr(byName["cancel"][0], "tasq.code"))
}

// The metrics have commands, attempts with their codes, what is late, and what is there.
func TestMetrics(t *testing.T) {
	reader := metric.NewManualReader()
	w := orders(t)
	var e *enginetest.Engine
	o, err := observe.New(observe.Options{Meters: metric.NewMeterProvider(metric.WithReader(reader)), Now: func() time.Time { return e.Now() }})
	require.NoError(t, err)
	e = enginetest.Open(t, enginetest.Store(t), engine.Config{Wrap: []engine.Middleware{o.Middleware()}}, w)
	unregister, err := o.Watch(e.Engine)
	require.NoError(t, err)
	id, err := w.Start(t.Context(), e, "book")
	require.NoError(t, err)
	e.Drain()
	require.NoError(t, enginetest.Do(t.Context(), e, workflow.PauseQueue("")))
	e.Advance(time.Hour)
	e.Advance(10 * time.Second)
	got := collect(t, reader)
	require.EqualValues(t, 1, got[`tasq.queue.overdue{queue=}`])
	require.EqualValues(t, 10, got[`tasq.queue.oldest{queue=}`])
	require.NoError(t, enginetest.Do(t.Context(), e, workflow.ResumeQueue("")))
	e.Drain()
	e.Advance(3 * time.Hour)
	_, err = e.Do(t.Context(), workflow.Cancel(workitem.CaseID{1}, nil))
	require.ErrorIs(t, err, engine.ErrNotFound)

	got = collect(t, reader)
	require.EqualValues(t, 1, got[`tasq.command.duration{code=,command=start}`])
	require.EqualValues(t, 1, got[`tasq.command.duration{code=not-found,command=cancel}`])
	require.EqualValues(t, 1, got[`tasq.job.duration{code=no-van,outcome=failed,task=ship,workflow=delivery}`])
	require.EqualValues(t, 1, got[`tasq.job.duration{code=,outcome=completed,task=ship,workflow=delivery}`])
	require.NotZero(t, got[`tasq.job.duration{code=,outcome=suspended,task=ship,workflow=delivery}`])
	require.EqualValues(t, 10, got[`tasq.job.lag{queue=,task=ship,workflow=delivery} max`])
	require.EqualValues(t, 1, got[`tasq.live{state=started,task=,what=case,workflow=order}`])
	require.EqualValues(t, 1, got[`tasq.live{state=initialized,task=sign,what=item,workflow=order}`])
	require.EqualValues(t, 1, got[`tasq.failed{task=ship,what=item,workflow=delivery}`])
	require.EqualValues(t, 0, got[`tasq.queue.overdue{queue=}`])
	require.NotZero(t, got[`tasq.commit.commands{}`])
	require.Equal(t, got[`tasq.commit.commands{}`], got[`tasq.commit.size{}`])
	require.Greater(t, got[`tasq.commit.changes{} max`], 3.0)
	require.Greater(t, got[`tasq.commit.size{} max`], got[`tasq.commit.changes{} max`])
	require.Zero(t, got[`tasq.command.duration{code=,command=queues}`], "the observer does not observe itself")
	enginetest.CompleteItem(e, id, "sign.1.1", "ann")
	require.NoError(t, unregister())
	require.NotContains(t, collect(t, reader), `tasq.queue.overdue{queue=}`)
}

// collect reads all metrics: of a histogram the number of values, and with " max" the largest.
func collect(t *testing.T, reader metric.Reader) map[string]float64 {
	t.Helper()
	var all metricdata.ResourceMetrics
	require.NoError(t, reader.Collect(t.Context(), &all))
	got := make(map[string]float64)
	key := func(name string, set attribute.Set) string {
		return name + "{" + set.Encoded(attribute.DefaultEncoder()) + "}"
	}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			switch data := m.Data.(type) {
			case metricdata.Histogram[float64]:
				for _, p := range data.DataPoints {
					got[key(m.Name, p.Attributes)] = float64(p.Count)
					got[key(m.Name, p.Attributes)+" max"], _ = p.Max.Value()
				}
			case metricdata.Histogram[int64]:
				for _, p := range data.DataPoints {
					got[key(m.Name, p.Attributes)] = float64(p.Count)
					largest, _ := p.Max.Value()
					got[key(m.Name, p.Attributes)+" max"] = float64(largest)
				}
			case metricdata.Gauge[int64]:
				for _, p := range data.DataPoints {
					got[key(m.Name, p.Attributes)] = float64(p.Value)
				}
			case metricdata.Gauge[float64]:
				for _, p := range data.DataPoints {
					got[key(m.Name, p.Attributes)] = p.Value
				}
			}
		}
	}
	return got
}

// Each metric and each label that the dashboard asks for is one that Prometheus reads of an engine.
func TestTheDashboardAsksForWhatIsServed(t *testing.T) {
	meters, handler, err := prometheus.New()
	require.NoError(t, err)
	o, err := observe.New(observe.Options{Meters: meters})
	require.NoError(t, err)
	w := orders(t)
	e := enginetest.Open(t, enginetest.Store(t), engine.Config{Wrap: []engine.Middleware{o.Middleware()}}, w)
	unregister, err := o.Watch(e.Engine)
	require.NoError(t, err)
	_, err = w.Start(t.Context(), e, "book")
	require.NoError(t, err)
	e.Drain()
	e.Advance(2 * time.Hour)
	page := httptest.NewRecorder()
	handler.ServeHTTP(page, httptest.NewRequest("GET", "/metrics", nil))
	require.NoError(t, unregister())
	served := regexp.MustCompile(`(?m)^(tasq_[a-z_]+)`).FindAllString(page.Body.String(), -1)
	require.NotEmpty(t, served)

	asked := 0
	for _, p := range readDashboard(t) {
		for _, target := range p.Targets {
			for _, name := range regexp.MustCompile(`tasq_[a-z_]+`).FindAllString(target.Expr, -1) {
				asked++
				require.True(t, slices.Contains(served, name), "panel %s asks for %s, and there is %v", p.Title, name, served)
			}
			for _, by := range regexp.MustCompile(`by \(([a-z_, ]+)\)`).FindAllStringSubmatch(target.Expr, -1) {
				for _, label := range regexp.MustCompile(`[a-z_]+`).FindAllString(by[1], -1) {
					require.Contains(t, page.Body.String(), label+`="`, p.Title)
				}
			}
		}
	}
	require.Greater(t, asked, 8)
}

// panel is a panel of the dashboard.
type panel struct {
	Title   string
	Targets []struct{ Expr string }
}

func readDashboard(t *testing.T) []panel {
	t.Helper()
	raw, err := os.ReadFile("grafana/tasq.json")
	require.NoError(t, err)
	var dashboard struct {
		Title  string
		Panels []panel
	}
	require.NoError(t, json.Unmarshal(raw, &dashboard))
	require.NotEmpty(t, dashboard.Title)
	return dashboard.Panels
}
