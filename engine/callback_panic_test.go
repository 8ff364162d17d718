package engine_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/engine/why"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/workitem"
)

// The text of a panic is one line that says where it was; the stack is in the error for the caller, and in the details of a failure.
func TestAPanicOfACallbackIsOneLineAndKeepsItsStack(t *testing.T) {
	b := builder.New[string]("orders", builder.BusinessKey(func(s string) string {
		if s == "key" {
			panic(io.ErrUnexpectedEOF)
		}
		return ""
	}))
	ship := builder.Task(b, "ship", builder.Work[string, string]{
		Input: builder.CaseInput(b),
		Run:   func(_ context.Context, s string) (string, error) { return s, nil },
		Complete: func(context.Context, *activities.Item, string) error {
			var list []int
			_ = list[len(list)]
			return nil
		},
	})
	b.Path(b.Start(), ship, b.End())
	w := b.MustBuild()
	e := enginetest.New(t, w)

	_, err := w.Start(t.Context(), e, "key")
	require.ErrorIs(t, err, engine.ErrCallback)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.NotContains(t, err.Error(), "\n")
	require.Regexp(t, `callback failed: it panicked: unexpected EOF \(callback_panic_test\.go:\d+\)$`, err.Error())
	panicked, ok := errors.AsType[*retry.PanicError](err)
	require.True(t, ok)
	require.Contains(t, string(panicked.Stack), "callback_panic_test.go")

	id, err := w.Start(t.Context(), e, "x")
	require.NoError(t, err)
	e.Drain()
	item := e.Item(id, "ship.1.1")
	require.Equal(t, workitem.Failed, item.State)
	require.Equal(t, workitem.CodeInvalid, item.Failure.Code)
	require.NotContains(t, item.Failure.Message, "\n")
	require.Regexp(t, `it panicked: runtime error: index out of range \[0\] with length 0 \(callback_panic_test\.go:\d+\)$`, item.Failure.Message)
	require.Contains(t, string(item.Failure.Details), "callback_panic_test.go")
}

// A policy of the user that panics is named by tasq why, with the place of the panic: while its task is tried again, and once it is given up.
func TestWhySaysThatAPolicyPanics(t *testing.T) {
	b := builder.New[string]("orders")
	ship := builder.Task(b, "ship", builder.Work[string, string]{
		Input:  builder.CaseInput(b),
		Run:    func(_ context.Context, s string) (string, error) { return s, nil },
		Policy: workitem.NewPolicy("mine", func(workitem.Outcome) (workitem.Verdict, error) { panic("a bug") }),
	})
	b.Path(b.Start(), ship, b.End())
	w := b.MustBuild()
	var log strings.Builder
	e := enginetest.Open(t, enginetest.Store(t), engine.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))}, w)
	id, err := w.Start(t.Context(), e, "x")
	require.NoError(t, err)
	e.Drain()
	said := `panic: policy mine of orders/ship \(callback_panic_test\.go:\d+\): callback failed: it panicked: a bug \(callback_panic_test\.go:\d+\)`
	require.Contains(t, log.String(), "it panicked: a bug (callback_panic_test.go:")
	answer, err := e.Why(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, why.Retry, answer.Waits[0].Kind)
	require.Regexp(t, "item ship.1.1 goes on in 1s, at .* after "+said, answer.Waits[0].Text)
	require.NotContains(t, answer.Waits[0].Failure.Message, "\n")

	e.Advance(time.Hour)
	answer, err = e.Why(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, why.Incident, answer.Waits[0].Kind)
	require.Regexp(t, "item ship.1.1 was given up: "+said, answer.Waits[0].Text)
}

// A filter that panics is in the failure of the attempt that it was asked about, whose code and text stay.
func TestAFilterThatPanicsIsInTheFailure(t *testing.T) {
	policy := retry.Constant(3, time.Second)
	policy.Filters = []retry.Filter{func(retry.Failure) bool { panic("a bug") }}
	charge := builder.MustFunc("charge", func(context.Context, string) (string, error) {
		return "", workitem.Failf("no-funds", "the account is empty")
	}, builder.RetryPolicy(policy))
	var log strings.Builder
	e := enginetest.Open(t, enginetest.Store(t), engine.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))}, charge)
	run, err := charge.Run(t.Context(), e, "7")
	require.NoError(t, err)
	e.Drain()
	said := `the account is empty; filter 1 of the retry policy panicked: a bug \(callback_panic_test\.go:\d+\)`
	_, err = run.Result(t.Context(), e)
	failure, ok := errors.AsType[*workitem.Failure](err)
	require.True(t, ok)
	require.Equal(t, "no-funds", failure.Code)
	require.Regexp(t, "^"+said+"$", failure.Message)
	require.Equal(t, 1, strings.Count(log.String(), `level=ERROR msg="a filter of a retry policy panicked`))
	answer, err := e.Why(t.Context(), run.ID)
	require.NoError(t, err)
	require.Regexp(t, "is failed \\(no-funds: "+said, answer.String())

	policy.Filters = append(policy.Filters, retry.OnCode("no-funds"))
	charge = builder.MustFunc("charge", func(context.Context, string) (string, error) {
		return "", workitem.Failf("no-funds", "the account is empty")
	}, builder.RetryPolicy(policy))
	e = enginetest.New(t, charge)
	run, err = charge.Run(t.Context(), e, "7")
	require.NoError(t, err)
	e.Drain()
	answer, err = e.Why(t.Context(), run.ID)
	require.NoError(t, err)
	require.Regexp(t, "goes on in 1s, at .*, attempt 2 of 3 after no-funds: "+said, answer.Waits[0].Text)
}
