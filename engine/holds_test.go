package engine_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/limit"
	"github.com/tasq-dev/tasq/net/verify"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/step"
	"github.com/tasq-dev/tasq/store/sqlite"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// events notes what happens, in order.
type events struct {
	mu   sync.Mutex
	list []string
	at   []time.Time
}

func (e *events) add(format string, args ...any) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.list, e.at = append(e.list, fmt.Sprintf(format, args...)), append(e.at, time.Now())
}

func (e *events) all() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.list)
}

// ships is a workflow whose cases hold a crane while they are loaded and leave.
func ships(t *testing.T, seen *events, crane builder.Need) *builder.Workflow[int] {
	t.Helper()
	b := builder.New[int]("ships")
	does := func(name string) func(context.Context, int) (int, error) {
		return func(_ context.Context, n int) (int, error) {
			seen.add("%s %d", name, n)
			<-time.After(time.Minute)
			return n, nil
		}
	}
	load := builder.Task(b, "load", builder.Work[int, int]{Input: builder.CaseInput(b), Run: does("load")})
	leave := builder.Task(b, "leave", builder.Work[int, int]{Input: builder.Output(load), Run: does("leave")})
	rest := builder.Task(b, "rest", builder.Work[int, int]{Input: builder.Output(leave), Run: does("rest")})
	b.Path(b.Start(), load, leave, rest, b.End())
	b.Hold(crane, load, leave)
	w, err := b.Build()
	require.NoError(t, err)
	return w
}

func startShips(t *testing.T, e *engine.Engine, w *builder.Workflow[int], n int) (ids []workitem.CaseID) {
	t.Helper()
	for i := range n {
		id, err := w.Start(t.Context(), e, i)
		require.NoError(t, err)
		ids = append(ids, id)
	}
	return ids
}

func completed(t *testing.T, e *engine.Engine, ids []workitem.CaseID) {
	t.Helper()
	for _, id := range ids {
		c, err := e.Wait(t.Context(), id)
		require.NoError(t, err)
		require.Equal(t, "completed", c.State.String())
	}
}

// The case keeps the slot between the two tasks, so the second ship is loaded when the first has left, and not when it is loaded.
func TestACaseHoldsASlotOverTwoTasks(t *testing.T) {
	var seen events
	w := ships(t, &seen, builder.Takes(limit.Resource("crane", 1), 1))
	inBubble(t, engine.Config{}, func(t *testing.T, e *engine.Engine) {
		begin := time.Now()
		ids := startShips(t, e, w, 3)
		<-time.After(90 * time.Second)
		answer, err := e.Why(t.Context(), ids[1])
		require.NoError(t, err)
		require.Contains(t, answer.String(), "waits for 1 of slots crane, not enough are free, held by case "+ids[0].String())
		completed(t, e, ids)
		require.Equal(t, []string{"load 0", "leave 0", "load 1", "rest 0", "leave 1", "load 2", "rest 1", "leave 2", "rest 2"}, inPairs(seen.all()))
		require.Equal(t, 7*time.Minute, time.Since(begin).Round(time.Minute))
	}, w)
}

// inPairs sorts what happened in the same minute: with three ships, the load of one and the rest of the other.
func inPairs(list []string) []string {
	for i := 2; i+1 < len(list); i += 3 {
		if strings.HasPrefix(list[i], "rest") {
			list[i], list[i+1] = list[i+1], list[i]
		}
	}
	return list
}

// What a case holds outlives the engine, however that ends, and so does the end of a hold.
func TestAHoldOutlivesTheEngine(t *testing.T) {
	for _, kill := range []bool{false, true} {
		t.Run(fmt.Sprintf("kill=%t", kill), func(t *testing.T) {
			var seen events
			w := ships(t, &seen, builder.Takes(limit.Resource("crane", 1), 1))
			synctest.Test(t, func(t *testing.T) {
				var ids []workitem.CaseID
				oneAfterTheOther(t, kill, 5, 80*time.Second, w, func(e *engine.Engine) {
					ids = startShips(t, e, w, 3)
				}, func(e *engine.Engine) { completed(t, e, ids) })
				holder, list := -1, seen.all() // who was loaded and has not left
				for i, what := range list {
					var n int
					if _, err := fmt.Sscanf(what, "load %d", &n); err != nil {
						continue
					}
					if holder >= 0 && n != holder { // which of the two is first when a ship has left is open
						rest := slices.Index(list, fmt.Sprint("rest ", holder))
						require.GreaterOrEqual(t, rest, 0, "%v", list)
						require.Less(t, seen.at[rest].Sub(seen.at[i]), time.Second, "%s begins before the other ship has left: %v", what, list)
					}
					holder = n
				}
			})
		})
	}
}

// A lane: the runs of a key are done one by one and in their order, though the first one fails, waits an hour and sleeps.
func TestARunKeepsItsPlaceInALane(t *testing.T) {
	var seen events
	tries := 0
	pay := builder.MustFunc("pay", func(ctx context.Context, p payment) (int, error) {
		seen.add("%s %d", p.Account, p.N)
		if p.Account == "ada" && p.N == 0 {
			if tries++; tries < 3 {
				return 0, errors.New("the bank is closed")
			}
			if err := step.Sleep(ctx, "settles", 5*time.Hour); err != nil {
				return 0, err
			}
			seen.add("ada slept")
		}
		return p.N, nil
	}, builder.Holds(builder.TakesBy(limit.Resource("account", 1), 1, func(p payment) string { return p.Account })),
		builder.Retry(func(p *retry.Policy) { *p = retry.Exponential(5, time.Hour) }))
	inBubble(t, engine.Config{}, func(t *testing.T, e *engine.Engine) {
		runs := startAll(t, e, pay, payment{"ada", 0}, payment{"ada", 1}, payment{"bob", 0}, payment{"ada", 2}, payment{"bob", 1})
		<-time.After(time.Minute)
		require.ElementsMatch(t, []string{"ada 0", "bob 0", "bob 1"}, seen.all())
		answer, err := e.Why(t.Context(), runs[1].ID)
		require.NoError(t, err)
		require.Contains(t, answer.String(), "(of ada)")
		endAll(t, e, runs)
		var ada []string
		for _, what := range seen.all() {
			if strings.HasPrefix(what, "ada") {
				ada = append(ada, what)
			}
		}
		require.Equal(t, []string{"ada 0", "ada 0", "ada 0", "ada 0", "ada slept", "ada 1", "ada 2"}, ada)
	}, pay)
}

// After a restart the first run of a lane, which waits for its next attempt, is not behind those that wait for its lane.
func TestARunKeepsItsPlaceInALaneOverARestart(t *testing.T) {
	for _, kill := range []bool{false, true} {
		var seen events
		failed := false
		pay := builder.MustFunc("pay", func(_ context.Context, p payment) (int, error) {
			seen.add("%s %d", p.Account, p.N)
			if p.N == 0 && !failed {
				failed = true
				return 0, errors.New("the bank is closed")
			}
			return p.N, nil
		}, builder.Holds(builder.TakesBy(limit.Resource("account", 1), 1, func(p payment) string { return p.Account })),
			builder.Retry(func(p *retry.Policy) { *p = retry.Exponential(5, time.Hour) }))
		synctest.Test(t, func(t *testing.T) {
			var runs []builder.Run[int]
			oneAfterTheOther(t, kill, 2, time.Minute, pay, func(e *engine.Engine) {
				runs = startAll(t, e, pay, payment{"ada", 0}, payment{"ada", 1}, payment{"ada", 2})
			}, func(e *engine.Engine) { endAll(t, e, runs) })
			require.Equal(t, []string{"ada 0", "ada 0", "ada 1", "ada 2"}, seen.all())
		})
	}
}

type payment struct {
	Account string
	N       int
}

// A case that ends gives back what it holds, whatever it ended by.
func TestACaseThatEndsHoldsNothing(t *testing.T) {
	var seen events
	w := ships(t, &seen, builder.Takes(limit.Resource("crane", 1), 1))
	inBubble(t, engine.Config{}, func(t *testing.T, e *engine.Engine) {
		ids := startShips(t, e, w, 3)
		<-time.After(90 * time.Second)
		_, err := e.Do(t.Context(), workflow.Cancel(ids[0], nil))
		require.NoError(t, err)
		<-time.After(time.Second)
		require.Equal(t, []string{"load 0", "leave 0", "load 1"}, seen.all())
		_, err = e.Do(t.Context(), workflow.Cancel(ids[1], nil)) // while it is loaded
		require.NoError(t, err)
		completed(t, e, ids[2:])
	}, w)
}

// A run that is canceled while it waits for a worker enters the line of its lane when one is free. It does not keep the lane.
func TestACanceledRunDoesNotHoldItsLane(t *testing.T) {
	pay := builder.MustFunc("pay", func(_ context.Context, p payment) (int, error) {
		<-time.After(time.Duration(p.N) * time.Millisecond)
		return p.N, nil
	}, builder.Holds(builder.TakesBy(limit.Resource("account", 1), 1, func(p payment) string { return p.Account })))
	inBubble(t, engine.Config{Workers: 2}, func(t *testing.T, e *engine.Engine) {
		startAll(t, e, pay, payment{"ada", 100}, payment{"bob", 50})
		<-time.After(10 * time.Millisecond)
		runs := startAll(t, e, pay, payment{"ada", 1}, payment{"ada", 2}) // they wait for a worker, and then for ada 100
		_, err := e.Do(t.Context(), workflow.Cancel(runs[0].ID, nil))
		require.NoError(t, err)
		<-time.After(time.Hour)
		status, err := runs[1].Status(t.Context(), e)
		require.NoError(t, err)
		require.Equal(t, workflow.RunCompleted, status.State)
		r, err := e.Do(t.Context(), workflow.Limits())
		require.NoError(t, err)
		require.Zero(t, r.Limits[0].Used)
	}, pay)
}

// The first run of a lane that is suspended before it begins leaves the lane to the others; one that has begun keeps it.
func TestASuspendedRunTakesNoLane(t *testing.T) {
	tries := 0
	pay := builder.MustFunc("pay", func(_ context.Context, p payment) (int, error) {
		if tries++; p.N == 9 && tries == 1 {
			return 0, errors.New("the bank is closed")
		}
		return p.N, nil
	}, builder.Holds(builder.TakesBy(limit.Resource("account", 1), 1, func(p payment) string { return p.Account })),
		builder.Retry(func(p *retry.Policy) { *p = retry.Exponential(5, time.Minute) }))
	inBubble(t, engine.Config{}, func(t *testing.T, e *engine.Engine) {
		do := func(c workflow.Command) {
			_, err := e.Do(t.Context(), c)
			require.NoError(t, err)
		}
		states := func(runs []builder.Run[int]) (list []workflow.RunState) {
			<-time.After(time.Hour)
			for _, r := range runs {
				s, err := r.Status(t.Context(), e)
				require.NoError(t, err)
				list = append(list, s.State)
			}
			return list
		}
		begun := startAll(t, e, pay, payment{"ada", 9}, payment{"ada", 1})
		<-time.After(time.Second)
		do(workflow.Suspend(begun[0].ID))
		require.Equal(t, []workflow.RunState{workflow.RunSuspended, workflow.RunPending}, states(begun))
		do(workflow.Resume(begun[0].ID, nil))
		require.Equal(t, []workflow.RunState{workflow.RunCompleted, workflow.RunCompleted}, states(begun))

		do(workflow.SetLimit("account", 0))
		waiting := startAll(t, e, pay, payment{"ada", 2}, payment{"ada", 3}, payment{"ada", 4})
		do(workflow.Suspend(waiting[0].ID))
		do(workflow.SetLimit("account", 1))
		require.Equal(t, []workflow.RunState{workflow.RunSuspended, workflow.RunCompleted, workflow.RunCompleted}, states(waiting))
		do(workflow.Resume(waiting[0].ID, nil))
		require.Equal(t, workflow.RunCompleted, states(waiting)[0])
		r, err := e.Do(t.Context(), workflow.Limits())
		require.NoError(t, err)
		require.Zero(t, r.Limits[0].Used)
	}, pay)
}

// A limit that is raised at run time admits more.
func TestTheSlotsThatCasesHoldAreChanged(t *testing.T) {
	var seen events
	w := ships(t, &seen, builder.Takes(limit.Resource("crane", 1), 1))
	inBubble(t, engine.Config{}, func(t *testing.T, e *engine.Engine) {
		ids := startShips(t, e, w, 3)
		<-time.After(time.Second)
		require.Equal(t, []string{"load 0"}, seen.all())
		_, err := e.Do(t.Context(), workflow.SetLimit("crane", 2))
		require.NoError(t, err)
		<-time.After(time.Second)
		require.Equal(t, []string{"load 0", "load 1"}, seen.all())
		answer, err := e.Why(t.Context(), ids[2])
		require.NoError(t, err)
		require.Contains(t, answer.String(), fmt.Sprintf("held by cases %s, %s", ids[0], ids[1]))
		completed(t, e, ids)
	}, w)
}

// Two workflows that take the same two limits in opposite orders are refused as an engine is opened with both, with the run.
func TestWorkflowsThatCanDeadlockAreNotOpenedTogether(t *testing.T) {
	both := func(name string, first, second limit.Limit, opts ...builder.Option) *builder.Workflow[int] {
		b := builder.New[int](name, opts...)
		run := func(_ context.Context, n int) (int, error) { return n, nil }
		one := builder.Task(b, "one", builder.Work[int, int]{Input: builder.CaseInput(b), Run: run})
		two := builder.Task(b, "two", builder.Work[int, int]{Input: builder.CaseInput(b), Run: run})
		three := builder.Task(b, "three", builder.Work[int, int]{Input: builder.CaseInput(b), Run: run})
		b.Path(b.Start(), one, two, three, b.End())
		b.Hold(builder.Takes(first, 1), one, three)
		b.Hold(builder.Takes(second, 1), two, three)
		w, err := b.Build()
		require.NoError(t, err)
		return w
	}
	crane, dock := limit.Resource("crane", 1), limit.Resource("dock", 1)
	in, out := both("in", crane, dock), both("out", dock, crane)
	_, err := engine.Open(t.Context(), sqlite.Memory(), in, out)
	require.ErrorIs(t, err, workflow.ErrHoldDeadlock)
	require.Equal(t, "hold-deadlock", engine.Code(err))
	require.ErrorContains(t, err, "case 1 of in holds 1 of crane (since one) and waits for 1 of dock (at two); "+
		"case 2 of out holds 1 of dock (since one) and waits for 1 of crane (at two)")
	require.ErrorContains(t, err, "run: case 1: one; case 2: one")

	same := both("same", crane, dock)
	e, err := quietConfig().Open(t.Context(), sqlite.Memory(), in, same, both("out", dock, crane, builder.AllowUnsound(verify.HoldDeadlock)))
	require.NoError(t, err)
	require.NoError(t, e.Close())
}

func quietConfig() engine.Config { return engine.Config{Logger: slog.New(slog.DiscardHandler)} }
