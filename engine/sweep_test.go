package engine_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/engine/internal/kernel"
	"github.com/tasq-dev/tasq/internal/storehook"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/sqlite"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

const day = 24 * time.Hour

func echo(_ context.Context, n int) (int, error) { return n, nil }

// there says which of some runs are still there.
func there(t testing.TB, e *enginetest.Engine, runs []builder.Run[int]) (list []int) {
	t.Helper()
	for i, run := range runs {
		if _, err := run.Status(t.Context(), e); err == nil {
			list = append(list, i)
		} else {
			require.ErrorIs(t, err, engine.ErrNotFound)
		}
	}
	return list
}

// Case 14: runs that ended more than seven days ago vanish, by themselves, at their time; younger ones, and those that
// continue, stay. So it is after a crash, and for more than one page.
func TestRunsAreKeptForAWeek(t *testing.T) {
	a := builder.MustFunc("a", echo)
	b := builder.New[any]("human", builder.Keep(day))
	b.Path(b.Start(), builder.Task(b, "t", builder.Work[any, any]{}), b.End())
	human := b.MustBuild()
	e := enginetest.New(t, a, human)
	var runs []builder.Run[int]
	for i := range 4 {
		run, err := a.Run(t.Context(), e, i, workflow.Key(fmt.Sprint(i)))
		require.NoError(t, err)
		runs = append(runs, run)
		e.Advance(day)
	}
	running, err := human.Start(t.Context(), e, nil)
	require.NoError(t, err)
	scheduled, err := a.Run(t.Context(), e, 9, workflow.After(100*day))
	require.NoError(t, err)
	e.Advance(3*day - time.Second) // a second before a week after the first
	require.Equal(t, []int{0, 1, 2, 3}, there(t, e, runs))
	e.Advance(time.Second)
	require.Equal(t, []int{1, 2, 3}, there(t, e, runs))
	e.Advance(2 * day)
	require.Equal(t, []int{3}, there(t, e, runs))
	e.Crash()
	require.Equal(t, []int{3}, there(t, e, runs))
	e.Advance(day)
	require.Empty(t, there(t, e, runs))
	e.Advance(50 * day)
	c, err := e.Case(t.Context(), running)
	require.NoError(t, err)
	require.Equal(t, state.CaseStarted, c.State)
	s, err := scheduled.Status(t.Context(), e)
	require.NoError(t, err)
	require.Equal(t, workflow.RunScheduled, s.State)
	again, err := a.Run(t.Context(), e, 0, workflow.Key("0"))
	require.NoError(t, err)
	require.NotEqual(t, runs[0].ID, again.ID, "a key lives as long as its case")
}

func TestMoreThanAPageIsSwept(t *testing.T) {
	a := builder.MustFunc("a", echo, builder.Keep(day))
	e := enginetest.New(t, a)
	require.NoError(t, e.Update(t.Context(), func(tx *engine.Tx) error {
		for i := range 600 {
			if _, err := a.Run(t.Context(), tx, i); err != nil {
				return err
			}
		}
		return nil
	}))
	e.Advance(day - time.Second)
	young, err := a.Run(t.Context(), e, -1)
	require.NoError(t, err)
	e.Advance(time.Second)
	n := 0
	for c, err := range store.AllCases(t.Context(), e, store.CaseFilter{}) {
		require.NoError(t, err)
		require.Equal(t, young.ID, c.ID)
		n++
	}
	require.Equal(t, 1, n)
	e.Advance(day)
	nothingLeft(t, e)
}

// A crash between the end of a run and its removal, or in the middle of a sweep, loses nothing and leaves nothing.
func TestASweepSurvivesACrash(t *testing.T) {
	a := builder.MustFunc("a", echo, builder.Keep(time.Hour))
	e := enginetest.New(t, a)
	for i := range 10 {
		_, err := a.Run(t.Context(), e, i)
		require.NoError(t, err)
	}
	e.Drain()
	e.Crash()
	e.Advance(2 * time.Hour) // their time comes while the engine is open
	nothingLeft(t, e)
	for i := range 10 {
		_, err := a.Run(t.Context(), e, i)
		require.NoError(t, err)
	}
	e.Drain()
	require.NoError(t, e.Engine.Kill())
	e.Clock().Set(e.Now().Add(2 * time.Hour)) // and while it is closed
	e.Crash()
	e.Drain()
	nothingLeft(t, e)
}

// Zero removes a run as soon as its handlers were called; a negative time keeps it without limit, as an ordinary
// workflow is.
func TestKeepZeroAndForever(t *testing.T) {
	told := 0
	later := builder.LaterHandler("later", func(context.Context, builder.Ended[int], int) error {
		if told++; told == 1 {
			return errors.New("again")
		}
		return nil
	}, builder.JobOptions{Retry: retry.Constant(3, time.Minute)})
	zero := builder.MustFunc("zero", echo, builder.Keep(0), builder.Handles(later))
	forever := builder.MustFunc("forever", echo, builder.Keep(builder.Forever))
	b := builder.New[int]("plain")
	b.Path(b.Start(), builder.Task(b, "t", builder.Work[any, any]{Auto: true}), b.End())
	plain := b.MustBuild()
	e := enginetest.New(t, zero, forever, plain)
	kept, err := forever.Run(t.Context(), e, 1)
	require.NoError(t, err)
	id, err := plain.Start(t.Context(), e, 1)
	require.NoError(t, err)
	gone, err := zero.Run(t.Context(), e, 1)
	require.NoError(t, err)
	e.Drain()
	_, err = gone.Status(t.Context(), e)
	require.ErrorIs(t, err, engine.ErrNotFound)

	gone, err = zero.Run(t.Context(), e, 1, builder.OnCompleteLater(later, 1))
	require.NoError(t, err)
	e.Drain()
	s, err := gone.Status(t.Context(), e)
	require.NoError(t, err)
	require.Equal(t, workflow.RunCompleted, s.State, "its handler has still to be told")
	e.Advance(time.Minute)
	require.Equal(t, 2, told)
	_, err = gone.Status(t.Context(), e)
	require.ErrorIs(t, err, engine.ErrNotFound)

	e.Advance(100 * 365 * day)
	_, err = kept.Status(t.Context(), e)
	require.NoError(t, err)
	_, err = e.Case(t.Context(), id)
	require.NoError(t, err)
}

// A case goes with everything of it: child cases, items, jobs, events, steps and keys; and with nothing of others.
func TestACaseGoesWithEverything(t *testing.T) {
	cb := builder.New[int]("child")
	cb.Path(cb.Start(), builder.Task(cb, "t", builder.Work[any, any]{Run: func(context.Context, any) (any, error) { return nil, nil }}),
		cb.End())
	child := cb.MustBuild()
	b := builder.New[int]("parent", builder.Keep(time.Hour))
	many := builder.Composite(b, "many", child, builder.Cases[int]{
		Items: func(context.Context, *activities.Activation) ([]int, error) { return []int{1, 2, 3}, nil }})
	human := builder.Task(b, "human", builder.Work[any, any]{CancelAfter: day})
	b.Path(b.Start(), many, human, b.End())
	parent := b.MustBuild()
	e := enginetest.New(t, parent, child)
	other, err := child.Start(t.Context(), e, 1, workflow.Key("other"))
	require.NoError(t, err)
	id, err := parent.Start(t.Context(), e, 1, workflow.Key("one"))
	require.NoError(t, err)
	e.Drain()
	require.NoError(t, enginetest.Do(t.Context(), e, workflow.Send(id, "unread", "x", workflow.Key("two"))))
	require.ErrorIs(t, enginetest.Do(t.Context(), e, workflow.Remove(id)), engine.ErrUnfinished)
	item := live(t, e, id, "human").ID
	require.NoError(t, enginetest.Do(t.Context(), e, workflow.Act(item, workitem.Start, nil)))
	require.NoError(t, enginetest.Do(t.Context(), e, workflow.Act(item, workitem.Complete, nil)))
	e.Drain()
	e.Advance(time.Hour)
	_, err = e.Case(t.Context(), id)
	require.ErrorIs(t, err, engine.ErrNotFound)
	c, err := e.Case(t.Context(), other)
	require.NoError(t, err)
	require.Equal(t, state.CaseCompleted, c.State)
	require.NoError(t, enginetest.Do(t.Context(), e, workflow.Remove(other)))
	nothingLeft(t, e)
}

// Ten thousand cases go in pages; the commands of others are done in between. What cannot be removed is passed over and
// tried again, and does not keep the rest.
func TestUnremovableCaseDoesNotBlockOthers(t *testing.T) {
	a := builder.MustFunc("a", echo, builder.Keep(time.Hour))
	o := &stubborn{Opener: sqlite.Memory()}
	e := enginetest.Open(t, o, engine.Config{Logger: slog.New(slog.DiscardHandler)}, a)
	var runs []builder.Run[int]
	for i := range 300 {
		run, err := a.Run(t.Context(), e, i)
		require.NoError(t, err)
		runs = append(runs, run)
	}
	e.Drain()
	o.keep = runs[7].ID
	e.Advance(time.Hour)
	require.Equal(t, []int{7}, there(t, e, runs))
	o.keep = workitem.CaseID{}
	e.Advance(time.Hour)
	require.Empty(t, there(t, e, runs))
}

// stubborn opens a store that does not let go of one case.
type stubborn struct {
	store.Opener
	keep workitem.CaseID
}

// Open implements store.Opener.
func (o *stubborn) Open(ctx context.Context, opts store.Options) (store.Store, error) {
	return (&storehook.Opener{Opener: o.Opener, Append: func(e *store.Entry, t *state.Tree) error {
		if e.Root == o.keep && t.Removed() {
			return errors.New("no")
		}
		return nil
	}}).Open(ctx, opts)
}

// A handler of an ended run takes the process down again and again: the engine that gives it up does so while it opens,
// before it knows what may be removed.
func TestAHandlerThatKillsItsProcess(t *testing.T) {
	begun := make(chan struct{}, 8)
	hang := builder.LaterHandler("hang", func(ctx context.Context, _ builder.Ended[int], _ int) error {
		begun <- struct{}{}
		<-ctx.Done()
		return ctx.Err()
	}, builder.JobOptions{})
	action := builder.MustFunc("quick", func(context.Context, int) (int, error) { return 1, nil }, builder.Keep(0), builder.Handles(hang))
	e := enginetest.New(t, action)
	run, err := action.Run(t.Context(), e, 1, builder.OnCompleteLater(hang, 1))
	require.NoError(t, err)
	for range kernel.MaxCrashes + 1 {
		<-begun
		e.Crash()
	}
	e.Drain()
	_, err = run.Status(t.Context(), e)
	require.NoError(t, err, "what could not be told stays until somebody has looked")
	var states []string
	for j, err := range store.AllJobs(t.Context(), e, store.JobFilter{Kind: state.JobCall}) {
		require.NoError(t, err)
		states = append(states, fmt.Sprintf("%s %s", j.State, j.Failure.Code))
	}
	require.Equal(t, []string{"failed crash"}, states)
}
