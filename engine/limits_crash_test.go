package engine_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/internal/integrity"
	"github.com/tasq-dev/tasq/limit"
	"github.com/tasq-dev/tasq/store"
)

// The limits of the killed processes: so many calls in a second, and so many at once.
const (
	callsPerSecond = 10
	callsAtOnce    = 2
)

// limited is a function that takes of a shared rate and of shared slots. Each call is a line in a file: when it began, and how many ran then.
func limited(log string) *builder.FuncRef[int, int] {
	var running atomic.Int32
	return builder.MustFunc("limited", func(_ context.Context, n int) (int, error) {
		began := time.Now()
		defer running.Add(-1)
		return n, appendLine(log, fmt.Sprint(began.UnixNano(), " ", running.Add(1)))
	}, builder.Limits(builder.Takes(limit.Calls(callsPerSecond, time.Second).Shared(), 1),
		builder.Takes(limit.Resource("slots", callsAtOnce).Shared(), 1)))
}

// A process is killed at its n-th commit, while runs hold shared slots, take of a shared rate and wait for both. All runs that it has acknowledged
// end, no second sees more calls than the rate admits, not the one of the kill either, and the rows say that no slot is taken.
func TestKillAtEveryCommitOfSharedLimits(t *testing.T) {
	t.Parallel() // it waits for engines to notice that one is dead
	cut{first: 25, last: 60, every: 12, nightly: 1}.each(t, func(t *testing.T, path string, n int, moment string) {
		survivesWithLimits(t, path, killed(t, "TestKilledProcessWithLimits", "TASQ_LIMIT_KILLED_PROCESS", path, n, moment, "started "))
	})
}

func survivesWithLimits(t *testing.T, path string, acknowledged []string) {
	f := limited(path + ".log")
	e, err := engine.Config{Workers: 4}.Open(t.Context(), storeOfKilled(path, smallWindow), f)
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var ended []string
	for c, err := range store.AllCases(ctx, e, store.CaseFilter{}) {
		require.NoError(t, err)
		last, err := e.Wait(ctx, c.ID)
		require.NoError(t, err, "run %s does not end: %v", c.ID, whyOf(t, e, c.ID))
		require.Equal(t, "completed", last.State.String())
		ended = append(ended, c.ID.String())
	}
	require.NotEmpty(t, acknowledged)
	require.Subset(t, ended, acknowledged)
	endAll(t, e, startAll(t, e, f, numbers(2*callsAtOnce)...)) // all slots are there
	require.Eventually(t, func() bool { return !strings.Contains(rowOf(t, e, "slots"), `"held"`) }, time.Minute, 10*time.Millisecond,
		"a slot is taken though nothing runs")
	require.NoError(t, integrity.Check(ctx, e))
	require.NoError(t, e.Close())
	requireWithinLimits(t, path+".log", len(ended)+2*callsAtOnce)
}

// rowOf is what the store keeps of a limit.
func rowOf(t *testing.T, e *engine.Engine, name string) (state string) {
	require.NoError(t, e.View(t.Context(), func(r store.Reader) error {
		view, err := r.LimitRows(t.Context(), store.LimitFilter{Keys: []store.LimitKey{{Limit: name}}})
		for _, row := range view.Rows {
			state = string(row.State)
		}
		return err
	}))
	return state
}

// requireWithinLimits reads the calls. A call begins a little after it is counted, by a time that varies; a tenth of the second is left for that.
func requireWithinLimits(t *testing.T, path string, least int) {
	file, err := os.Open(path)
	require.NoError(t, err)
	defer file.Close()
	var began []int64
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var at, running int64
		_, err := fmt.Sscan(lines.Text(), &at, &running)
		require.NoError(t, err)
		require.LessOrEqual(t, running, int64(callsAtOnce))
		began = append(began, at)
	}
	slices.Sort(began)
	require.GreaterOrEqual(t, len(began), least)
	for i := callsPerSecond; i < len(began); i++ {
		require.Greater(t, time.Duration(began[i]-began[i-callsPerSecond]), 900*time.Millisecond, "%d calls in a window, of %d", callsPerSecond+1, len(began))
	}
}

// TestKilledProcessWithLimits is the child process of TestKillAtEveryCommitOfSharedLimits; on its own it does nothing.
func TestKilledProcessWithLimits(t *testing.T) {
	path, o := toBeKilled(t, "TASQ_LIMIT_KILLED_PROCESS", 2, smallWindow)
	if o == nil {
		return
	}
	f := limited(path + ".log")
	e, err := engine.Config{Workers: 4}.Open(t.Context(), o, f)
	require.NoError(t, err)
	for n := 0; ; n++ {
		run, err := f.Run(t.Context(), e, n)
		require.NoError(t, err)
		fmt.Println("started", run.ID)
		if n%8 == 7 {
			_, err = run.Result(t.Context(), e)
			require.NoError(t, err)
		}
	}
}
