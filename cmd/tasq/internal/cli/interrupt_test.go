package cli_test

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/cmd/tasq/internal/cli"
	real "github.com/tasq-dev/tasq/cmd/tasq/internal/demo"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/sqlite"
	"github.com/tasq-dev/tasq/workitem"
)

// call runs the command in this process.
func call(ctx context.Context, args ...string) (code int, out, errs string) {
	var o, e bytes.Buffer
	code = cli.Main(ctx, args, cli.Streams{In: strings.NewReader(""), Out: &o, Err: &e}, cli.Registry{})
	return code, o.String(), e.String()
}

// stuck is a database with a case, owned by a process that answers no one.
func stuck(t *testing.T) (path string, id workitem.CaseID, owner store.Store) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "a.db")
	w := article()
	e, err := engine.Config{Workers: -1}.Open(t.Context(), sqlite.File(path), w)
	require.NoError(t, err)
	id, err = w.Start(t.Context(), e, prompt{Text: "alpha"})
	require.NoError(t, err)
	require.NoError(t, e.Close())
	s, err := sqlite.File(path).Open(t.Context(), store.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return path, id, s
}

func TestAnInterruptedCommandDidNotHappen(t *testing.T) {
	t.Parallel()
	path, id, _ := stuck(t)
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel) // as Ctrl-C does
	code, out, errs := call(ctx, "case", "cancel", id.String(), "--db", path, "--timeout", "1h")
	require.Equal(t, cli.ExitInterrupted, code)
	require.Empty(t, out)
	require.Equal(t, "tasq: interrupted\n", errs)

	_, out, _ = call(t.Context(), "cases", "--db", path)
	require.Contains(t, out, " started ")
}

// waiting is a terminal at which no one types: reading from it, the command is interrupted, and nothing ever comes.
type waiting struct {
	interrupt context.CancelFunc
	end       <-chan struct{}
}

func (w waiting) Read([]byte) (int, error) {
	w.interrupt()
	<-w.end
	return 0, io.EOF
}

func TestACommandThatWaitsForInputIsInterrupted(t *testing.T) {
	t.Parallel()
	end := make(chan struct{})
	defer close(end)
	for _, args := range [][]string{
		{"check", "-"}, {"draw", "-"}, {"convert", "-", "-f", "net"}, {"case", "start", "article", "--data", "-", "--db", "none.db"},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		var out, errs bytes.Buffer
		code := cli.Main(ctx, args, cli.Streams{In: waiting{cancel, end}, Out: &out, Err: &errs}, cli.Registry{})
		require.Equal(t, cli.ExitInterrupted, code, args)
		require.Empty(t, out.String(), args)
		require.Equal(t, "tasq: interrupted\n", errs.String(), args)
	}
}

func TestAnOwnerThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	path, id, _ := stuck(t)
	code, _, errs := call(t.Context(), "case", "cancel", id.String(), "--db", path, "--timeout", "30ms")
	require.Equal(t, cli.ExitDatabase, code)
	require.Contains(t, errs, "did not answer within 30ms, and the command did not happen")

	code, _, errs = call(t.Context(), "case", "cancel", id.String(), "--db", path, "--queue")
	require.Equal(t, cli.ExitOK, code)
	require.Contains(t, errs, "left in "+path)
}

// An owner that goes without an answer, as another call of tasq does that has done its own command, leaves the command
// to who asked.
func TestAnOwnerThatGoes(t *testing.T) {
	t.Parallel()
	path, id, owner := stuck(t)
	asked := make(chan struct{})
	go func() {
		defer close(asked)
		ticker := time.NewTicker(time.Millisecond)
		defer ticker.Stop()
		for range ticker.C {
			if waiting, err := owner.(store.Watcher).Changed(t.Context()); waiting || err != nil {
				_ = owner.Close()
				return
			}
		}
	}()
	// The case is of a workflow that only the test has, so that the refusal of this process says who it is from.
	code, _, errs := call(t.Context(), "case", "cancel", id.String(), "--db", path, "--timeout", "1h")
	<-asked
	require.Equal(t, cli.ExitRefused, code, errs)
	require.Contains(t, errs, "and no process owns "+path)
}

func TestAnInterruptedRunOfScenarios(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	code, _, errs := call(ctx, "version")
	require.Equal(t, cli.ExitInterrupted, code)
	require.Equal(t, "tasq: interrupted\n", errs)
}

// A reader that goes away, as head does, ends a listing with an error and not with a panic.
func TestOutputWithoutReader(t *testing.T) {
	t.Parallel()
	path, _, _ := stuck(t)
	for _, args := range [][]string{{"cases"}, {"cases", "-o", "json"}, {"items"}, {"jobs"}, {"items", "--counts"}} {
		var errs bytes.Buffer
		code := cli.Main(t.Context(), append(args, "--db", path), cli.Streams{Out: closed{}, Err: &errs}, cli.Registry{})
		require.NotEqual(t, cli.ExitOK, code, args)
		require.Contains(t, errs.String(), "closed pipe")
	}
	for _, args := range [][]string{{"--help"}, {"help", "items"}, {"items", "--help"}, {"demo", "--help"}, {"demo", "order", "-h"}, {"help", "demo"}} {
		var errs bytes.Buffer
		code := cli.Main(t.Context(), args, cli.Streams{Out: closed{}, Err: &errs}, cli.Registry{Demo: real.Command})
		require.Equal(t, cli.ExitDatabase, code, args)
		require.Equal(t, "tasq: io: read/write on closed pipe\n", errs.String(), args)
	}
}

// The output that cannot be written is named, and not taken for the database: the command may have done what it was to do.
func TestOutputThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	path, _, owner := stuck(t)
	require.NoError(t, owner.Close())
	name := filepath.Join(t.TempDir(), "out")
	require.NoError(t, os.WriteFile(name, nil, 0o600))
	full, err := os.Open(name) // for reading only
	require.NoError(t, err)
	defer full.Close()
	for _, args := range [][]string{{"cases"}, {"queue", "pause", "drafts"}, {"version"}} {
		var errs bytes.Buffer
		code := cli.Main(t.Context(), append(args, "--db", path), cli.Streams{Out: full, Err: &errs}, cli.Registry{})
		require.Equal(t, cli.ExitDatabase, code, args)
		require.Contains(t, errs.String(), "tasq: the output cannot be written, and what the command has done stays done: write "+name, args)
	}
	_, out, _ := call(t.Context(), "audit", "--db", path)
	require.Contains(t, out, "drafts")
}

type closed struct{}

func (closed) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }
