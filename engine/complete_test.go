package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// note is the value that the start of a run gives to its handlers.
type note struct {
	For string `json:"for" validate:"required"`
}

// told collects the outcomes that handlers received.
type told struct {
	mu    sync.Mutex
	lines []string
	fail  atomic.Int32 // how many calls fail from now on
}

func (o *told) add(what string, ended builder.Ended[receipt], n note) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	line := fmt.Sprintf("%s %s %s %s", what, n.For, ended.State, ended.Value.Number)
	if ended.Failure != nil {
		line += " " + ended.Failure.Code
	}
	o.lines = append(o.lines, strings.Join(strings.Fields(line), " "))
	if o.fail.Add(-1) >= 0 {
		return errors.New("the handler is ill")
	}
	return nil
}

func (o *told) all() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]string(nil), o.lines...)
}

func (o *told) clear() { o.lines = nil }

// telling is an action with two handlers, one called in the transaction, and one called by a job. The first one
// also writes a row.
type telling struct {
	*charging
	*told
	now   *builder.HandlerRef[note]
	later *builder.LaterRef[note]
}

func newTelling(t testing.TB, opts ...builder.FuncOption) *telling {
	t.Helper()
	x := &telling{told: new(told)}
	x.now = builder.Handler("now", func(ctx context.Context, c *builder.Completion[receipt], n note) error {
		if s, err := c.Run().Status(ctx, c); err != nil || s.State != c.State {
			return fmt.Errorf("the status is %s, %w", s.State, err)
		}
		if _, err := c.DB().ExecContext(ctx, "INSERT INTO told SELECT $1, $2, count(*) FROM told", c.Case.ID.String(), n.For); err != nil {
			return err
		}
		return x.add("now", c.Ended, n)
	})
	x.later = builder.LaterHandler("later", func(ctx context.Context, e builder.Ended[receipt], n note) error {
		if w, ok := builder.WorkFrom(ctx); !ok || w.Name != "later" {
			return errors.New("it does not know its job")
		}
		return x.add("later", e, n)
	}, builder.JobOptions{Retry: retry.Constant(3, time.Minute)})
	x.charging = newCharging(t, append(opts, builder.Handles(x.now, x.later))...)
	require.NoError(t, x.e.Update(t.Context(), func(tx *engine.Tx) error {
		_, err := tx.DB().ExecContext(t.Context(), "CREATE TABLE told (id TEXT, who TEXT, n INTEGER)")
		return err
	}))
	return x
}

// rows lists the calls of handlers in the user's table.
func (x *telling) rows(t testing.TB) (list []string) {
	t.Helper()
	require.NoError(t, x.e.View(t.Context(), func(r store.Reader) error {
		rows, err := r.DB().QueryContext(t.Context(), "SELECT who FROM told ORDER BY n")
		require.NoError(t, err)
		for rows.Next() {
			var who string
			require.NoError(t, rows.Scan(&who))
			list = append(list, who)
		}
		return rows.Err()
	}))
	return list
}

func (x *telling) run(t testing.TB, id string, opts ...workflow.Option) builder.Run[receipt] {
	t.Helper()
	run, err := x.Run(t.Context(), x.e, order{ID: id}, opts...)
	require.NoError(t, err)
	return run
}

func (x *telling) jobs(t testing.TB, f store.JobFilter) (list []string) {
	t.Helper()
	for j, err := range store.AllJobs(t.Context(), x.e, f) {
		require.NoError(t, err)
		if j.Kind != state.JobRun {
			list = append(list, fmt.Sprintf("%s %s %s %d", j.Kind, j.Name, j.State, j.Attempt))
		}
	}
	return list
}

// Case 6: a handler is called once for success, failure and cancellation, and not for a failure with a further attempt.
// Case 8: the status that it sees is the final one.
func TestCompletionHandlersAreCalledOnce(t *testing.T) {
	x := newTelling(t)
	both := func(who string) []workflow.Option {
		return []workflow.Option{builder.OnComplete(x.now, note{who}), builder.OnCompleteLater(x.later, note{who})}
	}
	x.run(t, "1", both("ann")...)
	x.e.Advance(time.Hour)
	require.Equal(t, []string{"now ann completed R-1", "later ann completed R-1"}, x.all())

	x.clear()
	x.fails.Store(2)
	x.run(t, "2", both("bob")...)
	x.e.Advance(time.Hour)
	require.Equal(t, []string{"now bob completed R-2", "later bob completed R-2"}, x.all(), "two failures went before")

	x.clear()
	x.fails.Store(100)
	x.run(t, "3", both("cid")...)
	x.e.Advance(time.Hour)
	require.Equal(t, []string{"now cid failed error", "later cid failed error"}, x.all())

	x.clear()
	x.fails.Store(0)
	run := x.run(t, "4", append(both("dan"), workflow.After(time.Hour))...)
	done, err := run.Cancel(t.Context(), x.e, workitem.Failf("changed", "her mind"))
	require.NoError(t, err)
	require.True(t, done)
	done, err = run.Cancel(t.Context(), x.e, nil)
	require.NoError(t, err)
	require.False(t, done)
	x.e.Advance(2 * time.Hour)
	require.Equal(t, []string{"now dan canceled changed", "later dan canceled changed"}, x.all())
	require.Equal(t, []string{"ann", "bob", "cid", "dan"}, x.rows(t))
}

// Case 26: a handler is called for the outcomes that it selects; a state that is none is refused before anything is
// written.
func TestHandlersChooseOutcomes(t *testing.T) {
	x := newTelling(t)
	run := func(fails int32, outcomes ...workflow.RunState) []string {
		x.clear()
		x.fails.Store(fails)
		x.run(t, "1", builder.OnComplete(x.now, note{"x"}, builder.Only(outcomes...)))
		x.e.Advance(time.Hour)
		return x.all()
	}
	require.Empty(t, run(100, workflow.RunCompleted))
	require.Len(t, run(100, workflow.RunFailed), 1)
	require.Len(t, run(0, workflow.RunFailed, workflow.RunCompleted), 1)
	require.Len(t, run(0), 1, "all of them")
	before := x.count()
	for name, opt := range map[string]workflow.Option{
		"an outcome that is none":        builder.OnComplete(x.now, note{"x"}, builder.Only(workflow.RunWaiting)),
		"a value that breaks its rules":  builder.OnComplete(x.now, note{}),
		"a value for later that does":    builder.OnCompleteLater(x.later, note{}),
		"a handler of another workflow":  builder.OnComplete(builder.Handler("else", func(context.Context, *builder.Completion[receipt], note) error { return nil }), note{"x"}),
		"a handler that is not declared": builder.OnComplete((*builder.HandlerRef[note])(nil), note{"x"}),
		"one that cannot be written":     builder.OnComplete(builder.Handler("odd", func(context.Context, *builder.Completion[receipt], any) error { return nil }), any(func() {})),
	} {
		_, err := x.Run(t.Context(), x.e, order{}, opt)
		require.Error(t, err, name)
	}
	x.e.Drain()
	require.Equal(t, before, x.count())
	for c, err := range store.AllCases(t.Context(), x.e, store.CaseFilter{States: []state.CaseState{state.CaseStarted}}) {
		require.NoError(t, err)
		require.Fail(t, "nothing may be stored", "%s", c.ID)
	}
}

func (x *telling) count() int { return x.calls.count() }

// Case 8: a handler may clean up its own run, and start another, in the transaction in which the run ends.
func TestAHandlerCleansUpAndStartsAnother(t *testing.T) {
	var next *builder.FuncRef[int, int]
	var statuses []error
	h := builder.Handler("h", func(ctx context.Context, c *builder.Completion[int], left int) error {
		if err := c.Run().Cleanup(ctx, c); err != nil {
			return err
		}
		_, err := c.Run().Status(ctx, c)
		statuses = append(statuses, err)
		if left == 0 {
			return nil
		}
		_, err = next.Run(ctx, c, c.Value+1)
		return err
	})
	var ran []int
	next = builder.MustFunc("next", func(_ context.Context, n int) (int, error) { ran = append(ran, n); return n, nil })
	a := builder.MustFunc("a", func(_ context.Context, n int) (int, error) { return n, nil }, builder.Handles(h))
	e := enginetest.New(t, a, next)
	run, err := a.Run(t.Context(), e, 7, builder.OnComplete(h, 1), workflow.Key("k"))
	require.NoError(t, err)
	e.Drain()
	require.Equal(t, []int{8}, ran)
	require.Len(t, statuses, 1)
	require.ErrorIs(t, statuses[0], engine.ErrNotFound)
	_, err = run.Status(t.Context(), e)
	require.ErrorIs(t, err, engine.ErrNotFound)
	for c, err := range store.AllCases(t.Context(), e, store.CaseFilter{}) {
		require.NoError(t, err)
		require.Equal(t, "next", c.Workflow)
		require.NoError(t, enginetest.Do(t.Context(), e, workflow.Remove(c.ID)))
	}
	nothingLeft(t, e)

	// A caller that waits for the end of a case gets its result although the case is removed at once.
	gate := make(chan struct{})
	slow := builder.MustFunc("slow", func(_ context.Context, n int) (int, error) { <-gate; return n, nil }, builder.Handles(h))
	e = enginetest.New(t, slow, next)
	waiting, err := slow.Run(t.Context(), e, 7, builder.OnComplete(h, 0))
	require.NoError(t, err)
	ctx := &asked{Context: t.Context(), done: func() { close(gate) }} // once the wait has begun
	n, err := waiting.Result(ctx, e)
	require.NoError(t, err)
	require.Equal(t, 7, n)
}

// The handlers of a workflow are called, too: here for a person's work that is judged, failed and canceled.
func TestCompletionHandlersOfWorkflows(t *testing.T) {
	var lines []string
	h := builder.Handler("h", func(_ context.Context, c *builder.Completion[json.RawMessage], who string) error {
		lines = append(lines, fmt.Sprintf("%s %s %s", who, c.State, c.Value))
		return nil
	})
	b := builder.New[string]("review", builder.Handles(h))
	task := builder.Task(b, "t", builder.Work[string, int]{Input: builder.CaseInput(b)})
	b.Path(b.Start(), task, b.End())
	b.Result(builder.Output(task))
	w := b.MustBuild()
	e := enginetest.New(t, w)
	for _, who := range []string{"ann", "bob", "cid"} {
		id, err := w.Start(t.Context(), e, "x", builder.OnComplete(h, who))
		require.NoError(t, err)
		item := live(t, e, id, "t").ID
		require.NoError(t, task.Start(t.Context(), e, item))
		switch who {
		case "ann":
			require.NoError(t, task.Complete(t.Context(), e, item, 5))
		case "bob":
			require.NoError(t, task.Fail(t.Context(), e, item, nil))
		case "cid":
			require.NoError(t, enginetest.Do(t.Context(), e, workflow.Cancel(id, nil)))
		}
	}
	require.Equal(t, []string{"ann completed 5", "bob failed ", "cid canceled "}, lines)
}

// A case that ends within a transaction of the user calls its handlers there, and is rolled back with it.
func TestHandlersInATransactionOfTheUsers(t *testing.T) {
	x := newTelling(t)
	run := x.run(t, "1", builder.OnComplete(x.now, note{"ann"}), workflow.After(time.Hour))
	undo := errors.New("undo")
	err := x.e.Update(t.Context(), func(tx *engine.Tx) error {
		done, err := run.Cancel(t.Context(), tx, nil)
		require.NoError(t, err)
		require.True(t, done)
		return undo
	})
	require.ErrorIs(t, err, undo)
	require.Empty(t, x.rows(t))
	require.Equal(t, workflow.RunScheduled, x.status(t, run).State)
	x.told.fail.Store(1)
	require.NoError(t, x.e.Update(t.Context(), func(tx *engine.Tx) error {
		_, err := run.Cancel(t.Context(), tx, nil)
		require.NoError(t, err)
		s, err := run.Status(t.Context(), tx)
		require.Equal(t, workflow.RunCanceled, s.State)
		return err
	}))
	require.Empty(t, x.rows(t))
	x.e.Advance(time.Minute)
	require.Equal(t, []string{"ann"}, x.rows(t))
}
