package engine_test

import (
	"context"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/internal/storehook"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// refusing is a store that refuses, as it commits, each transaction with an entry that is bad.
func refusing(t *testing.T, bad func(*state.Tree) bool) store.Opener {
	found := false
	return &storehook.Opener{Opener: enginetest.Store(t),
		Update: func(run func() error) error {
			found = false
			return run()
		},
		Append: func(_ *store.Entry, tree *state.Tree) error {
			found = found || bad(tree)
			return nil
		},
		Commit: func() error {
			if found {
				return store.ErrRefused
			}
			return nil
		},
	}
}

// What the database refuses as the transaction is committed is the matter of the command that wrote it, and of no other one that
// shares the transaction.
func TestACommandWhoseCommitIsRefusedFailsAlone(t *testing.T) {
	made := func(name string) *builder.Workflow[int] {
		b := builder.New[int](name)
		b.Path(b.Start(), builder.Task(b, "t", builder.Work[any, any]{}), b.End())
		return b.MustBuild()
	}
	good, bad := made("good"), made("bad")
	e := enginetest.Open(t, refusing(t, func(tree *state.Tree) bool {
		return tree.Case(tree.Root).Workflow == "bad"
	}), engine.Config{}, good, bad)
	start := func(key string, w *builder.Workflow[int]) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := w.Start(ctx, e, 1, workflow.Key(key))
			return err
		}
	}
	errs := engine.Together(t.Context(), e.Engine, start("1", good), start("2", bad), start("3", good), start("4", bad), start("5", good))
	for i, err := range errs {
		if i%2 == 0 {
			require.NoError(t, err, i)
			continue
		}
		require.ErrorIs(t, err, store.ErrRefused, i)
		require.Equal(t, "refused", engine.Code(err))
	}
	cases := 0
	for c, err := range store.AllCases(t.Context(), e, store.CaseFilter{}) {
		require.NoError(t, err)
		require.Equal(t, "good", c.Workflow)
		cases++
	}
	require.Equal(t, 3, cases)
}

// A result that the database refuses fails the work. It is not handed in without end, as it is while the store fails.
func TestAResultWhoseCommitIsRefusedFails(t *testing.T) {
	f := builder.MustFunc("f", func(context.Context, int) (int, error) { return 1, nil },
		builder.Retry(func(p *retry.Policy) { p.Attempts = 1 }))
	e := enginetest.Open(t, refusing(t, func(tree *state.Tree) bool {
		return tree.Case(tree.Root).State == state.CaseCompleted
	}), engine.Config{}, f)
	r, err := f.Run(t.Context(), e, 1)
	require.NoError(t, err)
	e.Drain()
	s, err := r.Status(t.Context(), e)
	require.NoError(t, err)
	require.Equal(t, workflow.RunFailed, s.State)
	require.Equal(t, workitem.CodeInvalid, s.Failure.Code)
}

// What an activity asks for is refused if not every database can keep it, on each of them alike.
func TestAnItemHasWhatEachStoreCanKeep(t *testing.T) {
	for name, n := range map[string]activities.NewItem{
		"the queue of the item: invalid text":  {Queue: "a\x00"},
		"the queue of the item has 2000 bytes": {Queue: strings.Repeat("q", 2000)},
		"the priority is 2147483648":           {Priority: math.MaxInt32 + 1},
		"the priority is -2147483648":          {Priority: math.MinInt32},
	} {
		b := builder.New[any]("w")
		b.Path(b.Start(), builder.Task(b, "t", builder.Work[any, any]{
			OnEnabled: func(ctx context.Context, a *activities.Activation) error {
				_, err := a.NewItem(ctx, n)
				return err
			},
		}), b.End())
		w := b.MustBuild()
		e := enginetest.New(t, w)
		_, err := w.Start(t.Context(), e, nil)
		require.ErrorContains(t, err, name)
	}
}
