package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/internal/integrity"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/step"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// stepCuts is how many commits of a history of steps are cut, each once before and once after it is durable.
const stepCuts = 40

// stepWorkers is how many functions of the killed process run at a time: so many calls may be under way when it dies.
const stepWorkers = 4

// TestKillAtEveryCommitOfSteps is like TestKillAtEveryCommit for functions of steps: calls with retries, sleeps,
// events, child cases, branches and cancellations. The functions note each call in a file that survives. Eight
// processes are killed by default, and eighty in the nightly form.
func TestKillAtEveryCommitOfSteps(t *testing.T) {
	cut{first: 2, last: 3 * stepCuts, every: 39, nightly: 3}.each(t, func(t *testing.T, path string, n int, moment string) {
		surviveSteps(t, path, killed(t, "TestKilledProcessWithSteps", "TASQ_STEP_KILLED_PROCESS", path, n, moment, "sent "))
	})
}

// surviveSteps opens what the killed process left; sent are the values of the events that it saw acknowledged.
func surviveSteps(t *testing.T, path string, sent []string) {
	t.Helper()
	ctx := t.Context()
	parent, child := killedStepWorkflows(path + ".calls")
	e, err := engine.Config{Workers: stepWorkers}.Open(ctx, storeOfKilled(path), parent, child)
	require.NoError(t, err)
	awaitDeath(t, path)
	require.NoError(t, integrity.Check(ctx, e), "just after opening")
	finishSteps(t, e)
	require.NoError(t, integrity.Check(ctx, e), "at the end")
	checkCalls(t, e, path+".calls")
	checkChanges(t, e, sent)
	require.NoError(t, e.Close())
}

// finishSteps sends every waiting step what it waits for, until every case has ended.
func finishSteps(t *testing.T, e *engine.Engine) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for i := 0; ; i++ {
		require.NoError(t, e.Drain(ctx))
		left := 0
		for c, err := range store.AllCases(ctx, e, store.CaseFilter{States: []state.CaseState{state.CaseStarted}}) {
			require.NoError(t, err)
			left++
			for _, s := range stepsOf(t, e, store.StepFilter{Case: c.ID, States: []workitem.StepState{workitem.StepWaiting}}) {
				if s.Kind == workitem.StepEvent {
					err := enginetest.Do(ctx, e, workflow.Send(c.ID, s.Target, fmt.Sprintf("late %d %s", i, s.ID)))
					require.True(t, err == nil || errors.Is(err, engine.ErrInactive), "%v", err)
				}
			}
		}
		if left == 0 {
			return
		}
		require.Less(t, i, 1000, "something is stuck:\n%s", stuck(t, e))
	}
}

// stuck describes what has not ended.
func stuck(t *testing.T, e *engine.Engine) string {
	t.Helper()
	var b strings.Builder
	for c, err := range store.AllCases(t.Context(), e, store.CaseFilter{States: []state.CaseState{state.CaseStarted}}) {
		require.NoError(t, err)
		full, err := e.Case(t.Context(), c.ID)
		require.NoError(t, err)
		fmt.Fprintf(&b, "case %s of %s\n", c.ID, c.Workflow)
		for j := range full.Jobs.All() {
			fmt.Fprintf(&b, "  job %s %s %s due %s\n", j.ID, j.Kind, j.State, j.Due)
		}
		for s := range full.Steps.All() {
			fmt.Fprintf(&b, "  step %s %s %s due %s child %s\n", s.Name, s.Kind, s.State, s.Due, s.Child)
		}
	}
	return b.String()
}

func stepsOf(t testing.TB, e interface {
	View(context.Context, func(store.Reader) error) error
}, f store.StepFilter) []*workitem.Step {
	t.Helper()
	f.Limit = 1 << 20
	var all []*workitem.Step
	require.NoError(t, e.View(t.Context(), func(r store.Reader) (err error) {
		all, err = r.Steps(t.Context(), f)
		return err
	}))
	return all
}

// checkCalls compares the calls that the functions noted with the attempts that were recorded. A call that was under
// way when the process died may be there once more; nothing else may.
func checkCalls(t *testing.T, e *engine.Engine, path string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return
	}
	require.NoError(t, err)
	called := make(map[string]int)
	for line := range strings.Lines(string(data)) {
		called[strings.TrimSpace(line)]++
	}
	recorded := make(map[string]int)
	for _, s := range stepsOf(t, e, store.StepFilter{Kind: workitem.StepDo}) {
		if !s.Copied {
			recorded[s.Job.String()+" "+s.Name] += s.Attempt
		}
	}
	canceled := make(map[string]bool) // a call that was under way when its case was canceled is not recorded
	for j, err := range store.AllJobs(t.Context(), e, store.JobFilter{}) {
		require.NoError(t, err)
		canceled[j.ID.String()] = j.State == state.JobCanceled
	}
	extra := 0
	for name, n := range recorded {
		require.GreaterOrEqual(t, called[name], n, "step %s was recorded and never called", name)
	}
	for name, n := range called {
		require.LessOrEqual(t, n, recorded[name]+1, "step %s was called too often", name)
		if job, _, _ := strings.Cut(name, " "); !canceled[job] {
			extra += n - recorded[name]
		}
	}
	require.LessOrEqual(t, extra, stepWorkers, "more calls were lost than can have been under way")
}

// checkChanges makes sure that no event was lost or taken twice.
func checkChanges(t *testing.T, e *engine.Engine, sent []string) {
	t.Helper()
	ctx := t.Context()
	there := make(map[string]bool)
	taken := make(map[workitem.StepID]bool)
	var messages []*state.Message
	require.NoError(t, e.View(ctx, func(r store.Reader) (err error) {
		messages, err = r.Messages(ctx, store.MessageFilter{Page: store.Page{Limit: 1 << 20}})
		return err
	}))
	results := make(map[workitem.StepID]string)
	for _, s := range stepsOf(t, e, store.StepFilter{Kind: workitem.StepEvent}) {
		results[s.ID] = string(s.Result)
	}
	for _, m := range messages {
		require.False(t, there[string(m.Value)], "event %s was sent twice", m.Value)
		there[string(m.Value)] = true
		if m.Step.IsZero() {
			continue
		}
		require.False(t, taken[m.Step], "step %s took two events", m.Step)
		taken[m.Step] = true
		require.Equal(t, string(m.Value), results[m.Step])
	}
	for _, value := range sent {
		require.True(t, there[strconv.Quote(value)], "event %s was acknowledged, and is gone", value)
	}
}

// TestKilledProcessWithSteps is the child process of TestKillAtEveryCommitOfSteps; on its own it does nothing.
func TestKilledProcessWithSteps(t *testing.T) {
	path, o := toBeKilled(t, "TASQ_STEP_KILLED_PROCESS", 0)
	if o == nil {
		return
	}
	parent, child := killedStepWorkflows(path + ".calls")
	e, err := engine.Config{Workers: stepWorkers}.Open(t.Context(), o, parent, child)
	require.NoError(t, err)
	random := rand.New(rand.NewPCG(3, 4))
	var cases []workitem.CaseID
	for i := 0; ; i++ {
		cases = killedStepCall(t, e, parent, cases, random, i)
	}
}

// killedStepCall starts a case, sends an event, or cancels a case.
func killedStepCall(
	t *testing.T, e *engine.Engine, parent *builder.Workflow[int], cases []workitem.CaseID, random *rand.Rand, i int,
) []workitem.CaseID {
	ctx := t.Context()
	n := random.IntN(10)
	if n < 3 || len(cases) == 0 {
		id, err := parent.Start(ctx, e, i)
		require.NoError(t, err)
		return append(cases, id)
	}
	id := cases[random.IntN(len(cases))]
	if n == 3 {
		if err := enginetest.Do(ctx, e, workflow.Cancel(id, nil)); err != nil {
			require.ErrorIs(t, err, engine.ErrInactive)
		}
		return cases
	}
	value := fmt.Sprintf("event %d", i)
	switch err := enginetest.Do(ctx, e, workflow.Send(id, "go", value)); {
	case err == nil:
		fmt.Println("sent " + value)
	default:
		require.ErrorIs(t, err, engine.ErrInactive)
	}
	return cases
}

// killedStepWorkflows are functions that do everything that steps can do, in a few milliseconds.
func killedStepWorkflows(calls string) (parent, child *builder.Workflow[int]) {
	note := func(ctx context.Context, name string) error {
		f, err := os.OpenFile(calls, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		w, _ := builder.WorkFrom(ctx)
		_, err = fmt.Fprintf(f, "%s %s\n", w.Job, name)
		return errors.Join(err, f.Close())
	}
	do := func(ctx context.Context, name string, fail bool) error {
		_, err := step.Do(ctx, name, func(ctx context.Context) (int, error) {
			if err := note(ctx, name); err != nil {
				return 0, err
			}
			if fail {
				return 0, errors.New("not now")
			}
			return 1, nil
		}, step.Retry(retry.Constant(2, time.Millisecond)))
		return err
	}
	b := builder.New[int]("child")
	work := builder.Task(b, "work", builder.Work[int, int]{Input: builder.CaseInput(b), Run: func(ctx context.Context, n int) (int, error) {
		if err := do(ctx, "child does", false); err != nil {
			return 0, err
		}
		if err := step.Sleep(ctx, "child sleeps", time.Millisecond); err != nil {
			return 0, err
		}
		return n, nil
	}})
	b.Path(b.Start(), work, b.End())
	b.Result(builder.Output(work))
	child = b.MustBuild()

	b = builder.New[int]("parent")
	work = builder.Task(b, "work", builder.Work[int, int]{
		Input:                  builder.CaseInput(b),
		OnWorkItemStateChanged: activities.Resume(retry.Constant(2, time.Millisecond)),
		Run: func(ctx context.Context, n int) (int, error) {
			w, _ := builder.WorkFrom(ctx)
			if err := do(ctx, "first", false); err != nil {
				return 0, err
			}
			got, err := step.Call[int](ctx, "call", "child", n)
			if err != nil {
				return 0, err
			}
			event := step.Go(ctx, func(ctx context.Context) (json.RawMessage, error) {
				return step.Await[json.RawMessage](ctx, "go")
			})
			other := step.Go(ctx, func(ctx context.Context) (int, error) {
				if err := do(ctx, "beside", n%3 == 0); err != nil && !errors.Is(err, step.ErrSuspended) {
					return 0, nil // a failure of this step is no failure of the whole
				} else if err != nil {
					return 0, err
				}
				return 0, step.Sleep(ctx, "nap", time.Millisecond)
			})
			if err := step.All(ctx, event, other); err != nil {
				return 0, err
			}
			if n%4 == 0 && w.Attempt == 1 {
				return 0, errors.New("the first attempt fails at its end")
			}
			return got, do(ctx, "last", false)
		},
	})
	b.Path(b.Start(), work, b.End())
	b.Result(builder.Output(work))
	return b.MustBuild(), child
}
