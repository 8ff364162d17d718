package engine_test

import (
	"context"
	"errors"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/enginetest"
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
