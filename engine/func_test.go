package engine_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/domain"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/sqlite"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

type order struct {
	ID     string `json:"id"`
	Amount int    `json:"amount" validate:"gte=0"`
}

type receipt struct {
	Number string `json:"number" validate:"required"`
}

// calls counts the calls of an action's function, and when they were.
type calls struct {
	mu  sync.Mutex
	at  []time.Time
	now func() time.Time
}

func (c *calls) add() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = append(c.at, c.now())
	return len(c.at)
}

func (c *calls) waits() []time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	var waits []time.Duration
	for i := 1; i < len(c.at); i++ {
		waits = append(waits, c.at[i].Sub(c.at[i-1]))
	}
	return waits
}

func (c *calls) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.at)
}

// charging is a function with a given number of failures.
type charging struct {
	*builder.FuncRef[order, receipt]
	e     *enginetest.Engine
	calls *calls
	fails atomic.Int32
}

func newCharging(t testing.TB, opts ...builder.FuncOption) *charging {
	t.Helper()
	c := &charging{calls: &calls{}}
	c.FuncRef = builder.MustFunc("charge", func(_ context.Context, o order) (receipt, error) {
		n := c.calls.add()
		if c.fails.Add(-1) >= 0 {
			return receipt{}, fmt.Errorf("attempt %d: the bank is closed", n)
		}
		return receipt{Number: "R-" + o.ID}, nil
	}, opts...)
	c.e = enginetest.New(t, c)
	c.calls.now = func() time.Time { return c.e.Now() }
	return c
}

func (c *charging) status(t testing.TB, run builder.Run[receipt]) builder.Status[receipt] {
	t.Helper()
	s, err := run.Status(t.Context(), c.e)
	require.NoError(t, err)
	return s
}

// Case 1: an action that succeeds at once is called once, and its status and result say so.
func TestFunctionSucceedsTheFirstTime(t *testing.T) {
	c := newCharging(t)
	run, err := c.Run(t.Context(), c.e, order{ID: "7"})
	require.NoError(t, err)
	c.e.Drain()
	s := c.status(t, run)
	require.Equal(t, workflow.RunCompleted, s.State)
	require.Equal(t, receipt{Number: "R-7"}, s.Value)
	require.Equal(t, 1, s.Attempt)
	require.Nil(t, s.Failure)
	require.Equal(t, 1, c.calls.count())
	got, err := run.Result(t.Context(), c.e)
	require.NoError(t, err)
	require.Equal(t, receipt{Number: "R-7"}, got)
	again, err := c.Of(run.ID).Result(t.Context(), c.e)
	require.NoError(t, err)
	require.Equal(t, got, again, "a handle is made of the id")
}

// Case 2: attempts are counted in all, and the last failure is the run's. No attempts at all is an error.
func TestFunctionThatAlwaysFails(t *testing.T) {
	for attempts, want := range map[int]int{1: 1, 2: 2, 4: 4} {
		t.Run(fmt.Sprint(attempts), func(t *testing.T) {
			c := newCharging(t, builder.Retry(func(p *retry.Policy) { p.Attempts = attempts }))
			c.fails.Store(100)
			run, err := c.Run(t.Context(), c.e, order{})
			require.NoError(t, err)
			c.e.Advance(time.Hour)
			require.Equal(t, want, c.calls.count())
			s := c.status(t, run)
			require.Equal(t, workflow.RunFailed, s.State)
			require.Equal(t, want, s.Attempt)
			require.Equal(t, fmt.Sprintf("attempt %d: the bank is closed", want), s.Failure.Message)
			_, err = run.Result(t.Context(), c.e)
			var failure *workitem.Failure
			require.ErrorAs(t, err, &failure)
			require.Equal(t, s.Failure, failure)
			require.ErrorContains(t, err, "of charge failed")
		})
	}
}

// Case 3: by default four attempts with 250 ms, 500 ms and 1 s in between, exactly; with jitter, as chance has it.
func TestFunctionWaitsAsItsTableSays(t *testing.T) {
	c := newCharging(t)
	c.fails.Store(100)
	_, err := c.Run(t.Context(), c.e, order{})
	require.NoError(t, err)
	c.e.Advance(time.Minute)
	require.Equal(t, []time.Duration{250 * time.Millisecond, 500 * time.Millisecond, time.Second}, c.calls.waits())

	chance := []float64{0, 0.5, 0.75}
	c = newCharging(t, builder.Retry(func(p *retry.Policy) {
		p.Jitter, p.Spread = retry.JitterProportional, 0.5
		p.Rand = func() (x float64) { x, chance = chance[0], chance[1:]; return x }
	}))
	c.fails.Store(100)
	_, err = c.Run(t.Context(), c.e, order{})
	require.NoError(t, err)
	c.e.Advance(time.Minute)
	require.Equal(t, []time.Duration{125 * time.Millisecond, 500 * time.Millisecond, 1250 * time.Millisecond}, c.calls.waits())
}

// Case 4: an option of a run overrides the fields that it gives, and no others: these are the action's.
func TestARunOverridesFieldByField(t *testing.T) {
	c := newCharging(t, builder.Retry(func(p *retry.Policy) { p.Attempts, p.Initial, p.Base = 3, time.Second, 5 }))
	for name, q := range map[string]struct {
		change func(*retry.Policy)
		want   []time.Duration
	}{
		"nothing":  {func(*retry.Policy) {}, []time.Duration{time.Second, 5 * time.Second}},
		"attempts": {func(p *retry.Policy) { p.Attempts = 2 }, []time.Duration{time.Second}},
		"base":     {func(p *retry.Policy) { p.Base = 3 }, []time.Duration{time.Second, 3 * time.Second}},
		"initial":  {func(p *retry.Policy) { p.Initial = 0 }, []time.Duration{0, 0}},
		"all": {func(p *retry.Policy) { p.Attempts, p.Initial, p.Base, p.MaxWait = 4, 2*time.Second, 10, 5*time.Second },
			[]time.Duration{2 * time.Second, 5 * time.Second, 5 * time.Second}},
	} {
		t.Run(name, func(t *testing.T) {
			c.calls.at = nil
			c.fails.Store(100)
			_, err := c.Run(t.Context(), c.e, order{}, builder.Retry(q.change))
			require.NoError(t, err)
			c.e.Advance(time.Hour)
			require.Equal(t, q.want, c.calls.waits())
		})
	}
	for name, change := range map[string]func(*retry.Policy){
		"no attempts":       func(p *retry.Policy) { p.Attempts = 0 },
		"negative attempts": func(p *retry.Policy) { p.Attempts = -1 },
		"small base":        func(p *retry.Policy) { p.Base = 0.5 },
		"negative wait":     func(p *retry.Policy) { p.Initial = -time.Second },
		"a function":        func(p *retry.Policy) { p.Filters = append(p.Filters, retry.On(context.Canceled)) },
	} {
		_, err := c.Run(t.Context(), c.e, order{}, builder.Retry(change))
		require.ErrorIs(t, err, retry.ErrInvalid, name)
	}
}

// A whole policy replaces that of the function, or of one run.
func TestAPolicyReplacesThatOfAFunctionOrARun(t *testing.T) {
	c := newCharging(t, builder.RetryPolicy(retry.Constant(3, time.Minute)))
	for _, q := range []struct {
		opts []workflow.Option
		want []time.Duration
	}{
		{nil, []time.Duration{time.Minute, time.Minute}},
		{[]workflow.Option{builder.RetryPolicy(retry.Exponential(4, time.Second))}, []time.Duration{time.Second, 2 * time.Second, 4 * time.Second}},
	} {
		c.calls.at = nil
		c.fails.Store(100)
		_, err := c.Run(t.Context(), c.e, order{}, q.opts...)
		require.NoError(t, err)
		c.e.Advance(time.Hour)
		require.Equal(t, q.want, c.calls.waits())
	}
	_, err := c.Run(t.Context(), c.e, order{}, builder.RetryPolicy(retry.Policy{}))
	require.ErrorIs(t, err, retry.ErrInvalid)
}

// A change of the policy for one run is the run's own: it outlives the process, and a filter of the action still
// counts.
func TestARunsOwnPolicySurvivesACrash(t *testing.T) {
	closed := errors.New("closed")
	tried := &calls{}
	a := builder.MustFunc("charge", func(context.Context, order) (receipt, error) {
		if tried.add() == 3 {
			return receipt{}, workitem.Failf("no-funds", "the account is empty")
		}
		return receipt{}, closed
	}, builder.Retry(func(p *retry.Policy) {
		p.Filters = []retry.Filter{retry.On(closed)}
	}))
	e := enginetest.New(t, a)
	tried.now = func() time.Time { return e.Now() }
	run, err := a.Run(t.Context(), e, order{}, builder.Retry(func(p *retry.Policy) { p.Attempts, p.Base = 9, 4 }))
	require.NoError(t, err)
	e.Drain()
	e.Crash()
	e.Advance(time.Hour)
	require.Equal(t, []time.Duration{250 * time.Millisecond, time.Second}, tried.waits())
	_, err = run.Result(t.Context(), e)
	var failure *workitem.Failure
	require.ErrorAs(t, err, &failure)
	require.Equal(t, "no-funds", failure.Code)
}

// Case 5: nothing is called before its time, and a run that is canceled before is never called.
func TestARunForLater(t *testing.T) {
	c := newCharging(t)
	start := c.e.Now()
	after, err := c.Run(t.Context(), c.e, order{ID: "a"}, workflow.After(time.Hour))
	require.NoError(t, err)
	at, err := c.Run(t.Context(), c.e, order{ID: "b"}, workflow.At(start.Add(2*time.Hour)))
	require.NoError(t, err)
	gone, err := c.Run(t.Context(), c.e, order{ID: "c"}, workflow.After(3*time.Hour))
	require.NoError(t, err)
	for run, due := range map[builder.Run[receipt]]time.Duration{after: time.Hour, at: 2 * time.Hour, gone: 3 * time.Hour} {
		s := c.status(t, run)
		require.Equal(t, workflow.RunScheduled, s.State)
		require.Equal(t, start.Add(due), s.Next)
		require.Zero(t, s.Attempt)
	}
	c.e.Advance(time.Hour - time.Microsecond)
	require.Zero(t, c.calls.count())
	c.e.Advance(time.Microsecond)
	require.Equal(t, 1, c.calls.count())
	c.e.Crash()
	c.e.Advance(time.Hour)
	require.Equal(t, 2, c.calls.count())

	done, err := gone.Cancel(t.Context(), c.e, nil)
	require.NoError(t, err)
	require.True(t, done)
	c.e.Advance(24 * time.Hour)
	require.Equal(t, 2, c.calls.count(), "the canceled one was never called")
	require.Equal(t, workflow.RunCanceled, c.status(t, gone).State)
	require.Equal(t, workflow.RunCompleted, c.status(t, at).State)
}

// Case 59, for starts: zero is at once, a negative time is an error, centuries are kept as given.
func TestWhenARunBegins(t *testing.T) {
	c := newCharging(t)
	begin := c.e.Now()
	for name, opts := range map[string][]workflow.Option{
		"negative":       {workflow.After(-time.Second)},
		"both":           {workflow.After(time.Second), workflow.At(begin)},
		"both, and zero": {workflow.After(0), workflow.At(begin.Add(time.Hour))},
		"twice":          {workflow.After(time.Second), workflow.After(time.Hour)},
		"a route":        {workflow.Route("end")},
		"too far":        {workflow.At(time.Date(workitem.LastYear+1, 1, 1, 0, 0, 0, 0, time.UTC))},
	} {
		_, err := c.Run(t.Context(), c.e, order{}, opts...)
		require.Error(t, err, name)
	}
	for cs := range store.AllCases(t.Context(), c.e, store.CaseFilter{}) {
		require.Fail(t, "nothing may be stored", "%s", cs.ID)
	}
	for _, opt := range []workflow.Option{workflow.After(0), workflow.At(begin), workflow.At(begin.Add(-time.Hour)),
		workflow.At(time.Time{})} {
		run, err := c.Run(t.Context(), c.e, order{}, opt)
		require.NoError(t, err)
		c.e.Drain()
		require.Equal(t, workflow.RunCompleted, c.status(t, run).State)
	}
	century := begin.AddDate(100, 0, 0)
	run, err := c.Run(t.Context(), c.e, order{}, workflow.At(century))
	require.NoError(t, err)
	c.e.Crash()
	require.Equal(t, century, c.status(t, run).Next)
	c.e.Clock().Set(century.Add(-time.Microsecond))
	c.e.Drain()
	require.Equal(t, 4, c.calls.count())
	c.e.Clock().Set(century)
	c.e.Drain()
	require.Equal(t, 5, c.calls.count())

	require.ErrorContains(t, enginetest.Do(t.Context(), c.e, workflow.Cancel(run.ID, nil, workflow.After(time.Second))), `a cancel command takes no "after" or "at"; leave it out`)
	later, err := c.Run(t.Context(), c.e, order{}, workflow.After(time.Hour))
	require.NoError(t, err)
	const stray = `command takes no "route"; leave it out`
	require.ErrorContains(t, enginetest.Do(t.Context(), c.e, workflow.Cancel(later.ID, nil, workflow.Route("end"))), stray)
	require.ErrorContains(t, enginetest.Do(t.Context(), c.e, workflow.Send(later.ID, "paid", 1, workflow.Route("end"))), stray)
}

// Case 15: a run that is started in a transaction which is undone never was.
func TestARunInATransaction(t *testing.T) {
	c := newCharging(t)
	undo := errors.New("undo")
	err := c.e.Update(t.Context(), func(tx *engine.Tx) error {
		run, err := c.Run(t.Context(), tx, order{})
		require.NoError(t, err)
		s, err := run.Status(t.Context(), tx)
		require.NoError(t, err)
		require.Equal(t, workflow.RunPending, s.State)
		return undo
	})
	require.ErrorIs(t, err, undo)
	c.e.Advance(time.Hour)
	require.Zero(t, c.calls.count())
	nothingLeft(t, c.e)

	var runs [2]builder.Run[receipt]
	require.NoError(t, c.e.Update(t.Context(), func(tx *engine.Tx) (err error) {
		for i := range runs {
			if runs[i], err = c.Run(t.Context(), tx, order{}, workflow.After(time.Hour)); err != nil {
				return err
			}
		}
		done, err := runs[0].Cancel(t.Context(), tx, nil)
		require.True(t, done)
		if err == nil {
			err = runs[0].Cleanup(t.Context(), tx)
		}
		_, gone := runs[0].Status(t.Context(), tx)
		require.ErrorIs(t, gone, engine.ErrNotFound)
		return err
	}))
	c.e.Advance(time.Hour)
	require.Equal(t, 1, c.calls.count())
	require.Equal(t, workflow.RunCompleted, c.status(t, runs[1]).State)
}

// Case 34: a start with an input that breaks its own rules is an error, and stores nothing.
func TestAnInputThatBreaksItsRules(t *testing.T) {
	c := newCharging(t)
	for _, opts := range [][]workflow.Option{nil, {workflow.After(time.Hour)}} {
		_, err := c.Run(t.Context(), c.e, order{Amount: -1}, opts...)
		var invalid *domain.InvalidError
		require.ErrorAs(t, err, &invalid)
	}
	nothingLeft(t, c.e)
}

// The action gives something else by now. The run says so, and which it is.
func TestAResultOfAnotherType(t *testing.T) {
	text := builder.MustFunc("a", func(context.Context, int) (string, error) { return "ten", nil })
	number := builder.MustFunc("a", echo, builder.Version("2"))
	e := enginetest.New(t, text, number)
	run, err := text.Run(t.Context(), e, 10)
	require.NoError(t, err)
	e.Drain()
	want := fmt.Sprintf("run %s of a gave something else than the int that is asked for; "+
		"read it with the version of the function that it ran on: read stored int", run.ID)
	_, err = number.Of(run.ID).Result(t.Context(), e)
	require.ErrorContains(t, err, want)
	s, err := number.Of(run.ID).Status(t.Context(), e)
	require.ErrorContains(t, err, want)
	require.Equal(t, workflow.RunCompleted, s.State)
}

// Case 36: a result that breaks its own rules fails the run, and no result is null.
func TestAResultThatBreaksItsRules(t *testing.T) {
	bad := builder.MustFunc("bad", func(context.Context, any) (receipt, error) { return receipt{}, nil },
		builder.Retry(func(p *retry.Policy) { p.Attempts = 1 }))
	none := builder.MustFunc("none", func(context.Context, any) (any, error) { return nil, nil })
	e := enginetest.New(t, bad, none)
	run, err := bad.Run(t.Context(), e, nil)
	require.NoError(t, err)
	_, err = run.Result(t.Context(), e)
	var failure *workitem.Failure
	require.ErrorAs(t, err, &failure)
	require.Equal(t, workitem.CodeInvalid, failure.Code)
	nothing, err := none.Run(t.Context(), e, nil)
	require.NoError(t, err)
	got, err := nothing.Result(t.Context(), e)
	require.NoError(t, err)
	require.Nil(t, got)
}

// What goes first: the higher priority, then what is due earlier.
func TestPriorityOfARun(t *testing.T) {
	var mu sync.Mutex
	var done []string
	a := builder.MustFunc("a", func(_ context.Context, s string) (string, error) {
		mu.Lock()
		defer mu.Unlock()
		done = append(done, s)
		return s, nil
	}, builder.OnQueue("one"))
	o := sqlite.Memory()
	idle, err := engine.Config{Workers: -1}.Open(t.Context(), o, a)
	require.NoError(t, err)
	for i, name := range []string{"c", "b", "d", "a"} {
		_, err := a.Run(t.Context(), idle, name, workflow.Priority([]int{0, 5, 0, math.MaxInt32}[i]))
		require.NoError(t, err)
	}
	require.NoError(t, idle.Close())
	one, err := engine.Config{Queues: map[string]int{"one": 1}}.Open(t.Context(), o, a)
	require.NoError(t, err)
	require.NoError(t, one.Drain(t.Context()))
	require.Equal(t, []string{"a", "b", "c", "d"}, done)
	for row, err := range store.AllItems(t.Context(), one, store.ItemFilter{Workflow: "a"}) {
		require.NoError(t, err)
		require.Equal(t, map[string]int{`"a"`: math.MaxInt32, `"b"`: 5, `"c"`: 0, `"d"`: 0}[string(row.Input)], row.Priority)
	}
	require.NoError(t, one.Close())
}

// A function that takes too long fails with the code "timeout", and is tried again.
func TestAttemptTimeout(t *testing.T) {
	var calls atomic.Int32
	a := builder.MustFunc("slow", func(ctx context.Context, n int) (int, error) {
		if calls.Add(1) == 1 {
			<-ctx.Done()
			return 0, ctx.Err()
		}
		return n, nil
	}, builder.AttemptTimeout(time.Millisecond))
	e := enginetest.New(t, a)
	run, err := a.Run(t.Context(), e, 3)
	require.NoError(t, err)
	e.Drain()
	s, err := run.Status(t.Context(), e)
	require.NoError(t, err)
	require.Equal(t, "timeout: not done within 1ms: context deadline exceeded", s.Failure.String())
	e.Advance(time.Second)
	got, err := run.Result(t.Context(), e)
	require.NoError(t, err)
	require.Equal(t, 3, got)
}

// An action that cannot be has all its problems told, each with the line that declares it.
func TestAnActionThatCannotBe(t *testing.T) {
	_, err := builder.Func[order, receipt]("no good", nil, builder.Retry(func(p *retry.Policy) { p.Base = -1 }),
		builder.AttemptTimeout(-time.Second), builder.Handles(nil))
	var problems *builder.Error
	require.ErrorAs(t, err, &problems)
	var codes []string
	for _, p := range problems.Problems {
		codes = append(codes, string(p.Code))
		require.Contains(t, p.Pos.String(), "func_test.go")
	}
	require.Subset(t, codes, []string{"bad-name", "nil-function", "bad-retry", "negative-duration", "nil-handle"})
	require.Panics(t, func() { builder.MustFunc[order, receipt]("x", nil) })
	var nilAction *builder.FuncRef[order, receipt]
	_, err = nilAction.Run(t.Context(), nil, order{})
	require.ErrorContains(t, err, "not built")
	_, err = builder.Run[receipt]{}.Status(t.Context(), nil)
	require.ErrorContains(t, err, "no engine")
}

// Case 60: runs are listed by workflow, state and time, in pages and in both orders, and agree with their status.
func TestRunsAreListed(t *testing.T) {
	c := newCharging(t, builder.Retry(func(p *retry.Policy) { p.Attempts = 1 }))
	want := make(map[workitem.CaseID]workflow.RunState)
	var all []workitem.CaseID
	for i := range 30 {
		if i%3 == 0 {
			c.fails.Store(1)
		}
		run, err := c.Run(t.Context(), c.e, order{})
		require.NoError(t, err)
		all = append(all, run.ID)
		c.e.Advance(time.Second)
		want[run.ID] = c.status(t, run).State
	}
	list := func(f store.CaseFilter) []workitem.CaseID {
		f.Workflow = "charge"
		var got []workitem.CaseID
		for cs, err := range store.AllCases(t.Context(), c.e, f) {
			require.NoError(t, err)
			require.Equal(t, string(want[cs.ID]), cs.State.String())
			got = append(got, cs.ID)
		}
		return got
	}
	require.Equal(t, all, list(store.CaseFilter{}))
	backwards := list(store.CaseFilter{Page: store.Page{Desc: true}})
	for i, id := range backwards {
		require.Equal(t, all[len(all)-1-i], id)
	}
	require.Len(t, list(store.CaseFilter{States: []state.CaseState{state.CaseFailed}}), 10)
	require.Equal(t, all[10:], list(store.CaseFilter{Since: c.e.Now().Add(-20 * time.Second)}))
	require.Equal(t, all[:10], list(store.CaseFilter{Before: c.e.Now().Add(-20 * time.Second)}))
	for _, desc := range []bool{false, true} {
		var paged []workitem.CaseID
		page := store.Page{Limit: 7, Desc: desc}
		for rows := list(store.CaseFilter{Page: page}); len(rows) > 0; rows = list(store.CaseFilter{Page: page}) {
			paged = append(paged, rows...)
			page.After = rows[len(rows)-1].String()
		}
		require.Equal(t, map[bool][]workitem.CaseID{false: all, true: backwards}[desc], paged)
	}
}
