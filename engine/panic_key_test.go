package engine_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/engine/why"
	"github.com/tasq-dev/tasq/limit"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

func echoes(_ context.Context, s string) (string, error) { return s, nil }

func panics(string) string { panic("a bug") }

// The function of a limit that panics fails the job with the code, the place and the stack of a panic.
func TestALimitWhosePanicsHaveAPlace(t *testing.T) {
	f := builder.MustFunc("f", echoes, builder.Limits(builder.TakesBy(limit.Resource("customer", 1), 1, panics)))
	e := enginetest.New(t, f)
	run, err := f.Run(t.Context(), e, "ann")
	require.NoError(t, err)
	e.Drain()
	_, err = run.Result(t.Context(), e)
	failure, ok := errors.AsType[*workitem.Failure](err)
	require.True(t, ok)
	require.Equal(t, workitem.CodePanic, failure.Code)
	require.False(t, failure.Retryable)
	require.Regexp(t, `slots? of customer .*, panicked: a bug \(panic_key_test\.go:\d+\)$`, failure.Message)
	require.Contains(t, string(failure.Details), "panic_key_test.go")
}

// A key that panics is no key; the log says so once, with the stack.
func TestAKeyThatPanicsIsLogged(t *testing.T) {
	var log logBook
	fair := builder.MustFunc("fair", echoes, builder.FairBy(panics))
	batch := builder.MustBatch("batch", 2, time.Second, func(_ context.Context, in []string) ([]builder.Outcome[string], error) {
		return make([]builder.Outcome[string], len(in)), nil
	}, builder.BatchBy(panics))
	e := enginetest.Open(t, enginetest.Store(t), engine.Config{Logger: slog.New(slog.NewJSONHandler(&log, nil))}, fair, batch)
	for range 3 {
		_, err := fair.Run(t.Context(), e, "ann")
		require.NoError(t, err)
		_, err = batch.Run(t.Context(), e, "ann")
		require.NoError(t, err)
	}
	e.Drain()
	for msg, of := range map[string]string{
		"the key function of fair scheduling failed; its job counts as one without a key": "fair",
		"the key function of batches failed; its job is done alone":                       "batch",
	} {
		lines := log.lines(t, msg)
		require.Len(t, lines, 1, msg)
		require.Equal(t, of, lines[0]["workflow"])
		require.Regexp(t, `^panicked: a bug \(panic_key_test\.go:\d+\)$`, lines[0]["error"])
		require.Contains(t, lines[0]["stack"], "panic_key_test.go")
	}
}

// A filter that the kernel asks is a callback in the transaction: a panic refuses the command, and is an incident of a job.
func TestAFilterThatPanicsInTheTransaction(t *testing.T) {
	policy := retry.Constant(3, time.Second)
	policy.Filters = []retry.Filter{func(retry.Failure) bool { panic("a bug") }, retry.OnCode("other")}
	b := builder.New[string]("orders")
	ask := builder.Task(b, "ask", builder.Work[string, string]{Input: builder.CaseInput(b), Retry: policy})
	ship := builder.Task(b, "ship", builder.Work[string, string]{
		Input:                  builder.CaseInput(b),
		Run:                    func(context.Context, string) (string, error) { return "", errors.New("no van") },
		OnWorkItemStateChanged: activities.All(activities.Retry(policy), activities.Retry(retry.Constant(1, 0))),
	})
	b.Path(b.Start(), ask, ship, b.End())
	w := b.MustBuild()
	e := enginetest.New(t, w)
	id, err := w.Start(t.Context(), e, "x")
	require.NoError(t, err)
	e.StartItem(id, "ask")
	item := e.Item(id, "ask").ID

	err = ask.Fail(t.Context(), e, item, workitem.Failf("ill", "I am ill"))
	require.ErrorContains(t, err, "onWorkItemStateChanged of orders/ask (panic_key_test.go:")
	panicked, ok := errors.AsType[*retry.PanicError](err)
	require.True(t, ok)
	require.Contains(t, string(panicked.Stack), "panic_key_test.go")
	require.Equal(t, workitem.Started, e.Item(id, "ask").State, "nothing happened")

	require.NoError(t, ask.Complete(t.Context(), e, item, "yes"))
	e.Drain()
	answer, err := e.Why(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, why.Incident, answer.Waits[0].Kind)
	require.Regexp(t, `given up: panic: onWorkItemStateChanged of orders/ship \(panic_key_test\.go:\d+\): `+
		`filter 1 of the retry policy panicked: a bug \(panic_key_test\.go:\d+\)`, answer.Waits[0].Text)
}

// A middleware for commands that panics refuses the command, and does not end the program of its caller.
func TestAMiddlewareForCommandsThatPanics(t *testing.T) {
	f := builder.MustFunc("f", echoes)
	e := enginetest.Open(t, enginetest.Store(t), engine.Config{Wrap: []engine.Middleware{{
		Command: func(ctx context.Context, c workflow.Command, next engine.Commander) (workflow.Result, error) {
			if c.Actor == "ann" {
				panic("a bug")
			}
			return next(ctx, c)
		},
	}}}, f)
	_, err := f.Run(t.Context(), e, "x", workflow.By("ann"))
	require.ErrorIs(t, err, engine.ErrCallback)
	require.ErrorContains(t, err, "a middleware of Config.Wrap panicked: a bug (panic_key_test.go:")
	requireWorks(t, e, f)
}
