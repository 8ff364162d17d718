package engine_test

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/engine/why"
	"github.com/tasq-dev/tasq/step"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// positions lists those of the entries of a root case.
func positions(t testing.TB, e *enginetest.Engine, root workitem.CaseID) (all []int64) {
	t.Helper()
	for entry, err := range store.AllEntries(t.Context(), e, store.JournalFilter{Root: root}) {
		require.NoError(t, err)
		all = append(all, entry.Seq)
	}
	return all
}

func forked(t testing.TB, e *enginetest.Engine, id workitem.CaseID, seq int64, opts ...workflow.Option) workitem.CaseID {
	t.Helper()
	result, err := e.Do(t.Context(), workflow.Fork(id, seq, opts...))
	require.NoError(t, err)
	require.NotEqual(t, id, result.Case)
	return result.Case
}

// A fork is a case of its own with the past of another one: what was done is not done again, and both end by themselves.
func TestAForkTakesOverWhatWasDone(t *testing.T) {
	t.Parallel()
	var charged, sent atomic.Int32
	var handled []string
	token := make(chan string, 4)
	b := builder.New[string]("parcel")
	pay := builder.Task(b, "pay", builder.Work[string, string]{Input: builder.CaseInput(b), Run: func(ctx context.Context, who string) (string, error) {
		if _, err := step.Do(ctx, "charge", func(context.Context) (int32, error) { return charged.Add(1), nil }); err != nil {
			return "", err
		}
		text, err := step.Token(ctx, "token", "confirmed")
		if err != nil {
			return "", err
		}
		if _, err := step.Do(ctx, "mail", func(context.Context) (int32, error) { token <- text; return sent.Add(1), nil }); err != nil {
			return "", err
		}
		return step.Await[string](ctx, "confirmed", step.Timeout(time.Hour))
	}})
	pack := builder.Task(b, "pack", builder.Work[string, string]{Input: builder.Output(pay), OnWorkItemStateChanged: func(_ context.Context, c *activities.Change) error {
		handled = append(handled, c.Item.Label())
		return nil
	}})
	b.Path(b.Start(), pay, pack, b.End())
	w, err := b.Build()
	require.NoError(t, err)
	e := enginetest.New(t, w)
	id, err := w.Start(t.Context(), e, "ada", workflow.BusinessKey("C-1"), workflow.Label("customer", "ada"))
	require.NoError(t, err)
	e.Drain()
	waits := positions(t, e, id)
	e.Advance(40 * time.Minute)
	require.NoError(t, enginetest.Do(t.Context(), e, workflow.SendToken(<-token, "by ada")))
	e.Drain()
	enginetest.CompleteItem(e, id, "pack", "brown")
	require.Equal(t, state.CaseCompleted, caseOf(t, e, id).State)
	handled = nil

	again := workflow.Fork(id, waits[len(waits)-1], workflow.By("ann"), workflow.Because("what if no one confirms"), workflow.Key("f1"))
	result, err := e.Do(t.Context(), again)
	require.NoError(t, err)
	same, err := e.Do(t.Context(), again)
	require.NoError(t, err)
	require.Equal(t, result, same, "its key has its answer")
	fork := result.Case
	c := caseOf(t, e, fork)
	require.Equal(t, []any{"C-1", map[string]string{"customer": "ada"}, id, false}, []any{c.Key, c.Labels, c.Predecessor, c.Unique})
	require.Equal(t, []string{"pay.1.1 started"}, e.States(fork))
	require.Equal(t, []string{"ann fork: what if no one confirms"}, notes(t, e, fork))
	e.Drain()
	require.Equal(t, []int32{1, 1}, []int32{charged.Load(), sent.Load()}, "the steps that were done are not done again")
	require.Empty(t, token, "nor is its token told again")
	answer, err := e.Why(t.Context(), fork)
	require.NoError(t, err)
	require.Equal(t, why.Event, answer.Waits[0].Kind)
	require.Equal(t, e.Now().Add(time.Hour), answer.Waits[0].Until, "the whole time was left")
	e.Crash()
	require.NoError(t, enginetest.Do(t.Context(), e, workflow.Send(fork, "confirmed", "by phone")))
	e.Drain()
	require.Equal(t, []string{"pay.1.1 completed", "pack.1.1 initialized"}, e.States(fork))
	require.Equal(t, "by phone", enginetest.OutputOf[string](e, fork, "pay.1.1"))
	enginetest.CompleteItem(e, fork, "pack", "white")
	require.Equal(t, state.CaseCompleted, caseOf(t, e, fork).State)
	require.Equal(t, "brown", enginetest.OutputOf[string](e, id, "pack.1.1"))
	require.EqualValues(t, 1, charged.Load())

	late := positions(t, e, id)
	_, err = e.Do(t.Context(), workflow.Fork(id, late[len(late)-1]))
	require.ErrorIs(t, err, engine.ErrInactive)
	require.ErrorContains(t, err, "it was completed; name an earlier position")
	_, err = e.Do(t.Context(), workflow.Fork(fork, late[0]))
	require.ErrorIs(t, err, engine.ErrNotFound)
	e.Check()
}

// A job that ran is due in the fork, and does what it was to do.
func TestAForkOfAJobThatRan(t *testing.T) {
	t.Parallel()
	running, release := make(chan struct{}, 2), make(chan struct{})
	f := builder.MustFunc("slow", func(_ context.Context, n int) (int, error) {
		running <- struct{}{}
		<-release
		return n + 1, nil
	})
	e := enginetest.New(t, f)
	run, err := f.Run(t.Context(), e, 1)
	require.NoError(t, err)
	<-running
	all := positions(t, e, run.ID)
	fork := f.Of(forked(t, e, run.ID, all[len(all)-1]))
	<-running
	close(release)
	for _, r := range []builder.Run[int]{run, fork} {
		n, err := r.Result(t.Context(), e)
		require.NoError(t, err)
		require.Equal(t, 2, n)
	}
	e.Check()
}

// Forks of random histories, child cases and repairs among them: each is whole, and can end.
func TestRandomForksCanEnd(t *testing.T) {
	t.Parallel()
	seeds := uint64(20)
	if testing.Short() {
		seeds = 4
	}
	made := 0
	for seed := range seeds {
		random := rand.New(rand.NewPCG(seed, 1))
		e := enginetest.New(t, compiled(t, repaired)...)
		id, err := enginetest.Start(t.Context(), e, "deep", nil)
		require.NoError(t, err)
		for range 30 {
			actAtRandom(t, e, random, id)
		}
		all := positions(t, e, id)
		for range 4 {
			seq := all[random.IntN(len(all))]
			result, err := e.Do(t.Context(), workflow.Fork(id, seq))
			if err != nil {
				require.ErrorIs(t, err, engine.ErrInactive)
				continue
			}
			made++
			then, err := store.At(t.Context(), e, id, store.Moment{Seq: seq})
			require.NoError(t, err)
			tree, err := store.TreeOf(t.Context(), e, result.Case)
			require.NoError(t, err)
			require.Equal(t, standing(then), standing(tree), "seed %d, position %d", seed, seq)
			way := why.WayOf(tree, why.Explain(why.Input{Tree: tree, Case: result.Case, Now: e.Now()}))
			require.True(t, way.Found || !way.Decided, way.String())
		}
		e.Check()
	}
	require.Greater(t, made, int(seeds))
}

// standing is where the cases of a tree stand, without ids.
func standing(tree *state.Tree) (all []any) {
	tree.Each(func(c *state.Case) {
		all = append(all, c.Workflow, c.State, c.Marking, c.Tasks, c.Begun, len(c.Children), c.Jobs.Len())
		for it := range c.Items.All() {
			all = append(all, it.Label(), it.State, it.Attempt)
		}
	})
	return all
}

// actAtRandom does something to a random item of a tree, or repairs it. What is refused is refused.
func actAtRandom(t *testing.T, e *enginetest.Engine, random *rand.Rand, root workitem.CaseID) {
	var items []*store.ItemRow
	for row, err := range store.AllItems(t.Context(), e, store.ItemFilter{Root: root}) {
		require.NoError(t, err)
		items = append(items, row)
	}
	if len(items) == 0 {
		return
	}
	it := items[random.IntN(len(items))]
	commands := []workflow.Command{
		workflow.Act(it.ID, workitem.Start, nil), workflow.Act(it.ID, workitem.Complete, nil), workflow.Act(it.ID, workitem.Complete, nil),
		workflow.Fail(it.ID, &workitem.Failure{Code: "x"}), workflow.Retry(it.ID, nil), workflow.Skip(it.ID, nil), workflow.Resume(root, nil),
	}
	_, _ = e.Do(t.Context(), commands[random.IntN(len(commands))]) // many are refused in most states
}
