package engine_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/engine/internal/kernel"
	"github.com/tasq-dev/tasq/store/sqlite"
	"github.com/tasq-dev/tasq/workflow"
)

// poison is an action that ends its process as soon as it is called, and leaves a line for each call.
func poison(path string) *builder.FuncRef[int, int] {
	return builder.MustFunc("poison", func(context.Context, int) (int, error) {
		f, err := os.OpenFile(path+".calls", os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err == nil {
			_, err = f.WriteString("called\n")
		}
		if err != nil {
			return 0, err
		}
		die()
		return 0, nil
	})
}

// A job that ends every process that calls it is given up: MaxCrashes calls are borne, and the one after them is the last. Each is
// counted, since its claim is durable before the job runs; see docs/decisions/005.
func TestAJobThatKillsItsWorkerIsCalledFourTimes(t *testing.T) {
	if testing.Short() {
		t.Skip("starts several processes; run without -short")
	}
	t.Parallel()
	path := filepath.Join(t.TempDir(), "poison.db")
	deaths := 0
	for ; deaths < 10; deaths++ {
		cmd := exec.Command(os.Args[0], "-test.run=^TestKilledWorkerProcess$", "-test.count=1")
		cmd.Env = append(os.Environ(), "TASQ_POISON="+path)
		if cmd.Run() == nil {
			break
		}
	}
	data, err := os.ReadFile(path + ".calls")
	require.NoError(t, err)
	calls := strings.Count(string(data), "called")
	require.Equal(t, deaths, calls)
	require.Equal(t, kernel.MaxCrashes+1, calls)
	e := enginetest.Open(t, sqlite.File(path), engine.Config{}, poison(path))
	e.Drain()
	require.Equal(t, calls, deaths, "it is not called again")
}

// TestKilledWorkerProcess is the process of TestAJobThatKillsItsWorkerIsCalledFourTimes; on its own it does nothing.
func TestKilledWorkerProcess(t *testing.T) {
	path := os.Getenv("TASQ_POISON")
	if path == "" {
		return
	}
	a := poison(path)
	e, err := engine.Open(t.Context(), sqlite.File(path), a)
	require.NoError(t, err)
	_, err = a.Run(t.Context(), e, 1, workflow.Key("once"))
	require.NoError(t, err)
	require.NoError(t, e.Drain(t.Context()))
	require.NoError(t, e.Close())
}
