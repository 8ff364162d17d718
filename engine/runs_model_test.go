package engine_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// modelKeep is how long the model's runs are kept.
const modelKeep = 10 * time.Second

// modelRun is what is asked of a run: when it begins, how many of its attempts fail, and how many it has.
type modelRun struct {
	builder.Run[int]
	wrong    string // the fault of the model, one of modelFaults; "" if it has none
	begin    time.Time
	fails    int
	attempts int
	canceled time.Time // zero if it was not
	cleaned  bool
}

// modelFaults are ways in which the model can be wrong; the comparison has to see each.
var modelFaults = []string{"waits do not grow", "one attempt more", "cancels nothing", "failure is cancellation", "keeps it always",
	"next is the last", "calls the handler twice", "another value", "finds what is gone", "cleans up what runs"}

// attempt is when the k-th attempt is made: each wait is twice the one before, the first is 100 ms.
func (r *modelRun) attempt(k int) time.Time {
	if r.wrong == "waits do not grow" {
		return r.begin.Add(100 * time.Millisecond * time.Duration(k-1))
	}
	return r.begin.Add(100 * time.Millisecond * time.Duration(1<<(k-1)-1))
}

// at says how many attempts there were by a time, and where the run stands then.
func (r *modelRun) at(now time.Time) (made int, state workflow.RunState, next time.Time) {
	until, attempts := now, r.attempts
	if !r.canceled.IsZero() {
		until = r.canceled
	}
	if r.wrong == "one attempt more" {
		attempts++
	}
	for made < attempts && made <= r.fails && !r.attempt(made+1).After(until) {
		made++
	}
	switch {
	case made == r.fails+1:
		return made, workflow.RunCompleted, time.Time{}
	case made == attempts && r.wrong == "failure is cancellation":
		return made, workflow.RunCanceled, time.Time{}
	case made == attempts:
		return made, workflow.RunFailed, time.Time{}
	case !r.canceled.IsZero():
		return made, workflow.RunCanceled, time.Time{}
	case made == 0:
		return 0, workflow.RunScheduled, r.begin
	}
	if r.wrong == "next is the last" {
		return made, workflow.RunWaiting, r.attempt(made)
	}
	return made, workflow.RunWaiting, r.attempt(made + 1)
}

// end is when a run that has ended did.
func (r *modelRun) end(now time.Time) time.Time {
	made, state, _ := r.at(now)
	if state == workflow.RunCanceled {
		return r.canceled
	}
	return r.attempt(made)
}

// gone reports whether the run was cleaned up or swept.
func (r *modelRun) gone(now time.Time) bool {
	if r.wrong == "keeps it always" {
		return false
	}
	_, state, _ := r.at(now)
	return r.cleaned || state.Final() && !now.Before(r.end(now).Add(modelKeep))
}

// world is the engine beside the model.
type world struct {
	wrong   string // of its runs
	e       *enginetest.Engine
	a       *builder.FuncRef[int, int]
	runs    []*modelRun
	mu      sync.Mutex
	calls   map[workitem.CaseID]int
	ends    map[workitem.CaseID][]workflow.RunState
	handler *builder.HandlerRef[int]
}

func newWorld(t *testing.T, wrong string) *world {
	w := &world{wrong: wrong, calls: make(map[workitem.CaseID]int), ends: make(map[workitem.CaseID][]workflow.RunState)}
	w.handler = builder.Handler("h", func(_ context.Context, c *builder.Completion[int], _ int) error {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.ends[c.Case.ID] = append(w.ends[c.Case.ID], c.State)
		return nil
	})
	w.a = builder.MustFunc("a", func(ctx context.Context, fails int) (int, error) {
		work, _ := builder.WorkFrom(ctx)
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.calls[work.Case.ID]++; w.calls[work.Case.ID] <= fails {
			return 0, errors.New("not yet")
		}
		return fails, nil
	}, builder.Keep(modelKeep), builder.Handles(w.handler))
	w.e = enginetest.New(t, w.a)
	return w
}

func (w *world) start(t *rapid.T) {
	r := &modelRun{wrong: w.wrong, fails: rapid.IntRange(0, 4).Draw(t, "fails"), attempts: rapid.IntRange(1, 4).Draw(t, "attempts")}
	delay := time.Duration(rapid.SampledFrom([]int{0, 0, 50, 700, 20_000}).Draw(t, "delay")) * time.Millisecond
	r.begin = w.e.Now().Add(delay)
	var err error
	r.Run, err = w.a.Run(context.Background(), w.e, r.fails, workflow.After(delay), builder.OnComplete(w.handler, 1),
		builder.Retry(func(p *retry.Policy) { p.Attempts, p.Initial = r.attempts, 100*time.Millisecond }))
	require.NoError(t, err)
	w.runs = append(w.runs, r)
}

// act cancels, cleans up or restarts some run, which may be in any state.
func (w *world) act(t *rapid.T, c require.TestingT) {
	r, now, ctx := rapid.SampledFrom(w.runs).Draw(t, "run"), w.e.Now(), context.Background()
	_, state, _ := r.at(now)
	there, final := !r.gone(now), state.Final()
	switch rapid.SampledFrom([]string{"cancel", "clean up", "restart"}).Draw(t, "what") {
	case "cancel":
		done, err := r.Cancel(ctx, w.e, nil)
		require.NoError(c, err)
		require.Equal(c, there && !final, done)
		if done && w.wrong != "cancels nothing" {
			r.canceled = now
		}
	case "clean up":
		err := r.Cleanup(ctx, w.e)
		w.refused(c, err, there, final || w.wrong == "cleans up what runs")
		r.cleaned = r.cleaned || err == nil
	case "restart":
		fresh, err := r.Restart(ctx, w.e)
		w.refused(c, err, there || w.wrong == "finds what is gone", final)
		if err == nil {
			w.runs = append(w.runs, &modelRun{Run: fresh, wrong: w.wrong, begin: now, fails: r.fails, attempts: r.attempts})
		}
	}
}

func (w *world) refused(c require.TestingT, err error, there, final bool) {
	switch {
	case !there:
		require.ErrorIs(c, err, engine.ErrNotFound)
	case !final:
		require.ErrorIs(c, err, engine.ErrUnfinished)
	default:
		require.NoError(c, err)
	}
}

func (w *world) check(c require.TestingT) {
	now := w.e.Now()
	for i, r := range w.runs {
		made, state, next := r.at(now)
		require.Equal(c, made, w.calls[r.ID], "calls of run %d", i)
		var ends []workflow.RunState
		if state.Final() {
			ends = append(ends, state)
		}
		if w.wrong == "calls the handler twice" {
			ends = append(ends, ends...)
		}
		require.Equal(c, ends, w.ends[r.ID], "the ends of run %d that its handler saw", i)
		s, err := r.Status(context.Background(), w.e)
		if r.gone(now) {
			require.ErrorIs(c, err, engine.ErrNotFound, "run %d", i)
			continue
		}
		require.NoError(c, err)
		require.Equal(c, state, s.State, "run %d", i)
		require.Equal(c, made, s.Attempt, "run %d", i)
		require.Equal(c, next, s.Next, "run %d", i)
		if state == workflow.RunCompleted {
			value := r.fails
			if w.wrong == "another value" {
				value++
			}
			require.Equal(c, value, s.Value)
		}
	}
}

// Whatever is done to runs in whatever order, with crashes in between, they are what a model of forty lines says.
func TestRunsAgainstAModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) { playRuns(t, rt, rt, "") })
}

// The comparison sees each fault of a model.
func TestAWrongModelOfRunsDisagrees(t *testing.T) {
	for _, wrong := range modelFaults {
		requireDifference(t, wrong, func(t *testing.T, rt *rapid.T, c require.TestingT) { playRuns(t, rt, c, wrong) })
	}
}

// playRuns does random operations on an engine and on a model that has the fault, and compares them after each.
func playRuns(t *testing.T, rt *rapid.T, c require.TestingT, wrong string) {
	w := newWorld(t, wrong)
	w.start(rt)
	w.e.Drain()
	for range rapid.IntRange(1, 12).Draw(rt, "operations") {
		switch rapid.SampledFrom([]string{"start", "act", "act", "advance", "advance", "crash"}).Draw(rt, "operation") {
		case "start":
			w.start(rt)
		case "act":
			w.act(rt, c)
		case "advance":
			w.e.Advance(time.Duration(rapid.SampledFrom([]int{0, 40, 100, 300, 800, 9_000, 15_000}).Draw(rt, "ms")) * time.Millisecond)
		case "crash":
			w.e.Drain()
			w.e.Crash()
		}
		w.e.Drain()
		w.check(c)
	}
}
