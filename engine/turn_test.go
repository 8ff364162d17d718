package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/engine/why"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// queuedRun starts a run of the function nap that begins when those with its key have ended.
func queuedRun(t *testing.T, e workflow.Doer, input string) workitem.CaseID {
	t.Helper()
	payload, err := json.Marshal(input)
	require.NoError(t, err)
	result, err := e.Do(t.Context(), workflow.Start("nap", payload, workflow.BusinessKey("ada"), workflow.IfTaken(workflow.Queued)))
	require.NoError(t, err)
	return result.Case
}

// Runs with one key go one after the other, in the order of their starts, over a crash too. However one ends, the next begins.
func TestTheSameAgainAfterItIsDone(t *testing.T) {
	f := napping()
	e := enginetest.New(t, f)
	first, second := queuedRun(t, e, "a"), queuedRun(t, e, "b")
	failing, gone, last := queuedRun(t, e, "fail"), queuedRun(t, e, "c"), queuedRun(t, e, "d")
	e.Drain()
	begun := func() (all []workitem.CaseID) {
		for _, id := range []workitem.CaseID{first, second, failing, gone, last} {
			if caseOf(t, e, id).Begun {
				all = append(all, id)
			}
		}
		return all
	}
	require.Equal(t, []workitem.CaseID{first}, begun())
	info, err := f.Of(second).Status(t.Context(), e)
	require.NoError(t, err)
	require.Equal(t, workflow.RunWaiting, info.State)

	answer, err := e.Why(t.Context(), second)
	require.NoError(t, err)
	require.Equal(t, why.Turn, answer.Waits[0].Kind)
	require.Equal(t, first, answer.Waits[0].Child)
	require.Contains(t, answer.String(), "the case begins when case "+first.String()+" has ended, which has the key ada too, since")
	answer, err = e.Why(t.Context(), last)
	require.NoError(t, err)
	require.Equal(t, 3, answer.Waits[0].Ahead)
	require.Contains(t, answer.String(), "has the key ada too; 3 others go first")

	_, err = e.Do(t.Context(), workflow.Cancel(gone, nil))
	require.NoError(t, err)
	require.Equal(t, []workitem.CaseID{first}, begun(), "a canceled one lets no other begin")
	e.Crash(f)
	e.Drain()
	require.Equal(t, []workitem.CaseID{first}, begun())
	e.Advance(61 * time.Minute)
	require.Equal(t, state.CaseCompleted, caseOf(t, e, first).State)
	require.Equal(t, []workitem.CaseID{first, second}, begun())
	e.Crash(f)
	_, err = e.Do(t.Context(), workflow.Cancel(second, nil))
	require.NoError(t, err)
	e.Drain()
	require.Equal(t, []workitem.CaseID{first, second, failing, last}, begun(), "the one that fails lets the next begin")
	require.Equal(t, state.CaseFailed, caseOf(t, e, failing).State)
	e.Advance(2 * time.Hour)
	require.Equal(t, state.CaseCompleted, caseOf(t, e, last).State)

	next := queuedRun(t, e, "e")
	e.Drain()
	require.True(t, caseOf(t, e, next).Begun, "what has ended holds the key no longer")
}

// A queued run waits for whatever holds its key and continues; others are refused while it holds the key.
func TestAQueuedRunBehindOthers(t *testing.T) {
	f := napping()
	e := enginetest.New(t, f)
	holder, err := f.Run(t.Context(), e, "a", workflow.BusinessKey("ada"), workflow.IfTaken(workflow.Refuse), workflow.After(time.Hour))
	require.NoError(t, err)
	waits := queuedRun(t, e, "b")
	e.Drain()
	require.False(t, caseOf(t, e, waits).Begun)
	e.Advance(121 * time.Minute)
	require.Equal(t, state.CaseCompleted, caseOf(t, e, holder.ID).State)
	require.True(t, caseOf(t, e, waits).Begun)

	behind := queuedRun(t, e, "c")
	same := func(policy workflow.Taken) (workflow.Result, error) {
		return e.Do(t.Context(), workflow.Start("nap", []byte(`"x"`), workflow.BusinessKey("ada"), workflow.IfTaken(policy)))
	}
	_, err = same(workflow.Refuse)
	require.ErrorIs(t, err, workflow.ErrKeyTaken)
	_, err = e.Do(t.Context(), workflow.Restart(behind))
	require.ErrorIs(t, err, workflow.ErrUnfinished)
	_, err = same(workflow.Supersede)
	require.ErrorIs(t, err, workflow.ErrKeyTaken, "the one that has completed and was not queued holds the key")
	require.False(t, caseOf(t, e, behind).State.Final(), "a start that is refused has canceled nothing")

	_, err = f.Run(t.Context(), e, "d", workflow.BusinessKey("ada"), workflow.IfTaken(workflow.Queued), workflow.After(time.Hour))
	require.ErrorIs(t, err, workflow.ErrBadCommand)
	require.ErrorContains(t, err, "give one of them")
}

// A start that takes the place of others takes that of all who wait.
func TestAStartSupersedesAllThatAreQueued(t *testing.T) {
	e := enginetest.New(t, napping())
	var all []workitem.CaseID
	for i := range 3 {
		all = append(all, queuedRun(t, e, strconv.Itoa(i)))
	}
	e.Drain()
	again := workflow.Start("nap", []byte(`"x"`), workflow.BusinessKey("ada"), workflow.IfTaken(workflow.Return))
	result, err := e.Do(t.Context(), again)
	require.NoError(t, err)
	require.Equal(t, all[0], result.Case, "the one that has begun")
	result, err = e.Do(t.Context(), workflow.With(again, workflow.IfTaken(workflow.Supersede)))
	require.NoError(t, err)
	e.Drain()
	for _, id := range all {
		require.Equal(t, state.CaseCanceled, caseOf(t, e, id).State)
	}
	require.True(t, caseOf(t, e, result.Case).Begun)
}

// A fork holds no key, so it waits for no other case.
func TestAForkOfAQueuedRunBegins(t *testing.T) {
	e := enginetest.New(t, napping())
	queuedRun(t, e, "a")
	waits := queuedRun(t, e, "b")
	e.Drain()
	forked, err := e.Do(t.Context(), workflow.Fork(waits, caseOf(t, e, waits).LastSeq))
	require.NoError(t, err)
	e.Drain()
	require.True(t, caseOf(t, e, forked.Case).Begun)
	require.False(t, caseOf(t, e, waits).Begun)
}

// A restart of a queued run is queued.
func TestARestartOfAQueuedRun(t *testing.T) {
	e := enginetest.New(t, napping())
	first := queuedRun(t, e, "fail")
	e.Drain()
	holder := queuedRun(t, e, "a")
	e.Drain()
	again, err := e.Do(t.Context(), workflow.Restart(first))
	require.NoError(t, err)
	e.Drain()
	require.False(t, caseOf(t, e, again.Case).Begun)
	e.Advance(61 * time.Minute)
	require.Equal(t, state.CaseCompleted, caseOf(t, e, holder).State)
	require.True(t, caseOf(t, e, again.Case).Begun)
}

// With many starts at once, in one engine or several, no two with a key are active at a time, and all do in the end.
func TestQueuedRunsAtOnce(t *testing.T) {
	t.Run("one engine", func(t *testing.T) {
		one := newTurns()
		e := enginetest.New(t, one.f)
		one.start(t, e.Engine)
	})
	t.Run("a fleet", func(t *testing.T) {
		f := newFleet(t)
		one := newTurns()
		a, b := f.open(engine.Config{}, one.f), f.open(engine.Config{}, one.f)
		one.start(t, a, b)
	})
}

// behindTime is a clock that shows a time long ago.
type behindTime struct{ retry.Clock }

func (c behindTime) Now() time.Time { return c.Clock.Now().Add(-time.Hour) }

// Runs begin in the order of their starts, also those of engines whose clocks differ.
func TestQueuedRunsOfEnginesWhoseClocksDiffer(t *testing.T) {
	f := newFleet(t)
	nap := napping()
	late, right := f.open(engine.Config{Clock: behindTime{retry.SystemClock}}, nap), f.open(engine.Config{}, nap)
	first, second, third := queuedRun(t, right, "a"), queuedRun(t, late, "b"), queuedRun(t, right, "c")
	answer, err := late.Why(t.Context(), third)
	require.NoError(t, err)
	require.Equal(t, first, answer.Waits[0].Child)
	require.Equal(t, 1, answer.Waits[0].Ahead)
	_, err = right.Do(t.Context(), workflow.Cancel(third, nil))
	require.NoError(t, err)
	c, err := right.Case(t.Context(), second)
	require.NoError(t, err)
	require.NotNil(t, c.Turn(), "the first one goes on")
	_, err = late.Do(t.Context(), workflow.Cancel(first, nil))
	require.NoError(t, err)
	c, err = right.Case(t.Context(), second)
	require.NoError(t, err)
	require.Nil(t, c.Turn())
}

// turns counts runs of a function that are not to be active side by side.
type turns struct {
	f       *builder.FuncRef[int, int]
	mu      sync.Mutex
	running int
	wrong   error
}

func newTurns() *turns {
	r := new(turns)
	r.f = builder.MustFunc("turns", func(_ context.Context, n int) (int, error) {
		r.mu.Lock()
		if r.running++; r.running > 1 {
			r.wrong = errors.New("two runs with one key go on")
		}
		r.mu.Unlock()
		r.mu.Lock()
		r.running--
		r.mu.Unlock()
		return n, nil
	})
	return r
}

func (r *turns) start(t *testing.T, engines ...*engine.Engine) {
	t.Helper()
	const starts = 24
	var started sync.WaitGroup
	ids, errs := make([]workitem.CaseID, starts), make([]error, starts)
	for i := range starts {
		started.Go(func() {
			result, err := engines[i%len(engines)].Do(t.Context(), workflow.Start("turns", []byte(strconv.Itoa(i)),
				workflow.BusinessKey("ada"), workflow.IfTaken(workflow.Queued)))
			ids[i], errs[i] = result.Case, err
		})
	}
	started.Wait()
	for i := range starts {
		require.NoError(t, errs[i])
		require.Equal(t, "completed: "+strconv.Itoa(i), ends(t, engines[0], ids[i]))
	}
	require.NoError(t, r.wrong)
	require.Len(t, found(t, engines[0], store.CaseFilter{Key: "ada"}), starts)
}
