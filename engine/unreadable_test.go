package engine_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/domain"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/step"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// declined is an error whose methods panic if it is nil, as most do.
type declined struct{ reason error }

func (d *declined) Error() string { return "declined: " + d.reason.Error() }
func (d *declined) Unwrap() error { return d.reason }

// nothing returns a nil pointer as an error: a common mistake, since that is an error other than nil.
func nothing() error {
	var none *declined
	return none
}

// An error whose methods panic is a failed attempt wherever it is returned, and does not end the process.
func TestAnErrorWhoseMethodsPanicIsAFailure(t *testing.T) {
	fails := func(context.Context) (int, error) { return 1, nothing() }
	again := step.Retry(retry.Exponential(2, 0))
	for name, run := range map[string]func(context.Context, int) (int, error){
		"function": func(ctx context.Context, _ int) (int, error) { return fails(ctx) },
		"step":     func(ctx context.Context, _ int) (int, error) { return step.Do(ctx, "s", fails, again) },
		"tx": func(ctx context.Context, _ int) (int, error) {
			return step.Tx(ctx, "s", func(ctx context.Context, _ domain.DB) (int, error) { return fails(ctx) })
		},
		"branch": func(ctx context.Context, _ int) (int, error) {
			return 1, step.All(ctx, step.Go(ctx, fails))
		},
		"lost branch": func(ctx context.Context, _ int) (int, error) {
			step.Go(ctx, fails)
			return 1, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := builder.MustFunc("f", run, builder.AttemptTimeout(1<<40))
			e := enginetest.New(t, f)
			r, err := f.Run(t.Context(), e, 1)
			require.NoError(t, err)
			e.Advance(1 << 40)
			_, err = r.Result(t.Context(), e)
			require.ErrorContains(t, err, "of type *engine_test.declined, panics when it is read")
			failure := (*workitem.Failure)(nil)
			require.ErrorAs(t, err, &failure)
			require.Equal(t, workitem.CodeError, failure.Code)
		})
	}
}

func TestACallbackWhoseErrorPanicsIsRefused(t *testing.T) {
	ended := builder.Handler("ended", func(context.Context, *builder.Completion[any], int) error { return nothing() })
	b := builder.New[int]("w", builder.Handles(ended))
	work := builder.Task(b, "t", builder.Work[any, any]{
		OnStarted: func(context.Context, *activities.Activation) error { return nothing() },
	})
	b.Path(b.Start(), work, b.End())
	w := b.MustBuild()
	e := enginetest.New(t, w)
	id, err := w.Start(t.Context(), e, 1, builder.OnComplete(ended, 1))
	require.NoError(t, err)
	for _, err := range []error{
		work.Start(t.Context(), e, e.Item(id, "t").ID),
		e.Update(t.Context(), func(*engine.Tx) error { return nothing() }),
	} {
		require.ErrorContains(t, err, "panics when it is read")
		require.Equal(t, "callback-failed", engine.Code(err))
	}
	_, err = e.Do(t.Context(), workflow.Cancel(id, nil))
	require.NoError(t, err, "what a handler returns does not keep a case from ending")
}

// Such an error kept its worker, and in a callback all commands, until the end of the process.
func TestAnErrorThatWrapsItselfIsAFailure(t *testing.T) {
	own := &declined{}
	own.reason = own
	f := builder.MustFunc("f", func(context.Context, int) (int, error) { return 0, own })
	e := enginetest.New(t, f)
	r, err := f.Run(t.Context(), e, 1, builder.Retry(func(p *retry.Policy) { p.Attempts = 1 }))
	require.NoError(t, err)
	e.Drain()
	_, err = r.Result(t.Context(), e)
	require.ErrorContains(t, err, "wraps itself")
	require.ErrorContains(t, e.Update(t.Context(), func(*engine.Tx) error { return own }), "wraps itself")
}
