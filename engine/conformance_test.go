package engine_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/step"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/sqlite"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// The tests of this file show decisions of docs/conformance.md that no feature's own tests show.

func TestEarlyEventsAreTakenInTheirOrder(t *testing.T) {
	w, _ := function(t, "waiter", func(ctx context.Context, _ int) ([]int, error) {
		if err := step.Sleep(ctx, "nap", time.Minute); err != nil {
			return nil, err
		}
		var got []int
		for i := range 3 {
			n, err := step.Await[int](ctx, "number", step.Named(fmt.Sprint("number ", i)))
			if err != nil {
				return nil, err
			}
			got = append(got, n)
		}
		return got, nil
	})
	e := enginetest.New(t, w)
	id := start(t, e, w, 0)
	for _, n := range []int{3, 1, 2} {
		require.NoError(t, enginetest.Do(t.Context(), e, workflow.Send(id, "number", n)))
	}
	e.Crash()
	e.Advance(time.Minute)
	require.Equal(t, "completed: [3,1,2]", outcome(t, e, id))
}

// An attempt is used up by a failure alone: not by waits, and not by claims after them.
func TestWaitsOfAllKindsUseNoAttempt(t *testing.T) {
	child := builder.MustFunc("child", func(ctx context.Context, n int) (int, error) { return n, step.Sleep(ctx, "nap", time.Second) })
	runs := 0
	a := builder.MustFunc("patient", func(ctx context.Context, _ int) (int, error) {
		runs++
		sum := 0
		for i := range 10 {
			n, err := step.Call[int](ctx, fmt.Sprint("child ", i), "child", i)
			if err != nil {
				return 0, err
			}
			m, err := step.Await[int](ctx, fmt.Sprint("event ", i))
			if err != nil {
				return 0, err
			}
			sum += n + m
		}
		return sum, nil
	}, builder.Retry(func(p *retry.Policy) { p.Attempts = 3 }))
	e := enginetest.New(t, a, child)
	run, err := a.Run(t.Context(), e, 0)
	require.NoError(t, err)
	for i := range 10 {
		e.Advance(time.Second)
		require.NoError(t, enginetest.Do(t.Context(), e, workflow.Send(run.ID, fmt.Sprint("event ", i), 100)))
		e.Drain()
	}
	s, err := run.Status(t.Context(), e)
	require.NoError(t, err)
	require.Equal(t, workflow.RunCompleted, s.State)
	require.Equal(t, 1045, s.Value)
	require.Equal(t, 1, s.Attempt)
	require.Equal(t, 21, runs, "once for each wait, and once more")
}

// A child's failure that no one catches is the parent's, with its code, and names the child.
func TestAnUncaughtFailureOfAChildFailsItsParent(t *testing.T) {
	child, _ := function(t, "child", func(context.Context, int) (int, error) {
		return 0, workitem.Failf("no-stock", "none left")
	})
	parent, _ := function(t, "parent", func(ctx context.Context, n int) (int, error) {
		return step.Call[int](ctx, "ship", "child", n)
	})
	e := enginetest.New(t, child, parent)
	id := start(t, e, parent, 0)
	c, err := e.Case(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, state.CaseFailed, c.State)
	require.Equal(t, "no-stock", c.Failure.Code)
	require.Regexp(t, `^step "ship": case \S+ of child failed: none left$`, c.Failure.Message)
}

// The child runs where its own queue says. While that is paused, the parent waits without a worker; when its time is
// over, it has its error, and the child will never run.
func TestAChildInAnotherQueue(t *testing.T) {
	for limit, want := range map[int]string{1: "completed: 7", 0: `completed: -1`} {
		var ran atomic.Int32
		child := builder.MustFunc("child", func(_ context.Context, n int) (int, error) { ran.Add(1); return n, nil },
			builder.OnQueue("other"))
		parent, _ := function(t, "parent", func(ctx context.Context, n int) (int, error) {
			got, err := step.Call[int](ctx, "call", "child", n, step.Timeout(time.Hour))
			if errors.Is(err, step.ErrTimeout) {
				return -1, nil
			}
			return got, err
		})
		e := enginetest.Open(t, enginetest.Store(t), engine.Config{Workers: 1, Queues: map[string]int{"other": limit}}, parent, child)
		id := start(t, e, parent, 7)
		if limit == 0 {
			require.Equal(t, []string{"waiting 0"}, jobs(t, e, id))
		}
		e.Advance(2 * time.Hour)
		require.Equal(t, want, outcome(t, e, id))
		require.EqualValues(t, limit, ran.Load())
		for c, err := range store.AllCases(t.Context(), e, store.CaseFilter{Workflow: "child"}) {
			require.NoError(t, err)
			require.Equal(t, limit == 0, c.State == state.CaseCanceled)
		}
	}
}

// The handlers of a parent are called once, also if grandchildren are canceled with it.
func TestCanceledTreeCallsItsHandlersOnce(t *testing.T) {
	var ends []string
	h := builder.Handler("ended", func(_ context.Context, c *builder.Completion[int], who string) error {
		ends = append(ends, fmt.Sprintf("%s %s", who, c.State))
		return nil
	})
	grandchild := builder.MustFunc("grandchild", func(ctx context.Context, _ int) (int, error) {
		return step.Await[int](ctx, "never")
	})
	child := builder.MustFunc("child", func(ctx context.Context, n int) (int, error) {
		return step.Call[int](ctx, "call", "grandchild", n)
	})
	parent := builder.MustFunc("parent", func(ctx context.Context, n int) (int, error) {
		return step.Call[int](ctx, "call", "child", n)
	}, builder.Handles(h))
	e := enginetest.New(t, parent, child, grandchild)
	run, err := parent.Run(t.Context(), e, 0, builder.OnComplete(h, "ann"))
	require.NoError(t, err)
	e.Drain()
	for _, want := range []bool{true, false} {
		done, err := run.Cancel(t.Context(), e, nil)
		require.NoError(t, err)
		require.Equal(t, want, done)
		e.Advance(time.Hour)
	}
	require.Equal(t, []string{"ann canceled"}, ends)
	canceled := 0
	for c, err := range store.AllCases(t.Context(), e, store.CaseFilter{}) {
		require.NoError(t, err)
		require.Equal(t, state.CaseCanceled, c.State, c.Workflow)
		canceled++
	}
	require.Equal(t, 3, canceled)
	for _, s := range stepsOf(t, e, store.StepFilter{}) {
		require.Equal(t, workitem.StepCanceled, s.State, s.Name)
	}
}

// What a restart is to do again it waits for again: an event that the old run took is the old run's.
func TestARestartWaitsForItsEventsAgain(t *testing.T) {
	a := builder.MustFunc("approval", func(ctx context.Context, _ int) (string, error) {
		return step.Await[string](ctx, "approved")
	})
	e := enginetest.New(t, a)
	run, err := a.Run(t.Context(), e, 0)
	require.NoError(t, err)
	require.NoError(t, enginetest.Do(t.Context(), e, workflow.Send(run.ID, "approved", "by ann")))
	e.Drain()
	kept, err := run.Restart(t.Context(), e)
	require.NoError(t, err)
	e.Drain()
	got, err := kept.Result(t.Context(), e)
	require.NoError(t, err)
	require.Equal(t, "by ann", got, "what is taken over is not asked for again")

	again, err := run.Restart(t.Context(), e, workflow.FromStep("approved"))
	require.NoError(t, err)
	e.Drain()
	s, err := again.Status(t.Context(), e)
	require.NoError(t, err)
	require.Equal(t, workflow.RunWaiting, s.State)
	require.NoError(t, enginetest.Do(t.Context(), e, workflow.Send(again.ID, "approved", "by bob")))
	e.Drain()
	got, err = again.Result(t.Context(), e)
	require.NoError(t, err)
	require.Equal(t, "by bob", got)
}

// Everything that a worker without a claim hands in is refused: the steps that it does, and those that it begins to
// wait for.
func TestAFencedWorkerBeginsNoWait(t *testing.T) {
	stuck, inside := make(chan struct{}), make(chan workitem.JobID, 2)
	late := make(chan error, 4)
	var calls atomic.Int32
	w, _ := function(t, "zombie", func(ctx context.Context, _ int) (string, error) {
		work, _ := builder.WorkFrom(ctx)
		if calls.Add(1) == 1 {
			inside <- work.Job
			<-stuck
			_, err := step.Await[int](ctx, "wait of the dead")
			late <- err
			_, err = step.Call[int](ctx, "child of the dead", "zombie", 1)
			late <- err
			_, err = step.Token(ctx, "token of the dead", "e")
			late <- err
			return "late", err
		}
		inside <- work.Job
		return "in time", nil
	})
	e := enginetest.New(t, w)
	id, err := w.Start(t.Context(), e, 0)
	require.NoError(t, err)
	require.NoError(t, enginetest.Do(t.Context(), e, workflow.Reclaim(<-inside)))
	<-inside
	_, err = e.Wait(t.Context(), id)
	require.NoError(t, err)
	close(stuck)
	for range 3 {
		require.Error(t, <-late)
	}
	e.Drain()
	require.Equal(t, `completed: "in time"`, outcome(t, e, id))
	require.Empty(t, stepsOf(t, e, store.StepFilter{}))
	n := 0
	for range store.AllCases(t.Context(), e, store.CaseFilter{}) {
		n++
	}
	require.Equal(t, 1, n)
}

// Two subscribers, and the process dies when one has begun: each runs to its end, once.
func TestABroadcastSurvivesACrash(t *testing.T) {
	begun, gate := make(chan string, 4), make(chan struct{})
	var done tally
	subscriber := func(name string) *builder.FuncRef[string, string] {
		return builder.MustFunc(name, func(ctx context.Context, news string) (string, error) {
			begun <- name
			select {
			case <-gate:
			case <-ctx.Done():
				return "", ctx.Err()
			}
			done.add(name)
			return news, nil
		}, builder.On("news"))
	}
	a, b := subscriber("a"), subscriber("b")
	path := t.TempDir() + "/news.db"
	e := enginetest.Open(t, sqlite.File(path), engine.Config{}, a, b)
	n, err := broadcast(t.Context(), e, "news", "rain", workflow.Key("1"))
	require.NoError(t, err)
	require.Equal(t, 2, n)
	<-begun
	e.Crash()
	close(gate)
	e.Drain()
	n, err = broadcast(t.Context(), e, "news", "rain", workflow.Key("1"))
	require.NoError(t, err)
	require.Equal(t, 2, n)
	e.Drain()
	for _, name := range []string{"a", "b"} {
		require.Equal(t, 1, done.of(name))
		cases := 0
		for c, err := range store.AllCases(t.Context(), e, store.CaseFilter{Workflow: name}) {
			require.NoError(t, err)
			require.Equal(t, `"rain"`, string(c.Output))
			cases++
		}
		require.Equal(t, 1, cases)
	}
}

func TestStepsAreListedInPages(t *testing.T) {
	w, _ := function(t, "long", func(ctx context.Context, n int) (int, error) {
		for i := range n {
			if _, err := step.Do(ctx, fmt.Sprint("s", i), one); err != nil {
				return 0, err
			}
		}
		return n, nil
	})
	e := enginetest.New(t, w)
	id := start(t, e, w, 25)
	for _, desc := range []bool{false, true} {
		var got []string
		page := store.Page{Limit: 7, Desc: desc}
		for {
			var rows []*workitem.Step
			require.NoError(t, e.View(t.Context(), func(r store.Reader) (err error) {
				rows, err = r.Steps(t.Context(), store.StepFilter{Case: id, Page: page})
				return err
			}))
			if len(rows) == 0 {
				break
			}
			require.LessOrEqual(t, len(rows), 7)
			for _, s := range rows {
				got = append(got, s.Name)
			}
			page.After = rows[len(rows)-1].ID.String()
			start(t, e, w, 3) // others come meanwhile
		}
		require.Len(t, got, 25)
		for i, name := range got {
			if desc {
				i = 24 - i
			}
			require.Equal(t, fmt.Sprint("s", i), name)
		}
	}
}

// Queues are distinguished by every character of their names.
func TestQueuesOfSimilarNamesAreTwo(t *testing.T) {
	long := strings.Repeat("q", 69)
	for _, names := range [][2]string{{"a-b", "a_b"}, {long + "1", long + "2"}} {
		var ran tally
		action := func(name, queue string) *builder.FuncRef[int, int] {
			return builder.MustFunc(name, func(context.Context, int) (int, error) { return ran.add(queue), nil }, builder.OnQueue(queue))
		}
		stopped, open := action("stopped", names[0]), action("open", names[1])
		e := enginetest.Open(t, enginetest.Store(t), engine.Config{Queues: map[string]int{names[0]: 0}}, stopped, open)
		for _, a := range []*builder.FuncRef[int, int]{stopped, open} {
			_, err := a.Run(t.Context(), e, 1)
			require.NoError(t, err)
		}
		e.Advance(time.Hour)
		require.Equal(t, 0, ran.of(names[0]))
		require.Equal(t, 1, ran.of(names[1]))
	}
}

// What a handler is given arrives as it was, and what is too large to be kept starts nothing.
func TestLargeContextsAndInputs(t *testing.T) {
	context100k := strings.Repeat("x", 100_000)
	var got []string
	h := builder.Handler("ended", func(_ context.Context, _ *builder.Completion[int], s string) error { got = append(got, s); return nil })
	a := builder.MustFunc("a", func(context.Context, string) (int, error) { return 1, nil }, builder.Handles(h))
	e := enginetest.New(t, a)
	_, err := a.Run(t.Context(), e, "", builder.OnComplete(h, context100k))
	require.NoError(t, err)
	e.Drain()
	require.Equal(t, []string{context100k}, got)
	_, err = a.Run(t.Context(), e, strings.Repeat("x", 2<<20))
	require.ErrorContains(t, err, "too large")
	_, err = a.Run(t.Context(), e, "", builder.OnComplete(h, strings.Repeat("x", 2<<20)))
	require.ErrorContains(t, err, "too large")
	n := 0
	for range store.AllCases(t.Context(), e, store.CaseFilter{}) {
		n++
	}
	require.Equal(t, 1, n)
}

// A wait ends when the first run said, on the engine's clock: set back, it takes longer, and is neither lost nor
// doubled.
func TestASleepWhileTheClockIsSetBack(t *testing.T) {
	runs := 0
	w, _ := function(t, "sleeper", func(ctx context.Context, _ int) (string, error) {
		runs++
		return "awake", step.Sleep(ctx, "nap", time.Hour)
	})
	e := enginetest.New(t, w)
	id := start(t, e, w, 0)
	due := e.Now().Add(time.Hour)
	e.Clock().Set(e.Now().Add(-2 * time.Hour))
	e.Crash()
	e.Advance(3*time.Hour - time.Second)
	require.Equal(t, "started", outcome(t, e, id))
	require.Equal(t, 1, runs)
	e.Advance(time.Second)
	require.Equal(t, "completed: \"awake\"", outcome(t, e, id))
	require.Equal(t, 2, runs)
	require.Equal(t, due, e.Now())
}

// An event has a value and nothing else: a failure is sent as a value, too, of which the function makes one.
func TestAnEventCanReportAFailure(t *testing.T) {
	type verdict struct {
		Refused string `json:"refused"`
	}
	a := builder.MustFunc("approval", func(ctx context.Context, _ int) (string, error) {
		v, err := step.Await[verdict](ctx, "decided")
		if err == nil && v.Refused != "" {
			err = workitem.Fatal(workitem.Failf("refused", "%s", v.Refused))
		}
		return "approved", err
	})
	e := enginetest.New(t, a)
	run, err := a.Run(t.Context(), e, 0)
	require.NoError(t, err)
	require.NoError(t, enginetest.Do(t.Context(), e, workflow.Send(run.ID, "decided", verdict{"too dear"})))
	e.Drain()
	_, err = run.Result(t.Context(), e)
	var f *workitem.Failure
	require.ErrorAs(t, err, &f)
	require.Equal(t, &workitem.Failure{Code: "refused", Message: "too dear"}, f)
}

// A child that has completed is done, for every later attempt of its parent; one that failed is run again.
func TestTheNextAttemptKeepsAChildThatCompleted(t *testing.T) {
	var ran tally
	child := builder.MustFunc("child", func(_ context.Context, name string) (int, error) {
		if n := ran.add(name); name == "bad" && n == 1 {
			return 0, workitem.Failf("busy", "not now")
		}
		return 7, nil
	}, builder.Retry(func(p *retry.Policy) { p.Attempts = 1 }))
	parent := builder.MustFunc("parent", func(ctx context.Context, _ int) (int, error) {
		good, err := step.Call[int](ctx, "good", "child", "good")
		if err != nil {
			return 0, err
		}
		bad, err := step.Call[int](ctx, "bad", "child", "bad")
		if err != nil {
			return 0, err
		}
		if ran.add("parent") == 1 {
			return 0, errors.New("the disk is full")
		}
		return good + bad, nil
	})
	e := enginetest.New(t, parent, child)
	run, err := parent.Run(t.Context(), e, 0)
	require.NoError(t, err)
	e.Advance(time.Minute)
	s, err := run.Status(t.Context(), e)
	require.NoError(t, err)
	require.Equal(t, workflow.RunCompleted, s.State)
	require.Equal(t, 14, s.Value)
	require.Equal(t, 3, s.Attempt)
	require.Equal(t, 1, ran.of("good"))
	require.Equal(t, 2, ran.of("bad"))
}
