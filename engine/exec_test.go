//go:build unix

package engine_test

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/process"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// script is a command of a shell in a folder of its own.
func script(t *testing.T, text string) process.Command {
	return process.Command{Argv: []string{"/bin/sh", "-c", text}, Dir: t.TempDir(), Env: []string{"PATH=/usr/bin:/bin"}}
}

// A program fails twice, and is tried again as any function is.
func TestAProgramIsAFunction(t *testing.T) {
	const twice = `echo called >> calls; test $(wc -l < calls) -gt 2 || { echo "connection refused" >&2; exit 3; }
		read amount; echo "{\"number\": \"R-$amount\"}"`
	command := script(t, twice)
	charge, err := builder.Exec[int, receipt]("charge", command)
	require.NoError(t, err)
	e := enginetest.New(t, charge)
	run, err := charge.Run(t.Context(), e, 42)
	require.NoError(t, err)
	e.Drain()
	s, err := run.Status(t.Context(), e)
	require.NoError(t, err)
	require.Equal(t, workflow.RunWaiting, s.State)
	e.Advance(builder.DefaultFirstWait)
	e.Advance(2 * builder.DefaultFirstWait)
	got, err := run.Result(t.Context(), e)
	require.NoError(t, err)
	require.Equal(t, receipt{"R-42"}, got)
	calls, err := os.ReadFile(filepath.Join(command.Dir, "calls"))
	require.NoError(t, err)
	require.Equal(t, 3, strings.Count(string(calls), "called"))
}

// An exit code of Permanent ends the run at once; code and standard error are kept with the failure.
func TestAnExitCodeThatIsPermanent(t *testing.T) {
	command := script(t, "echo 'the card is stolen' >&2; exit 4")
	command.Permanent = []int{4}
	charge, err := builder.Exec[int, receipt]("charge", command)
	require.NoError(t, err)
	e := enginetest.New(t, charge)
	run, err := charge.Run(t.Context(), e, 42)
	require.NoError(t, err)
	e.Drain()
	s, err := run.Status(t.Context(), e)
	require.NoError(t, err)
	require.Equal(t, workflow.RunFailed, s.State)
	require.Equal(t, 1, s.Attempt)
	require.Equal(t, "exit", s.Failure.Code)
	require.JSONEq(t, `{"exit": 4, "stderr": "the card is stolen\n"}`, string(s.Failure.Details))
}

// started is a writer that says that a program has written something.
type started struct {
	once sync.Once
	c    chan struct{}
}

func (s *started) Write(b []byte) (int, error) {
	s.once.Do(func() { close(s.c) })
	return len(b), nil
}

// A canceled run ends its program, and what that started.
func TestACanceledRunEndsItsProgram(t *testing.T) {
	ready := &started{c: make(chan struct{})}
	command := script(t, "sleep 1000 & echo ready >&2; wait")
	command.Stderr = ready
	slow, err := builder.Exec[int, int]("slow", command)
	require.NoError(t, err)
	e := enginetest.New(t, slow)
	run, err := slow.Run(t.Context(), e, 1)
	require.NoError(t, err)
	<-ready.c
	done, err := run.Cancel(t.Context(), e, workitem.Failf("changed", "not needed any more"))
	require.NoError(t, err)
	require.True(t, done)
	e.Drain() // waits for the worker, and so for the program
	_, err = run.Result(t.Context(), e)
	require.ErrorIs(t, err, builder.ErrCanceled)
}

func TestAProgramThatCannotBeRunIsAProblem(t *testing.T) {
	_, err := builder.Exec[int, int]("slow", process.Command{Argv: []string{"/bin/true"}})
	require.ErrorContains(t, err, "bad-process")
	require.ErrorContains(t, err, `the process of function "slow": invalid command: Dir is empty: name the folder to run in`)
}
