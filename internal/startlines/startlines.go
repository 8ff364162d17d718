// Package startlines starts a case for each line of a stream: the command line does so with a file, and the HTTP API with the body of a request.
// It also tries such starts, or leaves them for another process.
package startlines

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/tasq-dev/tasq/domain"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/workflow"
)

const (
	atOnce      = 64   // lines whose cases are started at the same time, so that they share commits
	between     = 5000 // lines between two calls of Starter.Progress
	mostRefused = 1000 // refusals in the result, as those of a bulk action
)

// Mode says what is done for each line.
type Mode int

// The modes. Each of them checks the line first.
const (
	Start  Mode = iota // the case is started
	DryRun             // the start is tried, see [workflow.DryRun]
	Leave              // the Doer leaves the command for another process, and does not wait
)

// Starts says how many cases were started. Empty lines do not count.
type Starts struct {
	Started    int       `json:"started"`
	WouldStart int       `json:"wouldStart,omitempty"` // of a dry run
	Left       int       `json:"left,omitempty"`       // commands that were left for another process
	Refused    int       `json:"refused"`
	Lines      []Refusal `json:"lines,omitempty"` // the first 1,000 that were refused, in the order of the lines
}

// All returns the number of lines.
func (s Starts) All() int { return s.Started + s.WouldStart + s.Left + s.Refused }

// Refusal is a line whose case was not started, with the code of the error, see [engine.Code].
type Refusal struct {
	Line  int    `json:"line"` // the first one is 1
	Code  string `json:"code"`
	Error string `json:"error"`
}

// StoppedError says that a line could not be handled for a reason that does not concern it: the store failed, the engine closes, there was no
// answer in time, or the stream failed. Lines after it were not read.
type StoppedError struct {
	Line int
	Err  error
}

// Error names the line.
func (e *StoppedError) Error() string { return fmt.Sprintf("line %d: %v", e.Line, e.Err) }

// Unwrap returns the reason.
func (e *StoppedError) Unwrap() error { return e.Err }

// Starter starts the cases.
type Starter struct {
	Doer     workflow.Doer
	Command  workflow.Command // without the input; with a key, that of a case is the key and the number of its line
	Mode     Mode
	Progress func(lines int) // called after each 5,000 lines; nil for no calls

	mu     sync.Mutex
	result Starts
	failed *StoppedError
}

// Run reads the lines, each the input of a case in JSON, and starts their cases, or does what the mode says, 64 at a time. A line that is refused does not affect the others.
// The error is a [*StoppedError], or that of the context; the result has what was started before it.
func (s *Starter) Run(ctx context.Context, in io.Reader) (Starts, error) {
	var wg sync.WaitGroup
	slots := make(chan struct{}, atOnce)
	read := bufio.NewReader(in)
	for n := 1; ctx.Err() == nil && s.goesOn(); n++ {
		line, err := next(read)
		if err != nil && !errors.Is(err, io.EOF) {
			s.stop(n, err)
			break
		}
		if len(line) > 0 {
			slots <- struct{}{}
			wg.Go(func() {
				s.note(n, s.start(ctx, n, line))
				<-slots
			})
		}
		if n%between == 0 && s.Progress != nil {
			s.Progress(n)
		}
		if err != nil {
			break
		}
	}
	wg.Wait()
	slices.SortFunc(s.result.Lines, func(a, b Refusal) int { return a.Line - b.Line })
	if ctx.Err() != nil { // lines without an answer have failed for it
		return s.result, ctx.Err()
	}
	if s.failed != nil {
		return s.result, s.failed
	}
	return s.result, nil
}

// next returns a line without blanks around it. Of one that is too long it returns the beginning, which is too long itself.
func next(from *bufio.Reader) (line []byte, err error) {
	for more := true; more; {
		var part []byte
		part, more, err = from.ReadLine()
		if len(line) <= domain.MaxSize {
			line = append(line, part...)
		}
		if err != nil {
			break
		}
	}
	return bytes.TrimSpace(line), err
}

// start starts the case of a line.
func (s *Starter) start(ctx context.Context, n int, line []byte) error {
	c := s.Command
	c.Payload = line
	if c.Key != "" {
		c.Key = fmt.Sprintf("%s %d", c.Key, n)
	}
	if len(line) > domain.MaxSize {
		return fmt.Errorf("the line has more than %d bytes: %w", domain.MaxSize, engine.ErrTooLarge)
	}
	if err := json.Unmarshal(line, new(json.RawMessage)); err != nil {
		return fmt.Errorf("%w: invalid JSON: %w", workflow.ErrBadCommand, err)
	}
	if err := c.Check(); err != nil {
		return err
	}
	if s.Mode == DryRun {
		c = workflow.DryRun(c)
	}
	_, err := s.Doer.Do(ctx, c)
	if err != nil && s.Mode == Leave { // no process has looked at the line
		return &StoppedError{n, err}
	}
	return err
}

// stops are codes of errors that do not concern the line.
var stops = []string{"commit-failed", "lost", "closed", "undone", "unavailable"}

// note counts the answer for a line.
func (s *Starter) note(n int, err error) {
	code, text := engine.Code(err), fmt.Sprint(err)
	if remote := (*engine.RemoteError)(nil); errors.As(err, &remote) {
		code, text = remote.Code, remote.Text
	}
	if stopped, is := errors.AsType[*StoppedError](err); is {
		s.stop(n, stopped.Err)
		return
	}
	unanswered := errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
	if err != nil && (unanswered || slices.Contains(stops, code)) {
		s.stop(n, err)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		switch s.Mode {
		case DryRun:
			s.result.WouldStart++
		case Leave:
			s.result.Left++
		default:
			s.result.Started++
		}
		return
	}
	if s.result.Refused++; len(s.result.Lines) < mostRefused {
		s.result.Lines = append(s.result.Lines, Refusal{n, code, text})
	}
}

func (s *Starter) goesOn() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failed == nil
}

// stop ends the run with an error that does not concern a line alone. Of several it is that of the first line.
func (s *Starter) stop(n int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed == nil || n < s.failed.Line {
		s.failed = &StoppedError{n, err}
	}
}
