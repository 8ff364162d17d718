package engine_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/engine/why"
	"github.com/tasq-dev/tasq/limit"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/postgres"
	"github.com/tasq-dev/tasq/store/sqlite"
	"github.com/tasq-dev/tasq/workflow"
)

// The jobs of a paused key do not start, those of other keys do, and the running one continues. As the key is resumed, its jobs take turns with the
// others, and do not all go first.
func TestAKeyOfAQueueIsPaused(t *testing.T) {
	var b beginnings
	f := builder.MustFunc("f", b.work, builder.FairBy(tenant))
	inBubble(t, engine.Config{Workers: 1, Aging: time.Hour}, func(t *testing.T, e *engine.Engine) {
		runs := startAll(t, e, f, jobsOf("a", 5)...)
		synctest.Wait()
		do := func(c workflow.Command) {
			_, err := e.Do(t.Context(), c)
			require.NoError(t, err)
		}
		do(workflow.PauseKey("", "a", workflow.By("ann"), workflow.Because("too many")))
		do(workflow.PauseKey("", "x"))
		others := startAll(t, e, f, slices.Concat(jobsOf("b", 3), jobsOf("c", 1))...)
		runs = append(runs, startAll(t, e, f, "a6")...)
		<-time.After(10 * time.Second)
		require.Equal(t, "a1 b1 c1 b2 b3", b.take())
		says(t, e, runs[5].ID, `key a of the default queue is paused by ann for 10s: resume it with tasq queue resume '' --key a`)
		require.NoError(t, e.View(t.Context(), func(r store.Reader) error {
			answer, err := why.Read(t.Context(), r, runs[1].ID, time.Now(), why.Here{})
			require.Contains(t, answer.String(), "(keys a, x of the queue are paused; only the program that runs the job knows whether its key is one of them)")
			return err
		}))
		result, err := e.Do(t.Context(), workflow.Queues())
		require.NoError(t, err)
		require.False(t, result.Queues[0].Paused)
		require.Equal(t, 5, result.Queues[0].Waiting)
		require.Equal(t, []string{"a ann too many", "x  "}, pausedKeys(result.Queues[0]))
		result, err = e.Do(t.Context(), workflow.LimitWaits(runs[1].ID))
		require.NoError(t, err)
		require.Equal(t, "a", result.Waits[0].QueueKey)

		others = append(others, startAll(t, e, f, jobsOf("d", 3)...)...)
		synctest.Wait()
		do(workflow.ResumeKey("", "x"))
		do(workflow.ResumeKey("", "a"))
		endAll(t, e, append(runs, others...))
		require.Equal(t, "d1 d2 a2 d3 a3 a4 a5 a6", b.take())
	}, f)
}

func pausedKeys(q workflow.QueueInfo) (keys []string) {
	for _, k := range q.PausedKeys {
		keys = append(keys, fmt.Sprint(k.Key, " ", k.By, " ", k.Reason))
	}
	return keys
}

// A pause of a key outlives the engine on both stores. A job that waits for a limit as its key is paused does not start when there is room, and
// holds up no other.
func TestAPausedKeyIsRemembered(t *testing.T) {
	for name, in := range map[string]func(*testing.T) store.Opener{
		"sqlite":   func(t *testing.T) store.Opener { return sqlite.File(t.TempDir() + "/keys.db") },
		"postgres": func(t *testing.T) store.Opener { return postgres.Open(prepared.Database(t)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var b beginnings
			f := builder.MustFunc("f", b.note, builder.FairBy(tenant), builder.OnQueue("mail"),
				builder.Limits(builder.Takes(limit.Calls(1, time.Minute), 1)))
			e := enginetest.Open(t, in(t), engine.Config{Workers: 2}, f)
			for _, n := range []string{"b0", "a1", "b1", "a2", "b2"} {
				_, err := f.Run(t.Context(), e, n)
				require.NoError(t, err)
				e.Drain()
			}
			require.Equal(t, "b0", b.take())
			require.NoError(t, enginetest.Do(t.Context(), e, workflow.PauseKey("mail", "a")))
			e.Advance(time.Minute)
			require.Equal(t, "b1", b.take())
			e.Crash()
			e.Advance(10 * time.Minute)
			require.Equal(t, "b2", b.take())
			require.NoError(t, enginetest.Do(t.Context(), e, workflow.PauseQueue("mail")))
			require.NoError(t, enginetest.Do(t.Context(), e, workflow.ResumeKey("mail", "a")))
			e.Advance(10 * time.Minute)
			require.Empty(t, b.take(), "the queue is paused")
			require.NoError(t, enginetest.Do(t.Context(), e, workflow.ResumeQueue("mail")))
			e.Advance(10 * time.Minute)
			require.Equal(t, "a1 a2", b.take())
		})
	}
}

// Another engine learns of a paused key.
func TestEnginesLearnOfAPausedKey(t *testing.T) {
	f := newFleet(t)
	w := func() *builder.FuncRef[string, string] {
		return builder.MustFunc("f", new(beginnings).note, builder.FairBy(tenant))
	}
	a, b := f.open(engine.Config{}, w()), f.open(engine.Config{}, w())
	_, err := a.Do(t.Context(), workflow.PauseKey("", "a"))
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		r, err := b.Do(t.Context(), workflow.Queues())
		require.NoError(t, err)
		return len(r.Queues) > 0 && len(r.Queues[0].PausedKeys) == 1
	}, 30*time.Second, 10*time.Millisecond)
}

// A key has a name, and not all keys can be paused.
func TestAKeyThatCannotBePaused(t *testing.T) {
	e := enginetest.New(t, builder.MustFunc("f", new(beginnings).note, builder.FairBy(tenant)))
	require.ErrorContains(t, enginetest.Do(t.Context(), e, workflow.PauseKey("mail", "")), `the key of queue "mail" is empty`)
	require.ErrorIs(t, enginetest.Do(t.Context(), e, workflow.ResumeKey("", "")), workflow.ErrBadCommand)
	require.NoError(t, e.Update(t.Context(), func(tx *engine.Tx) error {
		for i := range workflow.MaxPausedKeys {
			if err := enginetest.Do(t.Context(), tx, workflow.PauseKey("", fmt.Sprint(i))); err != nil {
				return err
			}
		}
		return nil
	}))
	require.ErrorContains(t, enginetest.Do(t.Context(), e, workflow.PauseKey("", "more")), "1000 keys of queue \"\" are paused")
	require.NoError(t, enginetest.Do(t.Context(), e, workflow.PauseKey("", "1")))
}

// A worker that is free when a job is created does not start it if its key is paused.
func TestAPausedKeyDoesNotStartOnAFreeWorker(t *testing.T) {
	t.Parallel()
	var b beginnings
	f := builder.MustFunc("f", b.note, builder.FairBy(tenant))
	e := enginetest.New(t, f)
	require.NoError(t, enginetest.Do(t.Context(), e, workflow.PauseKey("", "a")))
	startAll(t, e.Engine, f, "a1", "b1")
	e.Drain()
	require.Equal(t, "b1", b.take())
	require.NoError(t, enginetest.Do(t.Context(), e, workflow.ResumeKey("", "a")))
	e.Drain()
	require.Equal(t, "a1", b.take())
}
