package engine_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/internal/integrity"
	"github.com/tasq-dev/tasq/limit"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workitem"
)

// docking is a workflow whose cases hold one of two berths over three tasks, whose work fails now and then. Each call is a line in a file.
func docking(log string) *builder.Workflow[int] {
	b := builder.New[int]("docking")
	does := func(name string) func(context.Context, int) (int, error) {
		return func(ctx context.Context, n int) (int, error) {
			w, _ := builder.WorkFrom(ctx)
			if err := appendLine(log, fmt.Sprintf("%s %d %s", name, n%2, w.Case.ID)); err != nil {
				return 0, err
			}
			if (n+len(name))%3 == 0 && w.Attempt == 1 {
				return 0, errors.New("not yet")
			}
			return n, nil
		}
	}
	again := retry.Constant(3, time.Millisecond)
	arrive := builder.Task(b, "arrive", builder.Work[int, int]{Input: builder.CaseInput(b), Run: does("arrive"), Retry: again})
	unload := builder.Task(b, "unload", builder.Work[int, int]{Input: builder.Output(arrive), Run: does("unload"), Retry: again})
	leave := builder.Task(b, "leave", builder.Work[int, int]{Input: builder.Output(unload), Run: does("leave"), Retry: again})
	b.Path(b.Start(), arrive, unload, leave, b.End())
	b.Hold(builder.TakesBy(limit.Resource("berth", 1), 1, func(n int) string { return fmt.Sprint(n % 2) }), arrive, leave)
	return b.MustBuild()
}

// A process is killed at its n-th commit, while cases hold berths and others wait for them. No two cases are ever at one berth, and all end.
func TestKillAtEveryCommitOfHolds(t *testing.T) {
	cut{first: 1, last: 60, every: 29, nightly: 1}.each(t, func(t *testing.T, path string, n int, moment string) {
		killed(t, "TestKilledProcessWithHolds", "TASQ_HOLD_KILLED_PROCESS", path, n, moment, "")
		e, err := engine.Open(t.Context(), storeOfKilled(path), docking(path+".log"))
		require.NoError(t, err)
		require.NoError(t, integrity.Check(t.Context(), e), "just after opening")
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		for c, err := range store.AllCases(ctx, e, store.CaseFilter{}) {
			require.NoError(t, err)
			ended, err := e.Wait(ctx, c.ID)
			require.NoError(t, err, "case %s does not end: %v", c.ID, whyOf(t, e, c.ID))
			require.Equal(t, "completed", ended.State.String())
		}
		require.NoError(t, integrity.Check(t.Context(), e), "at the end")
		require.NoError(t, e.Close())
		requireOneAtEachBerth(t, path+".log")
	})
}

// whyOf says what a case waits for.
func whyOf(t *testing.T, e *engine.Engine, id workitem.CaseID) string {
	answer, err := e.Why(t.Context(), id)
	if err != nil {
		return err.Error()
	}
	return answer.String()
}

// requireOneAtEachBerth reads the calls: a case arrives where none is, or where it is itself.
func requireOneAtEachBerth(t *testing.T, path string) {
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	at := make(map[string]string)
	for lines := bufio.NewScanner(f); lines.Scan(); {
		part := strings.Fields(lines.Text())
		what, berth, id := part[0], part[1], part[2]
		if other, taken := at[berth]; taken && other != id && what != "leave" {
			require.Failf(t, "two cases are at one berth", "%s at %s: case %s, and case %s has not left", what, berth, id, other)
		}
		if at[berth] = id; what == "leave" {
			delete(at, berth)
		}
	}
}

// TestKilledProcessWithHolds is the child process of TestKillAtEveryCommitOfHolds; on its own it does nothing.
func TestKilledProcessWithHolds(t *testing.T) {
	path, o := toBeKilled(t, "TASQ_HOLD_KILLED_PROCESS", 2, smallWindow)
	if o == nil {
		return
	}
	w := docking(path + ".log")
	e, err := engine.Config{Workers: 4}.Open(t.Context(), o, w)
	require.NoError(t, err)
	for n := 1; ; n++ {
		_, err := w.Start(t.Context(), e, n)
		require.NoError(t, err)
	}
}
