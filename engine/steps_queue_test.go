package engine_test

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/internal/integrity"
	"github.com/tasq-dev/tasq/internal/storehook"
	"github.com/tasq-dev/tasq/step"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/sqlite"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// durables opens a store that counts the commits of changes, and knows which steps are durable.
type durables struct {
	store.Opener
	before func(n int) error // called before the n-th commit, from 1 on, which fails with its error; may be nil
	after  func(n int)       // called after it; may be nil

	mu      sync.Mutex
	commits int
	durable map[string]bool
}

// Open implements store.Opener.
func (w *durables) Open(ctx context.Context, o store.Options) (store.Store, error) {
	w.durable = make(map[string]bool)
	var changed bool // in the transaction that is under way
	var steps []string
	return (&storehook.Opener{Opener: w.Opener,
		Tx: func(tx store.Tx) store.Tx {
			changed, steps = false, nil
			return tx
		},
		Append: func(e *store.Entry, _ *state.Tree) error {
			changed = true
			for _, change := range e.Changes {
				if opened, ok := change.(*state.StepOpened); ok {
					steps = append(steps, opened.Step.Name)
				}
			}
			return nil
		},
		Commit: func() error {
			if !changed {
				return nil
			}
			if n := w.committing(); w.before != nil {
				return w.before(n)
			}
			return nil
		},
		Update: func(run func() error) error {
			err := run()
			if err == nil && changed {
				w.committed(steps)
			}
			return err
		},
	}).Open(ctx, o)
}

// committing counts a commit of changes.
func (w *durables) committing() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.commits++
	return w.commits
}

func (w *durables) committed(steps []string) {
	if w.after != nil {
		w.after(w.count())
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, name := range steps {
		w.durable[name] = true
	}
}

// has reports whether a step is durable.
func (w *durables) has(name string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.durable[name]
}

func (w *durables) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.commits
}

// chainOf is a function of n steps that notes the calls of each.
func chainOf(n int, note func(i int), opts ...builder.FuncOption) *builder.FuncRef[int, int] {
	return builder.MustFunc("chain", func(ctx context.Context, _ int) (sum int, err error) {
		for i := range n {
			v, err := step.Do(ctx, fmt.Sprint(i), func(context.Context) (int, error) { note(i); return i, nil })
			if err != nil {
				return 0, err
			}
			sum += v
		}
		return sum, nil
	}, opts...)
}

// A function of n steps costs n+1 commits: one for its start, which claims its job too, and one for each step, the last of which
// it shares with the end.
func TestAFunctionOfStepsCostsOneCommitMoreThanItHasSteps(t *testing.T) {
	for _, n := range []int{1, 3, 10} {
		synctest.Test(t, func(t *testing.T) {
			w := &durables{Opener: sqlite.Memory()}
			chain := chainOf(n, func(int) {})
			e, err := engine.Open(t.Context(), w, chain)
			require.NoError(t, err)
			begun, at := w.count(), time.Now()
			r, err := chain.Run(t.Context(), e, 1)
			require.NoError(t, err)
			got, err := r.Result(t.Context(), e)
			require.NoError(t, err)
			require.Equal(t, n*(n-1)/2, got)
			require.Equal(t, n+1, w.count()-begun)
			require.Zero(t, time.Since(at), "no record that is waited for waits for company")
			require.NoError(t, integrity.Check(t.Context(), e))
			require.NoError(t, e.Close())
		})
	}
}

// A step becomes durable by itself, however long the function computes before its next effect.
func TestAStepBecomesDurableWhileTheFunctionComputes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &durables{Opener: sqlite.Memory()}
		long := builder.MustFunc("long", func(ctx context.Context, n int) (int, error) {
			got, err := step.Do(ctx, "first", func(context.Context) (int, error) { return n, nil })
			if w.has("first") {
				t.Error("the step was waited for")
			}
			<-time.After(time.Millisecond) // it computes
			if !w.has("first") {
				t.Error("the step is not durable")
			}
			return got, err
		})
		e, err := engine.Open(t.Context(), w, long)
		require.NoError(t, err)
		synctest.Wait() // the first look for expired cases is over: a wait for the store's lock would stop the bubble's time
		r, err := long.Run(t.Context(), e, 1)
		require.NoError(t, err)
		_, err = r.Result(t.Context(), e)
		require.NoError(t, err)
		require.NoError(t, integrity.Check(t.Context(), e))
		require.NoError(t, e.Close())
	})
}

// Each commit in turn fails once: no step is called before the one before it is durable, none is called twice, and the function
// comes to its end with the record of each.
func TestNoStepIsCalledBeforeTheOneBeforeItIsDurable(t *testing.T) {
	const n = 3
	for failing := 2; failing <= n+2; failing++ {
		t.Run(fmt.Sprint(failing), func(t *testing.T) {
			t.Parallel() // the engine waits before it tries again
			ctx := t.Context()
			w := &durables{Opener: sqlite.Memory()}
			calls := make([]atomic.Int32, n)
			chain := chainOf(n, func(i int) {
				calls[i].Add(1)
				if i > 0 && !w.has(fmt.Sprint(i-1)) {
					t.Errorf("step %d is called, and step %d is not durable", i, i-1)
				}
			})
			w.before = func(commit int) error {
				if commit == failing {
					return errDisk
				}
				return nil
			}
			e := enginetest.Open(t, w, engine.Config{}, chain)
			r, err := chain.Run(ctx, e, 1)
			require.NoError(t, err)
			e.Drain() // a caller whose question meets the fault is refused
			got, err := r.Result(ctx, e)
			require.NoError(t, err)
			require.Equal(t, n*(n-1)/2, got)
			for i := range calls {
				require.EqualValues(t, 1, calls[i].Load(), "step %d", i)
			}
			require.Len(t, stepsOf(t, e, store.StepFilter{Case: r.ID}), n)
			noTrace(t, e)
		})
	}
}

// The store fails while a function returns: its last step and its end are both handed in until they are stored, once.
func TestTheLastStepIsSettledWithItsFunction(t *testing.T) {
	t.Parallel()
	for faults := int64(1); faults <= 4; faults++ {
		t.Run(fmt.Sprint(faults), func(t *testing.T) {
			t.Parallel()
			ctx := t.Context()
			f := &outage{Opener: sqlite.Memory()}
			var calls atomic.Int32
			chain := chainOf(1, func(int) { calls.Add(1); f.down.Store(true) })
			e := enginetest.Open(t, f, engine.Config{}, chain)
			r, err := chain.Run(ctx, e, 1)
			require.NoError(t, err)
			f.refusedTimes(t, faults)
			f.down.Store(false)
			e.Drain()
			_, err = r.Result(ctx, e)
			require.NoError(t, err)
			require.EqualValues(t, 1, calls.Load())
			steps := stepsOf(t, e, store.StepFilter{Case: r.ID})
			require.Len(t, steps, 1)
			require.Equal(t, workitem.StepDone, steps[0].State)
			noTrace(t, e)
		})
	}
}

// A record that is refused, since the job is no longer the run's, ends the run at its next effect.
func TestNothingIsDoneAfterARecordThatIsRefused(t *testing.T) {
	ctx := t.Context()
	var e *enginetest.Engine
	var second atomic.Int32
	met := make(chan error, 1)
	a := builder.MustFunc("a", func(ctx context.Context, _ int) (int, error) {
		w, _ := builder.WorkFrom(ctx)
		_, err := step.Do(ctx, "first", func(context.Context) (int, error) {
			return 1, enginetest.Do(context.Background(), e, workflow.Cancel(w.Case.ID, nil))
		})
		if err != nil {
			return 0, err
		}
		_, err = step.Do(ctx, "second", func(context.Context) (int, error) { return int(second.Add(1)), nil })
		met <- err
		return 0, err
	})
	e = enginetest.New(t, a)
	r, err := a.Run(ctx, e, 1)
	require.NoError(t, err)
	require.ErrorIs(t, <-met, step.ErrLost)
	_, err = r.Result(ctx, e)
	require.ErrorIs(t, err, builder.ErrCanceled)
	e.Drain()
	require.Zero(t, second.Load())
	require.Empty(t, stepsOf(t, e, store.StepFilter{Case: r.ID}))
}

// chainSteps is how many steps the function of TestKillAtEveryCommitOfAChain has.
const chainSteps = 3

// TestKillAtEveryCommitOfAChain kills a process before and after each commit of a function. What it had called by then is in a file
// that survives: the steps that are durable, and at most one more.
func TestKillAtEveryCommitOfAChain(t *testing.T) {
	cut{first: 1, last: chainSteps + 1, every: 1, nightly: 1}.each(t, func(t *testing.T, path string, n int, moment string) {
		killed(t, "TestKilledProcessWithChain", "TASQ_CHAIN_KILLED_PROCESS", path, n, moment, "")
		surviveChain(t, path, n, moment == "after")
	})
}

func surviveChain(t *testing.T, path string, n int, after bool) {
	t.Helper()
	ctx := t.Context()
	called := calledOf(t, path)
	e, err := engine.Config{Workers: -1}.Open(ctx, storeOfKilled(path), killedChain(path))
	require.NoError(t, err)
	recorded := len(stepsOf(t, e, store.StepFilter{}))
	require.NoError(t, e.Close())
	if after {
		require.Equal(t, n-1, recorded)
	} else {
		require.Equal(t, max(n-2, 0), recorded)
	}
	require.LessOrEqual(t, len(called), recorded+1, "called: %v", called)

	e, err = engine.Open(ctx, storeOfKilled(path), killedChain(path))
	require.NoError(t, err)
	awaitDeath(t, path)
	require.NoError(t, e.Drain(ctx))
	require.NoError(t, integrity.Check(ctx, e))
	again := calledOf(t, path)
	if n > 1 || after { // the start was durable
		require.Len(t, stepsOf(t, e, store.StepFilter{}), chainSteps)
		for i := range chainSteps {
			calls := strings.Count(strings.Join(again, ""), strconv.Itoa(i))
			require.LessOrEqual(t, calls, 2)
			if i < recorded {
				require.Equal(t, 1, calls, "step %d was durable", i)
			}
		}
	}
	require.NoError(t, e.Close())
}

// calledOf reads which steps were called, in order.
func calledOf(t *testing.T, path string) []string {
	t.Helper()
	data, err := os.ReadFile(path + ".calls")
	if !os.IsNotExist(err) {
		require.NoError(t, err)
	}
	return strings.Fields(string(data))
}

func killedChain(path string) *builder.FuncRef[int, int] {
	return chainOf(chainSteps, func(i int) {
		f, err := os.OpenFile(path+".calls", os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err == nil {
			_, err = fmt.Fprintln(f, i)
		}
		if err != nil {
			panic(err)
		}
		_ = f.Close()
	})
}

// TestKilledProcessWithChain is the child process of TestKillAtEveryCommitOfAChain; on its own it does nothing.
func TestKilledProcessWithChain(t *testing.T) {
	path := os.Getenv("TASQ_CHAIN_KILLED_PROCESS")
	if path == "" {
		return
	}
	cut, err := strconv.Atoi(os.Getenv("TASQ_CUT"))
	require.NoError(t, err)
	w := &durables{Opener: storeOfKilled(path)}
	if os.Getenv("TASQ_MOMENT") == "before" {
		w.before = func(n int) error {
			if n == cut {
				die()
			}
			return nil
		}
	} else {
		w.after = func(n int) {
			if n == cut {
				die()
			}
		}
	}
	chain := killedChain(path)
	e, err := engine.Open(t.Context(), w, chain)
	require.NoError(t, err)
	_, err = chain.Run(t.Context(), e, 1)
	require.NoError(t, err)
	<-time.After(time.Minute)
	t.Fatal("the process lives")
}
