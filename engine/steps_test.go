package engine_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/domain"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/step"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// function is a workflow of one task that does its work in steps.
func function[In, Out any](
	t testing.TB, name string, run func(context.Context, In) (Out, error), opts ...builder.Option,
) (*builder.Workflow[In], *builder.TaskRef[In, Out]) {
	t.Helper()
	return functionWith(t, name, builder.Work[In, Out]{Run: run}, opts...)
}

func functionWith[In, Out any](
	t testing.TB, name string, work builder.Work[In, Out], opts ...builder.Option,
) (*builder.Workflow[In], *builder.TaskRef[In, Out]) {
	t.Helper()
	b := builder.New[In](name, opts...)
	work.Input = builder.CaseInput(b)
	task := builder.Task(b, "work", work)
	b.Path(b.Start(), task, b.End())
	b.Result(builder.Output(task))
	w, err := b.Build()
	require.NoError(t, err)
	return w, task
}

// tally counts how often each thing was done.
type tally struct {
	mu sync.Mutex
	n  map[string]int
}

func (c *tally) add(name string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n == nil {
		c.n = make(map[string]int)
	}
	c.n[name]++
	return c.n[name]
}

func (c *tally) of(name string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n[name]
}

// outcome reads how a case stands.
func outcome(t testing.TB, e *enginetest.Engine, id workitem.CaseID) string {
	t.Helper()
	c, err := e.Case(t.Context(), id)
	require.NoError(t, err)
	switch {
	case c.Failure != nil:
		return fmt.Sprintf("%s: %s", c.State, c.Failure)
	case c.Output != nil:
		return fmt.Sprintf("%s: %s", c.State, c.Output)
	}
	return c.State.String()
}

func start[In any](t testing.TB, e *enginetest.Engine, w *builder.Workflow[In], in In) workitem.CaseID {
	t.Helper()
	id, err := w.Start(t.Context(), e, in)
	require.NoError(t, err)
	e.Drain()
	return id
}

func TestASleepingFunctionGoesOnWhereItWas(t *testing.T) {
	var did tally
	w, _ := function(t, "sleeper", func(ctx context.Context, name string) (string, error) {
		first, err := step.Do(ctx, "first", func(context.Context) (string, error) { did.add("first"); return "hello " + name, nil })
		if err != nil {
			return "", err
		}
		if err := step.Sleep(ctx, "nap", time.Hour); err != nil {
			return "", err
		}
		return step.Do(ctx, "second", func(context.Context) (string, error) { did.add("second"); return first + "!", nil })
	})
	e := enginetest.New(t, w)
	id := start(t, e, w, "you")
	require.Equal(t, "started", outcome(t, e, id))
	require.Equal(t, []string{"waiting 0"}, jobs(t, e, id), "no worker and no attempt is held")
	e.Advance(59 * time.Minute)
	require.Equal(t, 0, did.of("second"))
	e.Advance(time.Minute)
	require.Equal(t, `completed: "hello you!"`, outcome(t, e, id))
	require.Equal(t, 1, did.of("first"))
	require.Equal(t, 1, did.of("second"))
}

// jobs lists the live jobs of a case: state and attempts so far.
func jobs(t testing.TB, e *enginetest.Engine, id workitem.CaseID) []string {
	t.Helper()
	c, err := e.Case(t.Context(), id)
	require.NoError(t, err)
	var lines []string
	for j := range c.Jobs.All() {
		lines = append(lines, fmt.Sprintf("%s %d", j.State, j.Attempt))
	}
	return lines
}

func TestAStepThatFailsIsTriedAgainAfterItsBackoff(t *testing.T) {
	var did tally
	w, _ := function(t, "flaky", func(ctx context.Context, _ int) (int, error) {
		return step.Do(ctx, "call", func(context.Context) (int, error) {
			if n := did.add("call"); n < 3 {
				return 0, fmt.Errorf("attempt %d", n)
			}
			return 7, nil
		}, step.Retry(retry.Exponential(5, time.Second)))
	})
	e := enginetest.New(t, w)
	id := start(t, e, w, 0)
	require.Equal(t, 1, did.of("call"))
	e.Advance(time.Second)
	require.Equal(t, 2, did.of("call"))
	e.Advance(2 * time.Second)
	require.Equal(t, "completed: 7", outcome(t, e, id))
	require.Equal(t, []string{"work.1.1 completed 1"}, items(t, e, id), "no attempt of the item is used")
}

func TestAnEventThatWasSentEarlyIsKept(t *testing.T) {
	w, _ := function(t, "waiter", func(ctx context.Context, _ int) ([]int, error) {
		if err := step.Sleep(ctx, "nap", time.Minute); err != nil {
			return nil, err
		}
		var got []int
		for i := range 2 {
			n, err := step.Await[int](ctx, "number", step.Named(fmt.Sprintf("number %d", i)))
			if err != nil {
				return nil, err
			}
			got = append(got, n)
		}
		return got, nil
	})
	e := enginetest.New(t, w)
	id := start(t, e, w, 0)
	require.NoError(t, enginetest.Do(t.Context(), e, workflow.Send(id, "number", 1)))
	e.Advance(time.Minute)
	require.Equal(t, "started", outcome(t, e, id))
	require.NoError(t, enginetest.Do(t.Context(), e, workflow.Send(id, "number", 2)))
	e.Drain()
	require.Equal(t, "completed: [1,2]", outcome(t, e, id))
	require.ErrorIs(t, enginetest.Do(t.Context(), e, workflow.Send(id, "number", 3)), engine.ErrInactive)
	require.ErrorIs(t, enginetest.Do(t.Context(), e, workflow.Send(workitem.CaseID{1}, "number", 3)), engine.ErrNotFound)
}

func TestAWaitForAnEventHasAnEnd(t *testing.T) {
	w, _ := function(t, "impatient", func(ctx context.Context, _ int) (string, error) {
		_, err := step.Await[int](ctx, "paid", step.Timeout(time.Hour))
		if errors.Is(err, step.ErrTimeout) {
			return "too late", nil
		}
		return "paid", err
	})
	e := enginetest.New(t, w)
	late, paid := start(t, e, w, 0), start(t, e, w, 0)
	require.NoError(t, enginetest.Do(t.Context(), e, workflow.Send(paid, "paid", 1, workflow.Key("k"))))
	require.NoError(t, enginetest.Do(t.Context(), e, workflow.Send(paid, "paid", 1, workflow.Key("k"))), "the same key is the same event")
	e.Drain()
	require.Equal(t, `completed: "paid"`, outcome(t, e, paid))
	e.Advance(time.Hour)
	require.Equal(t, `completed: "too late"`, outcome(t, e, late))
}

func TestAChildCaseIsAValueOrAnError(t *testing.T) {
	type order struct {
		Fail bool `json:"fail"`
	}
	child, _ := function(t, "child", func(ctx context.Context, o order) (string, error) {
		if err := step.Sleep(ctx, "nap", time.Minute); err != nil {
			return "", err
		}
		if o.Fail {
			return "", &workitem.Failure{Code: "no-stock", Message: "none left"}
		}
		return "shipped", nil
	})
	parent, _ := function(t, "parent", func(ctx context.Context, o order) (string, error) {
		got, err := step.Call[string](ctx, "ship", "child", o)
		var failed *step.ChildError
		if errors.As(err, &failed) && !errors.Is(err, step.ErrCanceled) {
			return "not shipped: " + failed.Failure.Code, nil
		}
		if errors.Is(err, step.ErrCanceled) {
			return "canceled", nil
		}
		return got, err
	})
	e := enginetest.New(t, child, parent)
	good, bad, gone := start(t, e, parent, order{}), start(t, e, parent, order{Fail: true}), start(t, e, parent, order{})
	tree, err := store.TreeOf(t.Context(), e, gone)
	require.NoError(t, err)
	require.Equal(t, 2, tree.Len())
	tree.Each(func(c *state.Case) {
		if !c.Caller.IsZero() {
			require.NoError(t, enginetest.Do(t.Context(), e, workflow.Cancel(c.ID, nil)))
		}
	})
	e.Drain()
	require.Equal(t, `completed: "canceled"`, outcome(t, e, gone))
	e.Advance(time.Minute)
	require.Equal(t, `completed: "shipped"`, outcome(t, e, good))
	require.Equal(t, `completed: "not shipped: no-stock"`, outcome(t, e, bad))
}

func TestCancelingAWaitingParentCancelsItsChild(t *testing.T) {
	child, _ := function(t, "child", func(ctx context.Context, _ int) (int, error) {
		return 0, step.Sleep(ctx, "nap", time.Hour)
	})
	parent, _ := function(t, "parent", func(ctx context.Context, n int) (int, error) {
		return step.Call[int](ctx, "call", "child", n)
	})
	grand, _ := function(t, "grand", func(ctx context.Context, n int) (int, error) {
		return step.Call[int](ctx, "call", "parent", n)
	})
	e := enginetest.New(t, child, parent, grand)
	id := start(t, e, grand, 0)
	require.NoError(t, enginetest.Do(t.Context(), e, workflow.Cancel(id, nil)))
	e.Drain()
	tree, err := store.TreeOf(t.Context(), e, id)
	require.NoError(t, err)
	require.Equal(t, 3, tree.Len())
	tree.Each(func(c *state.Case) { require.Equal(t, state.CaseCanceled, c.State) })
}

func TestNextAttemptKeepsCompletedSteps(t *testing.T) {
	var did tally
	w, _ := functionWith(t, "order", builder.Work[int, string]{
		Run: func(ctx context.Context, n int) (string, error) {
			id, err := step.Do(ctx, "charge", func(context.Context) (int, error) { return did.add("charge"), nil })
			if err != nil {
				return "", err
			}
			_, err = step.Do(ctx, "save", func(context.Context) (int, error) {
				if did.add("save") < 3 {
					return 0, errors.New("the database is away")
				}
				return 0, nil
			})
			return fmt.Sprintf("charge %d", id), err
		},
		OnWorkItemStateChanged: activities.Resume(retry.Constant(5, time.Second)),
	})
	e := enginetest.New(t, w)
	id := start(t, e, w, 0)
	e.Advance(2 * time.Second)
	require.Equal(t, `completed: "charge 1"`, outcome(t, e, id))
	require.Equal(t, 1, did.of("charge"))
	require.Equal(t, 3, did.of("save"))
	require.Equal(t, []string{"work.1.1 failed 1 error", "work.1.2 failed 2 error", "work.1.3 completed 3"}, items(t, e, id))
}

func TestTheEffectOfAStepOnTheDatabaseIsThereOnce(t *testing.T) {
	var did tally
	w, _ := function(t, "tx", func(ctx context.Context, _ int) (int64, error) {
		insert := func(ctx context.Context, db domain.DB) (int64, error) {
			if _, err := db.ExecContext(ctx, "CREATE TABLE IF NOT EXISTS orders (id INTEGER PRIMARY KEY)"); err != nil {
				return 0, err
			}
			var id int64
			err := db.QueryRowContext(ctx, "INSERT INTO orders SELECT count(*) + 1 FROM orders RETURNING id").Scan(&id)
			return id, err
		}
		_, err := step.Tx(ctx, "undone", func(ctx context.Context, db domain.DB) (int64, error) {
			if _, err := insert(ctx, db); err != nil {
				return 0, err
			}
			return 0, errors.New("no")
		})
		var failed *step.Error
		if !errors.As(err, &failed) {
			return 0, fmt.Errorf("want a failed step, and got %w", err)
		}
		id, err := step.Tx(ctx, "insert", insert)
		if err != nil {
			return 0, err
		}
		did.add("run")
		if err := step.Sleep(ctx, "nap", time.Second); err != nil {
			return 0, err
		}
		return id, nil
	})
	e := enginetest.New(t, w)
	id := start(t, e, w, 0)
	e.Advance(time.Second)
	require.Equal(t, "completed: 1", outcome(t, e, id))
	require.Equal(t, 2, did.of("run"))
	require.NoError(t, e.View(t.Context(), func(r store.Reader) error {
		var n int
		row := r.DB().QueryRowContext(t.Context(), "SELECT count(*) FROM orders")
		require.NoError(t, row.Scan(&n))
		require.Equal(t, 1, n)
		return nil
	}))
}

func TestBranchesWaitTogether(t *testing.T) {
	w, _ := function(t, "race", func(ctx context.Context, _ int) (string, error) {
		event := step.Go(ctx, func(ctx context.Context) (string, error) { return step.Await[string](ctx, "paid") })
		timer := step.Go(ctx, func(ctx context.Context) (string, error) { return "late", step.Sleep(ctx, "patience", time.Second) })
		won, err := step.Race(ctx, "first", event, timer)
		if err != nil {
			return "", err
		}
		if won == 0 {
			return event.Wait(ctx)
		}
		return timer.Wait(ctx)
	})
	e := enginetest.New(t, w)
	late, paid := start(t, e, w, 0), start(t, e, w, 0)
	require.NoError(t, enginetest.Do(t.Context(), e, workflow.Send(paid, "paid", "cash")))
	e.Drain()
	require.Equal(t, `completed: "cash"`, outcome(t, e, paid))
	e.Advance(time.Second)
	require.Equal(t, `completed: "late"`, outcome(t, e, late))
}

func TestABroadcastIsDeliveredOnce(t *testing.T) {
	var started atomic.Int32
	waiter, _ := function(t, "waiter", func(ctx context.Context, _ int) (string, error) {
		return step.Await[string](ctx, "news", step.Topic())
	})
	subscriber, _ := function(t, "subscriber", func(_ context.Context, news string) (string, error) {
		started.Add(1)
		return news, nil
	}, builder.On("news"))
	e := enginetest.New(t, waiter, subscriber)
	a, b := start(t, e, waiter, 0), start(t, e, waiter, 0)
	n, err := broadcast(t.Context(), e, "news", "rain", workflow.Key("1"))
	require.NoError(t, err)
	require.Equal(t, 3, n)
	n, err = broadcast(t.Context(), e, "news", "rain", workflow.Key("1"))
	require.NoError(t, err)
	require.Equal(t, 3, n, "the same key gets the same answer")
	e.Drain()
	require.Equal(t, `completed: "rain"`, outcome(t, e, a))
	require.Equal(t, `completed: "rain"`, outcome(t, e, b))
	require.EqualValues(t, 1, started.Load())
	n, err = broadcast(t.Context(), e, "news", "sun")
	require.NoError(t, err)
	require.Equal(t, 1, n)
}

func TestATokenServesOnce(t *testing.T) {
	tokens := make(chan string, 8)
	w, _ := function(t, "hook", func(ctx context.Context, _ int) (int, error) {
		token, err := step.Token(ctx, "token", "paid")
		if err != nil {
			return 0, err
		}
		unused, err := step.Token(ctx, "unused", "paid")
		if err != nil {
			return 0, err
		}
		_, err = step.Do(ctx, "tell", func(context.Context) (int, error) {
			tokens <- token
			tokens <- unused
			return 0, nil
		})
		if err != nil {
			return 0, err
		}
		return step.Await[int](ctx, "paid")
	})
	e := enginetest.New(t, w)
	id := start(t, e, w, 0)
	token, unused := <-tokens, <-tokens
	require.NotEqual(t, token, unused)
	require.ErrorIs(t, enginetest.Do(t.Context(), e, workflow.SendToken(strings.ToUpper(token), 5)), engine.ErrNotFound)
	require.ErrorIs(t, enginetest.Do(t.Context(), e, workflow.SendToken("garbage", 5)), engine.ErrNotFound)
	require.NoError(t, enginetest.Do(t.Context(), e, workflow.SendToken(token, 5)))
	require.ErrorIs(t, enginetest.Do(t.Context(), e, workflow.SendToken(token, 6)), engine.ErrNotFound)
	e.Drain()
	require.Equal(t, "completed: 5", outcome(t, e, id))
	require.ErrorIs(t, enginetest.Do(t.Context(), e, workflow.SendToken(unused, 5)), engine.ErrNotFound, "it ended with its job")
}

// A worker that was declared dead continues, and finishes late: nothing of it counts, and its successor decides.
func TestALateWorkerRecordsNothing(t *testing.T) {
	var did tally
	stuck, inside := make(chan struct{}), make(chan workitem.JobID, 4)
	w, _ := function(t, "zombie", func(ctx context.Context, _ int) (string, error) {
		work, _ := builder.WorkFrom(ctx)
		return step.Do(ctx, "call", func(context.Context) (string, error) {
			n := did.add("call")
			inside <- work.Job
			if n == 1 {
				<-stuck
			}
			return fmt.Sprintf("call %d", n), nil
		})
	})
	e := enginetest.New(t, w)
	id, err := w.Start(t.Context(), e, 0)
	require.NoError(t, err)
	job := <-inside
	require.NoError(t, enginetest.Do(t.Context(), e, workflow.Reclaim(job)))
	<-inside
	close(stuck)
	e.Drain()
	require.Equal(t, `completed: "call 2"`, outcome(t, e, id))
	steps := stepsOf(t, e, store.StepFilter{Case: id})
	require.Len(t, steps, 1)
	require.JSONEq(t, `"call 2"`, string(steps[0].Result))
}

func TestCancelSettlesEverythingAndLateResultsAreRefused(t *testing.T) {
	inside, over := make(chan struct{}, 1), make(chan error, 1)
	w, _ := function(t, "busy", func(ctx context.Context, _ int) (int, error) {
		wait := step.Go(ctx, func(ctx context.Context) (int, error) { return step.Await[int](ctx, "never") })
		work := step.Go(ctx, func(ctx context.Context) (int, error) {
			return step.Do(ctx, "work", func(ctx context.Context) (int, error) {
				inside <- struct{}{}
				<-ctx.Done() // promptly
				over <- ctx.Err()
				return 1, nil
			})
		})
		return 0, step.All(ctx, wait, work)
	})
	e := enginetest.New(t, w)
	id, err := w.Start(t.Context(), e, 0)
	require.NoError(t, err)
	<-inside
	require.NoError(t, enginetest.Do(t.Context(), e, workflow.Cancel(id, nil)))
	require.ErrorIs(t, <-over, context.Canceled)
	e.Drain()
	require.Equal(t, "canceled", outcome(t, e, id))
	for _, s := range stepsOf(t, e, store.StepFilter{Case: id}) {
		require.Equal(t, workitem.StepCanceled, s.State, s.Name)
	}
	require.ErrorIs(t, enginetest.Do(t.Context(), e, workflow.Cancel(id, nil)), engine.ErrInactive)
}

// The process dies while functions sleep, wait, and call: the next one continues.
func TestFunctionsSurviveTheirProcess(t *testing.T) {
	var did tally
	child, _ := function(t, "child", func(ctx context.Context, n int) (int, error) { return n + 1, step.Sleep(ctx, "nap", time.Hour) })
	w, _ := function(t, "parent", func(ctx context.Context, n int) ([]int, error) {
		a, err := step.Do(ctx, "a", func(context.Context) (int, error) { return did.add("a"), nil })
		if err != nil {
			return nil, err
		}
		b, err := step.Call[int](ctx, "b", "child", n)
		if err != nil {
			return nil, err
		}
		c, err := step.Await[int](ctx, "c", step.Timeout(24*time.Hour))
		if err != nil {
			return nil, err
		}
		return []int{a, b, c}, nil
	})
	e := enginetest.New(t, w, child)
	id := start(t, e, w, 10)
	e.Crash()
	e.Advance(time.Hour)
	e.Crash()
	require.Equal(t, []string{"waiting 0"}, jobs(t, e, id))
	e.Advance(23 * time.Hour)
	require.NoError(t, enginetest.Do(t.Context(), e, workflow.Send(id, "c", 7)))
	e.Crash()
	e.Drain()
	require.Equal(t, "completed: [1,11,7]", outcome(t, e, id))
}

// The first deadline of a wait holds over restarts, and exactly one of event and deadline decides.
func TestADeadlineSurvivesRestarts(t *testing.T) {
	w, _ := function(t, "deadline", func(ctx context.Context, _ int) (string, error) {
		got, err := step.Await[string](ctx, "e", step.Timeout(time.Hour))
		if errors.Is(err, step.ErrTimeout) {
			return "timeout", step.Sleep(ctx, "then", time.Minute)
		}
		return got, err
	})
	e := enginetest.New(t, w)
	id := start(t, e, w, 0)
	e.Advance(59 * time.Minute)
	e.Crash()
	e.Drain()
	require.Equal(t, "started", outcome(t, e, id))
	e.Advance(time.Minute)
	require.NoError(t, enginetest.Do(t.Context(), e, workflow.Send(id, "e", "late")), "it is kept for who asks next, and decides nothing any more")
	e.Advance(time.Minute)
	require.Equal(t, `completed: "timeout"`, outcome(t, e, id))
}

func TestTimesFarAway(t *testing.T) {
	w, _ := function(t, "century", func(ctx context.Context, years int) (string, error) {
		return "awake", step.SleepUntil(ctx, "nap", time.Date(2030+years, 1, 1, 0, 0, 0, 0, time.UTC))
	})
	e := enginetest.New(t, w)
	id := start(t, e, w, 100)
	due, ok := e.NextDue()
	require.True(t, ok)
	require.Equal(t, time.Date(2130, 1, 1, 0, 0, 0, 0, time.UTC), due)
	now := start(t, e, w, -10)
	require.Equal(t, `completed: "awake"`, outcome(t, e, now), "a time that is past is no wait")
	require.Equal(t, "started", outcome(t, e, id))
	require.NoError(t, enginetest.Do(t.Context(), e, workflow.Cancel(id, nil)))
}
