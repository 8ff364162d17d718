package startlines_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/domain"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/internal/startlines"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workflow"
)

// doer records the commands by their inputs.
type doer struct {
	mu     sync.Mutex
	inputs map[string]string // the key of each
	kinds  []workflow.Kind
	err    func(input string) error
}

func (d *doer) Do(_ context.Context, c workflow.Command) (r workflow.Result, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.err != nil {
		err = d.err(string(c.Payload))
	}
	if d.inputs == nil {
		d.inputs = make(map[string]string)
	}
	d.inputs[string(c.Payload)] = c.Key
	d.kinds = append(d.kinds, c.Kind)
	return r, err
}

func start(key string) workflow.Command {
	c := workflow.Start("bill", nil)
	c.Key = key
	return c
}

// Lines that are refused are listed in order, and the others start cases; a key is that of one line.
func TestALineThatIsRefusedDoesNotAffectTheOthers(t *testing.T) {
	d := &doer{err: func(input string) error {
		if input == "4" {
			return fmt.Errorf("no more: %w", engine.ErrFull)
		}
		return nil
	}}
	s := startlines.Starter{Doer: d, Command: start("k")}
	long := `"` + strings.Repeat("x", domain.MaxSize) + `"`
	got, err := s.Run(t.Context(), strings.NewReader("1\r\n\n{\n4\n "+long+"\n6"))
	require.NoError(t, err)
	require.Equal(t, []int{2, 3}, []int{got.Started, got.Refused})
	require.Equal(t, map[string]string{"1": "k 1", "4": "k 4", "6": "k 6"}, d.inputs)
	for i, want := range []struct {
		line int
		code string
	}{{3, "bad-command"}, {4, "full"}, {5, "too-large"}} {
		require.Equal(t, want.line, got.Lines[i].Line)
		require.Equal(t, want.code, got.Lines[i].Code)
		require.NotEmpty(t, got.Lines[i].Error)
	}
}

// A dry run has each line tried, and what is left for another process is counted by itself. Both check the lines first.
func TestLinesAreTriedOrLeft(t *testing.T) {
	for mode, want := range map[startlines.Mode]startlines.Starts{startlines.DryRun: {WouldStart: 2, Refused: 1}, startlines.Leave: {Left: 2, Refused: 1}} {
		d := new(doer)
		s := startlines.Starter{Doer: d, Command: start("k"), Mode: mode}
		got, err := s.Run(t.Context(), strings.NewReader("1\n{\n3\n"))
		require.NoError(t, err)
		require.Equal(t, 2, got.Lines[0].Line)
		require.Equal(t, 3, got.All())
		got.Lines = nil
		require.Equal(t, want, got)
		kind := workflow.KindStart
		if mode == startlines.DryRun {
			kind = workflow.KindDryRun
		}
		require.Equal(t, []workflow.Kind{kind, kind}, d.kinds)
	}

	failing := errors.New("no such file") // with a code that a line could have
	s := startlines.Starter{Doer: &doer{err: func(string) error { return failing }}, Command: start(""), Mode: startlines.Leave}
	got, err := s.Run(t.Context(), strings.NewReader("1\n2\n"))
	require.ErrorIs(t, err, failing)
	require.ErrorContains(t, err, "line 1: no such file")
	require.Zero(t, got.All())
}

// A list of refusals is bounded, and their number is not.
func TestRefusalsAreCounted(t *testing.T) {
	var said []int
	s := startlines.Starter{Doer: &doer{}, Command: start(""), Progress: func(lines int) { said = append(said, lines) }}
	got, err := s.Run(t.Context(), strings.NewReader(strings.Repeat("{\n", 10_001)))
	require.NoError(t, err)
	require.Equal(t, 10_001, got.Refused)
	require.Len(t, got.Lines, 1000)
	require.Equal(t, []int{5000, 10_000}, said)
}

// What does not concern a line ends the run: the store fails, the stream ends with an error, or the caller goes away.
func TestAFailureThatIsNotOfALineStops(t *testing.T) {
	d := &doer{err: func(string) error { return fmt.Errorf("the disk is full: %w", store.ErrUnavailable) }}
	s := startlines.Starter{Doer: d, Command: start("")}
	_, err := s.Run(t.Context(), strings.NewReader(strings.Repeat("1\n", 1000)))
	require.ErrorIs(t, err, store.ErrUnavailable)
	stopped, is := errors.AsType[*startlines.StoppedError](err)
	require.True(t, is)
	require.Equal(t, 1, stopped.Line, "all of the first lines fail, in any order")

	broken := errors.New("the connection is gone")
	r, w := io.Pipe()
	go func() {
		_, _ = w.Write([]byte("1\n2\n"))
		_ = w.CloseWithError(broken)
	}()
	s = startlines.Starter{Doer: &doer{}, Command: start("")}
	got, err := s.Run(t.Context(), r)
	require.ErrorIs(t, err, broken)
	require.ErrorContains(t, err, "line 3: ")
	require.Equal(t, 2, got.Started)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s = startlines.Starter{Doer: &doer{}, Command: start("")}
	_, err = s.Run(ctx, strings.NewReader("1\n"))
	require.ErrorIs(t, err, context.Canceled)
}
