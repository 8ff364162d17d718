package engine_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/step"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"

	"github.com/tasq-dev/tasq/internal/testsize"
)

// buying is a function of steps: charge, a wait, mail, save, each counted; save fails while it is told to.
type buying struct {
	*builder.FuncRef[order, string]
	e     *enginetest.Engine
	mu    sync.Mutex
	did   map[string]int
	fails int
	ends  []string
	wait  time.Duration
}

func newBuying(t testing.TB, opts ...builder.FuncOption) (*buying, *builder.HandlerRef[string]) {
	t.Helper()
	x := &buying{did: make(map[string]int)}
	h := builder.Handler("ended", func(_ context.Context, c *builder.Completion[string], who string) error {
		x.ends = append(x.ends, fmt.Sprintf("%s %s %s", who, c.State, c.Value))
		return nil
	})
	x.FuncRef = builder.MustFunc("buy", x.buy, append(opts, builder.Handles(h))...)
	x.e = enginetest.Open(t, enginetest.Store(t), engine.Config{}, x)
	return x, h
}

func (x *buying) buy(ctx context.Context, o order) (string, error) {
	charge, err := step.Do(ctx, "charge", x.count("charge", "c-"+o.ID))
	if err != nil {
		return "", err
	}
	if x.wait > 0 {
		if err := step.Sleep(ctx, "pause", x.wait); err != nil {
			return "", err
		}
	}
	mail, err := step.Do(ctx, "mail", x.count("mail", "m-"+charge))
	if err != nil {
		return "", err
	}
	return step.Do(ctx, "save", x.count("save", "s-"+mail))
}

func (x *buying) count(name, result string) func(context.Context) (string, error) {
	return func(context.Context) (string, error) {
		x.mu.Lock()
		defer x.mu.Unlock()
		x.did[name]++
		if name == "save" && x.fails > 0 {
			x.fails--
			return "", errors.New("the disk is full")
		}
		return result, nil
	}
}

func (x *buying) reset() { x.did = make(map[string]int) }

// Case 33: each step is done once, though the run fails and is tried again, and though the process dies in between.
func TestStepsAreKeptOverAttempts(t *testing.T) {
	x, _ := newBuying(t)
	x.fails = 2
	run, err := x.Run(t.Context(), x.e, order{ID: "1"})
	require.NoError(t, err)
	x.e.Drain()
	x.e.Crash()
	x.e.Advance(time.Minute)
	got, err := run.Result(t.Context(), x.e)
	require.NoError(t, err)
	require.Equal(t, "s-m-c-1", got)
	require.Equal(t, map[string]int{"charge": 1, "mail": 1, "save": 3}, x.did)
}

// Case 54: a restart is a fresh run with the same input, linked to the old one, which takes over the steps that were
// done. Case 56: its end calls the handlers again.
func TestRestart(t *testing.T) {
	x, h := newBuying(t, builder.Retry(func(p *retry.Policy) { p.Attempts = 1 }))
	x.fails = 1
	run, err := x.Run(t.Context(), x.e, order{ID: "1"}, builder.OnComplete(h, "ann"), workflow.Priority(3))
	require.NoError(t, err)
	x.e.Drain()
	require.Equal(t, []string{"ann failed "}, x.ends)

	for name, q := range map[string]struct {
		opts []workflow.Option
		did  map[string]int
	}{
		"all that was done is kept": {nil, map[string]int{"save": 1}},
		"from a step":               {[]workflow.Option{workflow.FromStep("mail")}, map[string]int{"mail": 1, "save": 1}},
		"from the one that failed":  {[]workflow.Option{workflow.FromStep("save")}, map[string]int{"save": 1}},
		"from the first":            {[]workflow.Option{workflow.FromStep("charge")}, map[string]int{"charge": 1, "mail": 1, "save": 1}},
	} {
		t.Run(name, func(t *testing.T) {
			x.reset()
			x.ends = nil
			fresh, err := run.Restart(t.Context(), x.e, q.opts...)
			require.NoError(t, err)
			require.NotEqual(t, run.ID, fresh.ID)
			got, err := fresh.Result(t.Context(), x.e)
			require.NoError(t, err)
			require.Equal(t, "s-m-c-1", got)
			require.Equal(t, q.did, x.did)
			require.Equal(t, []string{"ann completed s-m-c-1"}, x.ends)
			c, err := x.e.Case(t.Context(), fresh.ID)
			require.NoError(t, err)
			require.Equal(t, run.ID, c.Predecessor)
			require.Equal(t, 3, c.Priority)
			s, err := run.Status(t.Context(), x.e)
			require.NoError(t, err)
			require.Equal(t, workflow.RunFailed, s.State, "the old run stays as it ended")
		})
	}
	for name, restart := range map[string]func() error{
		"an unknown step": func() error {
			_, err := run.Restart(t.Context(), x.e, workflow.FromStep("pay"))
			require.ErrorContains(t, err, `its steps are ["charge" "mail" "save"]`)
			return err
		},
		"an unknown run": func() error { _, err := x.Of(workitem.CaseID{1}).Restart(t.Context(), x.e); return err },
		"another action": func() error {
			_, err := builder.MustFunc("other", echo).Of(run.ID).Restart(t.Context(), x.e)
			return err
		},
	} {
		require.ErrorIs(t, restart(), engine.ErrNotFound, name)
	}
	_, err = run.Restart(t.Context(), x.e, workflow.After(time.Hour))
	require.ErrorContains(t, err, `a restart command takes no "after" or "at"; leave it out`)

	x.ends = nil
	one, err := run.Restart(t.Context(), x.e, workflow.Key("again"))
	require.NoError(t, err)
	two, err := run.Restart(t.Context(), x.e, workflow.Key("again"))
	require.NoError(t, err)
	require.Equal(t, one, two)
	x.e.Drain()
	require.Len(t, x.ends, 1)
	done, err := one.Restart(t.Context(), x.e)
	require.NoError(t, err, "a run that completed can be restarted, too")
	x.reset()
	_, err = done.Result(t.Context(), x.e)
	require.NoError(t, err)
	require.Empty(t, x.did, "all its steps are kept")
}

// Case 55: a run that was canceled in its sleep runs to its end when it is restarted; one that continues is not
// restarted.
func TestRestartOfACanceledRun(t *testing.T) {
	x, h := newBuying(t)
	x.wait = 30 * day
	run, err := x.Run(t.Context(), x.e, order{ID: "1"}, builder.OnComplete(h, "ann"))
	require.NoError(t, err)
	x.e.Drain()
	s, err := run.Status(t.Context(), x.e)
	require.NoError(t, err)
	require.Equal(t, workflow.RunWaiting, s.State)
	require.Equal(t, x.e.Now().Add(30*day), s.Next)
	_, err = run.Restart(t.Context(), x.e)
	require.ErrorIs(t, err, engine.ErrUnfinished)

	x.e.Advance(day)
	done, err := run.Cancel(t.Context(), x.e, nil)
	require.NoError(t, err)
	require.True(t, done)
	steps(t, x.e, run.ID, "charge done", "pause canceled")

	fresh, err := run.Restart(t.Context(), x.e)
	require.NoError(t, err)
	x.e.Advance(31 * day)
	got, err := fresh.Result(t.Context(), x.e)
	require.NoError(t, err)
	require.Equal(t, "s-m-c-1", got)
	require.Equal(t, map[string]int{"charge": 1, "mail": 1, "save": 1}, x.did)
	require.Equal(t, []string{"ann canceled ", "ann completed s-m-c-1"}, x.ends)
}

// steps checks the steps of a case, by name and state.
func steps(t testing.TB, e *enginetest.Engine, id workitem.CaseID, want ...string) {
	t.Helper()
	var got []string
	require.NoError(t, e.View(t.Context(), func(r store.Reader) error {
		list, err := r.Steps(t.Context(), store.StepFilter{Case: id})
		for _, s := range list {
			got = append(got, s.Name+" "+s.State.String())
		}
		return err
	}))
	require.Equal(t, want, got)
}

// A restart of a run that was tried several times continues where its last attempt was, and is made in the caller's
// transaction if there is one.
func TestRestartInATransaction(t *testing.T) {
	x, _ := newBuying(t, builder.Keep(0))
	x.fails = 4
	h := builder.Handler("again", func(ctx context.Context, c *builder.Completion[string], left int) error {
		if c.State != workflow.RunFailed || left == 0 {
			return nil
		}
		_, err := c.Run().Restart(ctx, c) // the old run goes, and the new one has its steps
		return err
	})
	again := builder.MustFunc("again", x.buy, builder.Keep(0), builder.Handles(h))
	x.e = enginetest.New(t, again)
	_, err := again.Run(t.Context(), x.e, order{ID: "1"}, builder.OnComplete(h, 1))
	require.NoError(t, err)
	x.e.Advance(time.Minute)
	require.Equal(t, map[string]int{"charge": 1, "mail": 1, "save": 5}, x.did)
	nothingLeft(t, x.e)
}

// Case 53: a cancel settles every step and child, and stays what it is whatever comes late.
func TestCancelSettlesSteps(t *testing.T) {
	started, finish := make(chan struct{}), make(chan struct{})
	child := builder.MustFunc("child", func(ctx context.Context, n int) (int, error) {
		close(started)
		<-finish
		return n, nil
	})
	parent := builder.MustFunc("parent", func(ctx context.Context, n int) (int, error) {
		if _, err := step.Do(ctx, "first", func(context.Context) (int, error) { return 1, nil }); err != nil {
			return 0, err
		}
		return step.Call[int](ctx, "call", child.Name, n)
	})
	e := enginetest.New(t, parent, child)
	run, err := parent.Run(t.Context(), e, 5)
	require.NoError(t, err)
	<-started
	done, err := run.Cancel(t.Context(), e, nil)
	require.NoError(t, err)
	require.True(t, done)
	steps(t, e, run.ID, "first done", "call canceled")
	close(finish)
	e.Drain()
	for c, err := range store.AllCases(t.Context(), e, store.CaseFilter{}) {
		require.NoError(t, err)
		require.Equal(t, state.CaseCanceled, c.State)
	}
	_, err = run.Result(t.Context(), e)
	require.ErrorIs(t, err, builder.ErrCanceled)
}

// Case 57: cleaning up is an error while the run continues, and the second time; many steps, children and unread events
// go with it: 500 steps, more than a transaction removes, and 10,000 in the nightly form.
func TestCleanupTakesStepsAndChildren(t *testing.T) {
	child := builder.MustFunc("child", echo)
	big := builder.MustFunc("big", func(ctx context.Context, n int) (int, error) {
		for i := range n {
			if _, err := step.Do(ctx, fmt.Sprintf("s%d", i), func(context.Context) (int, error) { return i, nil }); err != nil {
				return 0, err
			}
		}
		return step.Call[int](ctx, "child", child.Name, n)
	})
	e := enginetest.New(t, big, child)
	steps := testsize.Pick(500, 500, 10_000)
	run, err := big.Run(t.Context(), e, steps, workflow.After(time.Hour))
	require.NoError(t, err)
	require.NoError(t, enginetest.Do(t.Context(), e, workflow.Send(run.ID, "unread", 1)))
	require.ErrorIs(t, run.Cleanup(t.Context(), e), engine.ErrUnfinished)
	e.Advance(time.Hour)
	got, err := run.Result(t.Context(), e)
	require.NoError(t, err)
	require.Equal(t, steps, got)
	require.NoError(t, run.Cleanup(t.Context(), e))
	require.ErrorIs(t, run.Cleanup(t.Context(), e), engine.ErrNotFound)
	nothingLeft(t, e)
}

// A restart is the same work: what was sent to services with a key is sent with the same key again, also when the run that
// began it is gone, and chance falls as it did.
func TestARestartKeepsItsKeys(t *testing.T) {
	said := make(map[string]bool)
	again := errors.New("again")
	pay := builder.MustFunc("pay", func(ctx context.Context, _ struct{}) (string, error) {
		w, _ := builder.WorkFrom(ctx)
		s := fmt.Sprint(step.Key(ctx, "charge"), step.Rand(ctx, "who").Uint64(), w.First)
		said[s] = true
		if _, err := step.Do(ctx, "charge", func(context.Context) (string, error) { return s, nil }); err != nil {
			return "", err
		}
		return "", again
	}, builder.Retry(func(p *retry.Policy) { p.Attempts = 2 }))
	e := enginetest.New(t, pay)
	run, err := pay.Run(t.Context(), e, struct{}{})
	require.NoError(t, err)
	e.Advance(time.Minute)
	for _, opts := range [][]workflow.Option{nil, {workflow.FromStep("charge")}, nil} {
		fresh, err := run.Restart(t.Context(), e, opts...)
		require.NoError(t, err)
		require.NoError(t, run.Cleanup(t.Context(), e))
		e.Crash()
		e.Advance(time.Minute)
		run = fresh
	}
	require.Len(t, said, 1)

	_, err = pay.Run(t.Context(), e, struct{}{})
	require.NoError(t, err)
	e.Advance(time.Minute)
	require.Len(t, said, 2, "another run")
}

// A restart from a step of a case without steps says that there are none.
func TestARestartFromAStepWhereThereAreNone(t *testing.T) {
	f := builder.MustFunc("plain", func(_ context.Context, n int) (int, error) { return n, nil })
	e := enginetest.New(t, f)
	run, err := f.Run(t.Context(), e, 1)
	require.NoError(t, err)
	e.Drain()
	err = enginetest.Do(t.Context(), e, workflow.Restart(run.ID, workflow.FromStep("x")))
	require.ErrorIs(t, err, engine.ErrNotFound)
	require.ErrorContains(t, err, "it has no completed steps")
}
