package engine_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"strings"
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
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// runCuts is how many commits of a history of runs are cut, each once before and once after it is durable.
const runCuts = 20

// TestKillAtEveryCommitOfRuns is like TestKillAtEveryCommit for functions: attempts, handlers that fail, cancels, clean-ups, and a
// sweep that follows close behind. However the process dies, each run that was started tells its handler exactly once, tells
// the one for later at least once, and is there afterwards or gone as it should be. Eight processes are killed by default; the
// nightly form cuts each commit from the third on.
func TestKillAtEveryCommitOfRuns(t *testing.T) {
	cut{first: 3, last: 6 * runCuts, every: 39, nightly: 1}.each(t, func(t *testing.T, path string, n int, moment string) {
		killed(t, "TestKilledProcessWithRuns", "TASQ_RUN_KILLED_PROCESS", path, n, moment, "")
		surviveRuns(t, path)
	})
}

// killedFuncs are the functions of the killed process: runs of one are kept, those of the other are swept almost at once.
type killedFuncs struct {
	long, brief *builder.FuncRef[int, int]
	now         *builder.HandlerRef[int]
	later       *builder.LaterRef[int]
}

func newKilledFuncs(path string) *killedFuncs {
	var calls atomic.Int64
	v := &killedFuncs{}
	v.now = builder.Handler("now", func(ctx context.Context, c *builder.Completion[int], n int) error {
		if _, err := c.DB().ExecContext(ctx, "INSERT INTO told VALUES ($1, $2)", c.Case.ID.String(), string(c.State)); err != nil {
			return err
		}
		if calls.Add(1)%4 == 0 {
			return errors.New("not now")
		}
		if n%11 == 0 {
			return c.Run().Cleanup(ctx, c)
		}
		return nil
	})
	v.later = builder.LaterHandler("later", func(_ context.Context, e builder.Ended[int], n int) error {
		return appendLine(path+".later", e.Case.ID.String())
	}, builder.JobOptions{Retry: retry.Constant(3, time.Millisecond)})
	work := func(ctx context.Context, n int) (int, error) {
		w, _ := builder.WorkFrom(ctx)
		if n%7 == 0 || n%3 == 0 && w.Attempt == 1 {
			return 0, errors.New("not yet")
		}
		return n, nil
	}
	opts := []builder.FuncOption{builder.Handles(v.now, v.later), builder.Retry(func(p *retry.Policy) {
		p.Attempts, p.Initial = 2, time.Millisecond
	})}
	v.long = builder.MustFunc("long", work, append(opts, builder.Keep(builder.Forever))...)
	v.brief = builder.MustFunc("brief", work, append(opts, builder.Keep(time.Millisecond))...)
	return v
}

func appendLine(path, line string) error {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(line + "\n")
	return errors.Join(err, f.Close())
}

// TestKilledProcessWithRuns is the child process of TestKillAtEveryCommitOfRuns; on its own it does nothing.
func TestKilledProcessWithRuns(t *testing.T) {
	path, o := toBeKilled(t, "TASQ_RUN_KILLED_PROCESS", 2, smallWindow)
	if o == nil {
		return
	}
	v := newKilledFuncs(path)
	e, err := engine.Config{Workers: 4}.Open(t.Context(), o, v.long, v.brief)
	require.NoError(t, err)
	require.NoError(t, e.Update(t.Context(), func(tx *engine.Tx) error {
		_, err := tx.DB().ExecContext(t.Context(), "CREATE TABLE started (id TEXT, action TEXT, later BOOLEAN); "+
			"CREATE TABLE told (id TEXT, state TEXT)")
		return err
	}))
	random := rand.New(rand.NewPCG(5, 6))
	var runs []builder.Run[int]
	for n := 1; ; n++ {
		runs = v.step(t, e, runs, random, n)
	}
}

// step starts a run, noting it in the same transaction, or cancels or cleans up some earlier one.
func (v *killedFuncs) step(t *testing.T, e *engine.Engine, runs []builder.Run[int], random *rand.Rand, n int) []builder.Run[int] {
	ctx := t.Context()
	if k := random.IntN(10); k < 2 && len(runs) > 0 {
		_, err := runs[random.IntN(len(runs))].Cancel(ctx, e, nil)
		require.NoError(t, err)
		return runs
	}
	a, later := v.long, n%2 == 0
	if random.IntN(2) == 0 {
		a = v.brief
	}
	opts := []workflow.Option{builder.OnComplete(v.now, n)}
	if later {
		opts = append(opts, builder.OnCompleteLater(v.later, n))
	}
	if n%5 == 0 {
		opts = append(opts, workflow.After(2*time.Millisecond))
	}
	require.NoError(t, e.Update(ctx, func(tx *engine.Tx) error {
		run, err := a.Run(ctx, tx, n, opts...)
		if err != nil {
			return err
		}
		runs = append(runs, run)
		_, err = tx.DB().ExecContext(ctx, "INSERT INTO started VALUES ($1, $2, $3)", run.ID.String(), a.Name, later)
		return err
	}))
	return runs
}

// surviveRuns opens what the killed process left, has everything done, and looks at what became of each run.
func surviveRuns(t *testing.T, path string) {
	t.Helper()
	v := newKilledFuncs(path)
	e := enginetest.Open(t, storeOfKilled(path), engine.Config{Workers: 4}, v.long, v.brief)
	awaitDeath(t, path)
	e.Check()
	e.Advance(time.Hour)
	lines, err := os.ReadFile(path + ".later")
	if !errors.Is(err, os.ErrNotExist) {
		require.NoError(t, err)
	}
	require.NoError(t, e.View(t.Context(), func(r store.Reader) error {
		var none int
		tables := "sqlite_schema WHERE name = 'told'"
		if domain.DialectOf(r.DB()) == domain.Postgres {
			tables = "pg_tables WHERE tablename = 'told'"
		}
		if err := r.DB().QueryRowContext(t.Context(), "SELECT count(*) FROM "+tables).Scan(&none); err != nil || none == 0 {
			return err // it died before there was anything to tell
		}
		rows, err := r.DB().QueryContext(t.Context(), "SELECT s.id, s.action, s.later, count(t.id), COALESCE(max(t.state), '') "+
			"FROM started s LEFT JOIN told t ON t.id = s.id GROUP BY s.id, s.action, s.later")
		require.NoError(t, err)
		for rows.Next() {
			var id, action, state string
			var later bool
			var told int
			require.NoError(t, rows.Scan(&id, &action, &later, &told, &state))
			require.Equal(t, 1, told, "run %s of %s, %s", id, action, state)
			if later {
				require.Contains(t, string(lines), id)
			}
			key, err := workitem.ParseCaseID(id)
			require.NoError(t, err)
			cases, err := r.Cases(t.Context(), store.CaseFilter{ID: key})
			require.NoError(t, err)
			if len(cases) == 0 {
				continue // swept, or cleaned up by its handler
			}
			require.Equal(t, "long", action, "run %s should have been swept", id)
			require.Equal(t, state, cases[0].State.String())
		}
		require.NoError(t, rows.Err())
		var unknown int
		require.NoError(t, r.DB().QueryRowContext(t.Context(),
			"SELECT count(*) FROM told WHERE id NOT IN (SELECT id FROM started)").Scan(&unknown))
		require.Zero(t, unknown)
		var left int
		require.NoError(t, r.DB().QueryRowContext(t.Context(),
			"SELECT count(*) FROM "+domain.Table(r.DB(), "cases")+" WHERE workflow = 'brief'").Scan(&left))
		require.Zero(t, left)
		require.NotContains(t, strings.Fields(string(lines)), "")
		return nil
	}))
}
