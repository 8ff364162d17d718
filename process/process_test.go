//go:build unix

package process_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/internal/virtual"
	"github.com/tasq-dev/tasq/process"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/workitem"
)

type page struct {
	Title string   `json:"title"`
	Args  []string `json:"args,omitempty"`
	Env   []string `json:"env,omitempty"`
	Dir   string   `json:"dir,omitempty"`
}

// TestMain is also the program that the tests run.
func TestMain(m *testing.M) {
	if os.Getenv("TASQ_PROGRAM") == "" {
		os.Exit(m.Run())
	}
	var p page
	if err := json.NewDecoder(os.Stdin).Decode(&p); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	p.Args, p.Env = os.Args[1:], os.Environ()
	p.Dir, _ = os.Getwd()
	_ = json.NewEncoder(os.Stdout).Encode(p)
}

func shell(t *testing.T, script string) process.Command {
	return process.Command{Argv: []string{"/bin/sh", "-c", script}, Dir: t.TempDir(), Env: []string{"PATH=/usr/bin:/bin"}}
}

func TestAProgramGetsJSONAndReturnsJSON(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	t.Setenv("SECRET", "of the calling process")
	dir, err := os.MkdirTemp("/tmp", "process")
	require.NoError(t, err)
	defer func() { require.NoError(t, os.RemoveAll(dir)) }()
	c := process.Command{Argv: []string{self, "a", "b c"}, Dir: dir, Env: []string{"TASQ_PROGRAM=1"}}
	got, err := process.Call[page](t.Context(), c, page{Title: "nets"})
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b c"}, got.Args)
	require.Equal(t, "nets", got.Title)
	require.True(t, strings.HasSuffix(got.Dir, dir))
	for _, v := range got.Env {
		require.True(t, strings.HasPrefix(v, "TASQ_PROGRAM=") || strings.HasPrefix(v, "PWD="), "nothing is taken over: %s", v)
	}
}

func TestAProgramThatFails(t *testing.T) {
	c := shell(t, "echo working >&2; echo 'no such page' >&2; exit 3")
	var log strings.Builder
	c.Stderr, c.Permanent = &log, []int{4}
	_, err := process.Call[page](t.Context(), c, 1)
	exit, ok := errors.AsType[*process.ExitError](err)
	require.True(t, ok)
	require.Equal(t, 3, exit.Code)
	require.EqualError(t, err, "/bin/sh exited with 3: no such page")
	require.Equal(t, "working\nno such page\n", log.String())
	require.False(t, retry.IsPermanent(err))
	failure := workitem.FailureOf(err)
	require.Equal(t, "exit", failure.Code)
	require.True(t, failure.Retryable)
	require.JSONEq(t, `{"exit": 3, "stderr": "working\nno such page\n"}`, string(failure.Details))

	c = shell(t, "exit 4")
	c.Permanent = []int{4}
	_, err = process.Call[page](t.Context(), c, 1)
	require.EqualError(t, err, "/bin/sh exited with 4")
	require.False(t, workitem.FailureOf(err).Retryable)

	_, err = process.Call[page](t.Context(), shell(t, "kill -9 $$"), 1)
	require.EqualError(t, err, "/bin/sh was ended by a signal: killed")

	_, err = process.Call[page](t.Context(), shell(t, "i=0; while [ $i -lt 3000 ]; do echo line $i >&2; i=$((i+1)); done; exit 1"), 1)
	exit, _ = errors.AsType[*process.ExitError](err)
	require.Len(t, exit.Stderr, 4096)
	require.ErrorContains(t, err, "line 2999")
}

func TestInvalidResults(t *testing.T) {
	for script, want := range map[string]string{
		"true":                      "unexpected end of JSON input",
		"echo '{\"title\": 1}'":     "cannot unmarshal number",
		"echo '{}' '{}'":            "after top-level value",
		"head -c 5000000 /dev/zero": "it is longer than 1000 bytes",
		"yes":                       "it is longer than 1000 bytes",
	} {
		c := shell(t, script)
		c.MaxOutput = 1000
		_, err := process.Call[page](t.Context(), c, 1)
		wrong, ok := errors.AsType[*process.OutputError](err)
		require.True(t, ok, "%s: %v", script, err)
		require.ErrorContains(t, err, "/bin/sh wrote no valid result: ")
		require.ErrorContains(t, err, want)
		require.Equal(t, "output", workitem.FailureOf(wrong).Code)
	}
	got, err := process.Call[int](t.Context(), shell(t, "exec cat"), 7)
	require.NoError(t, err)
	require.Equal(t, 7, got)
}

// A program need not read its input, however long.
func TestAnInputThatIsNotRead(t *testing.T) {
	got, err := process.Call[string](t.Context(), shell(t, `echo '"done"'`), strings.Repeat("x", 1<<20))
	require.NoError(t, err)
	require.Equal(t, "done", got)
}

// ready is a writer that says when a program has written "ready".
type ready struct {
	once sync.Once
	c    chan struct{}
}

func (r *ready) Write(b []byte) (int, error) {
	if strings.Contains(string(b), "ready") {
		r.once.Do(func() { close(r.c) })
	}
	return len(b), nil
}

// The clock of these tests does not move by itself. So Call returns only if all that holds the pipes has been ended.
func TestAContextThatEndsEndsTheGroup(t *testing.T) {
	why := errors.New("the lease was lost")
	for name, script := range map[string]string{
		"the program and what it started": "sleep 1000 & sleep 1000 & echo ready >&2; wait",
		"one that ends by itself":         "trap 'exit 9' TERM; sleep 1000 & echo ready >&2; wait",
	} {
		t.Run(name, func(t *testing.T) {
			c, r := shell(t, script), &ready{c: make(chan struct{})}
			c.Stderr, c.Clock = r, virtual.NewClock()
			ctx, cancel := context.WithCancelCause(t.Context())
			go func() {
				<-r.c
				cancel(why)
			}()
			_, err := process.Call[page](ctx, c, 1)
			require.ErrorIs(t, err, why)
			require.ErrorContains(t, err, "/bin/sh was stopped: the lease was lost")
		})
	}
}

func TestAProgramThatIgnoresTheSignalIsKilled(t *testing.T) {
	clock, r := virtual.NewClock(), &ready{c: make(chan struct{})}
	c := shell(t, "trap 'echo not yet >&2' TERM; while true; do echo ready >&2; sleep 1000 & wait; done")
	log := &lines{want: "not yet", found: make(chan struct{})}
	c.Stderr, c.Clock, c.Grace = io.MultiWriter(r, log), clock, time.Minute
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-r.c
		cancel()
		<-log.found
		clock.Set(clock.Now().Add(time.Minute))
	}()
	_, err := process.Call[page](ctx, c, 1)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorContains(t, err, "was ended by a signal: killed")
}

// lines is a writer that says when a text was written.
type lines struct {
	all   strings.Builder
	want  string
	found chan struct{}
	once  sync.Once
}

func (l *lines) Write(b []byte) (int, error) {
	l.all.Write(b)
	if strings.Contains(l.all.String(), l.want) {
		l.once.Do(func() { close(l.found) })
	}
	return len(b), nil
}

// What a program leaves behind does not hold up its result, and is ended.
func TestChildProcessesAreEndedWithProgram(t *testing.T) {
	c := shell(t, `sleep 1000 & echo '"done"'`)
	c.Clock = virtual.NewClock()
	got, err := process.Call[string](t.Context(), c, 1)
	require.NoError(t, err)
	require.Equal(t, "done", got)
}

func TestCommandsThatCannotBeRun(t *testing.T) {
	_, err := process.Call[int](t.Context(), process.Command{Env: []string{"PATH"}, Grace: -1}, 1)
	require.ErrorIs(t, err, process.ErrInvalid)
	require.True(t, retry.IsPermanent(err))
	require.EqualError(t, err, "invalid command: Argv names no program; Dir is empty: name the folder to run in; "+
		`Env has "PATH": use KEY=value; Grace or MaxOutput is negative: use 0 for the default`)
	c := shell(t, "")
	c.Argv = []string{"/no/such/program"}
	_, err = process.Call[int](t.Context(), c, 1)
	require.ErrorIs(t, err, os.ErrNotExist)
	require.ErrorContains(t, err, "/no/such/program cannot be run: ")
	_, err = process.Call[int](t.Context(), c, func() {})
	require.ErrorContains(t, err, "the input of /no/such/program has no JSON form")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = process.Call[int](ctx, c, 1)
	require.ErrorIs(t, err, context.Canceled)
}
