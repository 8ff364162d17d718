package engine_test

import (
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/internal/integrity"
	"github.com/tasq-dev/tasq/limit"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/sqlite"
	"github.com/tasq-dev/tasq/workflow"
)

// queueNamed is how a queue stands in an engine.
func queueNamed(t *testing.T, e *engine.Engine, name string) workflow.QueueInfo {
	t.Helper()
	result, err := e.Do(t.Context(), workflow.Queues())
	require.NoError(t, err)
	for _, q := range result.Queues {
		if q.Queue == name {
			return q
		}
	}
	return workflow.QueueInfo{}
}

// command has an engine do a command.
func command(t *testing.T, e *engine.Engine, c workflow.Command) {
	t.Helper()
	_, err := e.Do(t.Context(), c)
	require.NoError(t, err)
}

// The workers of a queue are changed as it runs: more begin at once, with fewer what runs continues, and the number is remembered, also over a
// pause. The configuration bounds it.
func TestWorkersAreSetAtRunTime(t *testing.T) {
	var c callLog
	f := builder.MustFunc("f", busyFor(&c, 10*time.Second), builder.OnQueue("mail"))
	synctest.Test(t, func(t *testing.T) {
		path := sqlite.File(t.TempDir() + "/workers.db")
		cfg := engine.Config{Workers: 8, Queues: map[string]int{"mail": 2}}
		e, err := cfg.Open(t.Context(), path, f)
		require.NoError(t, err)
		<-time.After(3 * time.Millisecond)
		runs := startAll(t, e, f, numbers(40)...)
		running := func() int { synctest.Wait(); return queueNamed(t, e, "mail").Running }
		require.Equal(t, 2, running())
		command(t, e, workflow.SetWorkers("mail", 5, workflow.By("ann")))
		require.Equal(t, 5, running())
		says(t, e, runs[39].ID, "; its workers are set to 5 by ann")
		command(t, e, workflow.SetWorkers("mail", 1))
		require.Equal(t, 5, running(), "what runs goes on")
		<-time.After(12 * time.Second)
		require.Equal(t, 1, running())
		command(t, e, workflow.PauseQueue("mail"))
		command(t, e, workflow.ResumeQueue("mail"))
		require.NoError(t, e.Close())

		e, err = cfg.Open(t.Context(), path, f)
		require.NoError(t, err)
		<-time.After(3 * time.Millisecond)
		require.Equal(t, 1, running(), "it is remembered")
		command(t, e, workflow.SetWorkers("mail", 100))
		require.Equal(t, 8, running(), "Workers bounds it")
		q := queueNamed(t, e, "mail")
		require.Equal(t, []int{8, 2, 100}, []int{q.Workers, q.Defined, q.Set})
		command(t, e, workflow.ForgetWorkers("mail"))
		<-time.After(12 * time.Second)
		require.Equal(t, 2, running())
		endAll(t, e, runs)
		require.Zero(t, queueNamed(t, e, "mail").Set)
		require.NoError(t, integrity.Check(t.Context(), e))
		require.NoError(t, e.Close())
	})
}

// A number that is no number of workers is refused, with what to do.
func TestWorkersThatCannotBe(t *testing.T) {
	f := builder.MustFunc("f", busyFor(new(callLog), time.Second), builder.OnQueue("stopped"))
	inBubble(t, engine.Config{Queues: map[string]int{"stopped": 0}}, func(t *testing.T, e *engine.Engine) {
		_, err := e.Do(t.Context(), workflow.SetWorkers("mail", 0))
		require.ErrorIs(t, err, workflow.ErrBadCommand)
		require.ErrorContains(t, err, "pause it (tasq queue pause, workflow.PauseQueue)")
		_, err = e.Do(t.Context(), workflow.SetWorkers("mail", -3))
		require.ErrorContains(t, err, "-3 workers: give 1 to 1000000")
		command(t, e, workflow.SetWorkers("stopped", 5))
		startAll(t, e, f, 1)
		synctest.Wait()
		q := queueNamed(t, e, "stopped")
		require.Equal(t, []int{0, 0, 0, 5}, []int{q.Workers, q.Defined, q.Running, q.Set}, "a queue that the engine stops stays stopped")
	}, f)
}

// Other engines learn of the workers within a second, as of what else is set.
func TestEnginesLearnOfWorkers(t *testing.T) {
	f := newFleet(t)
	w := func() *builder.FuncRef[int, int] {
		return builder.MustFunc("f", busyFor(new(callLog), time.Millisecond), builder.OnQueue("mail"))
	}
	one, two := f.open(engine.Config{Workers: 8}, w()), f.open(engine.Config{Workers: 3}, w())
	command(t, one, workflow.SetWorkers("mail", 5))
	require.Equal(t, 5, queueNamed(t, one, "mail").Workers)
	began := time.Now()
	require.Eventually(t, func() bool { return queueNamed(t, two, "mail").Set == 5 }, 20*time.Second, 10*time.Millisecond)
	require.Less(t, time.Since(began), 5*time.Second)
	require.Equal(t, 3, queueNamed(t, two, "mail").Workers, "its own configuration bounds it")
	command(t, two, workflow.ForgetWorkers("mail"))
	require.Eventually(t, func() bool { return queueNamed(t, one, "mail").Set == 0 }, 20*time.Second, 10*time.Millisecond)
}

// Two engines that set parts of one setting at the same time, before either has learned of the other, overwrite nothing of each other.
func TestEnginesSetPartsOfASettingAtOnce(t *testing.T) {
	f := newFleet(t)
	w := func() *builder.FuncRef[int, int] {
		return builder.MustFunc("f", busyFor(new(callLog), time.Millisecond), builder.OnQueue("mail"),
			builder.Limits(builder.TakesBy(limit.Resource("db", 3), 1, strconv.Itoa)))
	}
	one, two := f.open(engine.Config{}, w()), f.open(engine.Config{}, w())
	var both sync.WaitGroup
	for n := 1; n <= 10; n++ {
		for e, list := range map[*engine.Engine][]workflow.Command{
			one: {workflow.SetWorkers("mail", n), workflow.SetLimit("db", int64(n+3)), workflow.SetLimitOf("db", "ada", int64(n+30))},
			two: {workflow.PauseQueue("mail"), workflow.SetLimitOf("db", "bob", int64(n+20))},
		} {
			both.Go(func() {
				for _, c := range list {
					_, err := e.Do(t.Context(), c)
					assert.NoError(t, err)
				}
			})
		}
		both.Wait()
		for _, e := range []*engine.Engine{one, two} {
			require.NoError(t, e.View(t.Context(), func(r store.Reader) error {
				all, err := r.Settings(t.Context())
				require.NoError(t, err)
				limits, queues, err := store.ReadControls(all)
				require.NoError(t, err)
				require.True(t, queues["mail"].Paused)
				require.NotNil(t, queues["mail"].Workers)
				require.Equal(t, n, queues["mail"].Workers.N)
				require.NotNil(t, limits["db"].N)
				require.EqualValues(t, n+3, *limits["db"].N)
				require.EqualValues(t, n+30, limits["db"].Keys["ada"].N)
				require.EqualValues(t, n+20, limits["db"].Keys["bob"].N)
				return nil
			}))
		}
		command(t, one, workflow.ResumeQueue("mail"))
		command(t, two, workflow.ForgetWorkers("mail"))
	}
}
