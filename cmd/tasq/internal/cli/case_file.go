package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"

	"github.com/tasq-dev/tasq/cmd/tasq/internal/demo"
	"github.com/tasq-dev/tasq/domain"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/internal/printable"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workflow"
)

const (
	linesAtOnce  = 64   // lines whose cases are started at the same time, so that they share commits
	linesBetween = 5000 // lines between two remarks on the progress
	mostRefused  = 1000 // refusals in the result, as those of a bulk action
)

// caseFile starts a case for each line of a file.
type caseFile struct {
	o    *owning
	q    *asking
	name string // of the file; "-" for standard input

	mu     sync.Mutex
	result startedCases
	failed error // what stopped it, beside refusals
}

// startedCases is the result.
type startedCases struct {
	Started int           `json:"started"`
	Refused int           `json:"refused"`
	Lines   []refusedLine `json:"lines,omitempty"` // the first of those that were refused
}

type refusedLine struct {
	Line  int    `json:"line"`
	Code  string `json:"code"`
	Error string `json:"error"`
}

// check returns an error for flags that are those of one case.
func (f *caseFile) check() error {
	switch {
	case f.q.data.json != nil:
		return usagef("--data is the input of one case, and --file has those of many: give one of them")
	case f.q.command.BusinessKey != "":
		return usagef("--business-key is the key of one case: with --file the workflow derives it from each input")
	case f.q.dryRun, f.q.queue:
		return usagef("--dry-run and --queue are for one case: leave them out with --file")
	}
	return nil
}

// run starts the cases, and prints how many.
func (f *caseFile) run(ctx context.Context) error {
	if err := f.check(); err != nil {
		return err
	}
	var in io.Reader = f.o.a.stdin
	if f.name != "-" {
		file, err := os.Open(f.name)
		if err != nil {
			return usagef("--file: %w", err)
		}
		defer file.Close()
		in = file
	}
	if err := f.q.complete(); err != nil {
		return err
	}
	if f.o.net == "" {
		f.q.command.Workflow, f.o.recipe = recipeName(f.q.command.Workflow)
	}
	if err := f.o.prepare(ctx, f.q); err != nil {
		return err
	}
	err := f.send(ctx, in)
	slices.SortFunc(f.result.Lines, func(a, b refusedLine) int { return a.Line - b.Line })
	for _, l := range f.result.Lines {
		f.o.a.remark("line %d: %s", l.Line, l.Error)
	}
	if err == nil && f.result.Started+f.result.Refused == 0 {
		f.o.a.remark("%s has no lines; each line is the input of a case in JSON", f.name)
	}
	if f.o.a.output == "json" {
		err = errors.Join(err, f.o.a.object(f.result))
	} else {
		err = errors.Join(err, f.o.a.say("%s started, %s refused", printable.Plural(f.result.Started, "case"), printable.Plural(f.result.Refused, "line")))
	}
	if err == nil && f.result.Refused > 0 {
		err = &exitError{ExitRefused, errors.New("")}
	}
	return err
}

// send starts the cases in this process if no process owns the database, and otherwise in the one that does.
func (f *caseFile) send(ctx context.Context, in io.Reader) error {
	if f.o.claim {
		if err := demo.Claim(ctx, f.o.db.Opener()); err != nil {
			return err
		}
	}
	e, err := f.o.open(ctx)
	if errors.Is(err, store.ErrOwned) && f.o.net == "" {
		return f.each(ctx, in, patiently{posting{f.o}, f.q})
	}
	if err != nil {
		return err
	}
	if err = f.o.lacking(); err == nil {
		err = f.each(ctx, in, e)
	}
	if err == nil {
		err = e.Drain(ctx) // due timers
	}
	return errors.Join(err, e.Close())
}

// patiently waits for each answer as long as --timeout says.
type patiently struct {
	posting
	q *asking
}

// Do implements workflow.Doer.
func (p patiently) Do(ctx context.Context, c workflow.Command) (workflow.Result, error) {
	limited, cancel := context.WithTimeout(ctx, p.q.timeout)
	defer cancel()
	return p.posting.Do(limited, c)
}

// each reads the lines, and has the case of each started.
func (f *caseFile) each(ctx context.Context, in io.Reader, e workflow.Doer) error {
	var wg sync.WaitGroup
	slots := make(chan struct{}, linesAtOnce)
	read := bufio.NewReader(in)
	for n := 1; ctx.Err() == nil && f.goesOn(); n++ {
		line, err := nextLine(read)
		if err != nil && !errors.Is(err, io.EOF) {
			f.stop(n, err)
			break
		}
		if len(line) > 0 {
			slots <- struct{}{}
			wg.Go(func() {
				f.start(ctx, e, n, line)
				<-slots
			})
		}
		if n%linesBetween == 0 {
			f.o.a.remark("%d lines so far", n)
		}
		if err != nil {
			break
		}
	}
	wg.Wait()
	if ctx.Err() != nil { // lines without an answer have failed for it
		f.o.a.remark("stopped%s", f.again())
		return ctx.Err()
	}
	return f.failed
}

// nextLine returns a line without blanks around it. Of one that is too long it returns the beginning, which is too long itself.
func nextLine(from *bufio.Reader) (line []byte, err error) {
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
func (f *caseFile) start(ctx context.Context, e workflow.Doer, n int, line []byte) {
	c := f.q.command
	c.Payload = line
	if c.Key != "" {
		c.Key = fmt.Sprintf("%s %d", c.Key, n)
	}
	err := c.Check()
	switch {
	case len(line) > domain.MaxSize:
		err = fmt.Errorf("the line has more than %d bytes: %w", domain.MaxSize, engine.ErrTooLarge)
	case json.Unmarshal(line, new(json.RawMessage)) != nil:
		err = fmt.Errorf("%w: invalid JSON: %w", workflow.ErrBadCommand, json.Unmarshal(line, new(json.RawMessage)))
	case err == nil:
		_, err = e.Do(ctx, c)
	}
	f.note(n, err)
}

// stops are codes of errors that do not concern the line: the store failed, or the engine closes.
var stops = []string{"commit-failed", "lost", "closed", "undone", "unavailable"}

// note counts the answer for a line.
func (f *caseFile) note(n int, err error) {
	code, text := engine.Code(err), fmt.Sprint(err)
	if remote := (*engine.RemoteError)(nil); errors.As(err, &remote) {
		code, text = remote.Code, remote.Text
	}
	unanswered := errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
	if err != nil && (unanswered || slices.Contains(stops, code)) {
		f.stop(n, err)
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if err == nil {
		f.result.Started++
		return
	}
	if f.result.Refused++; len(f.result.Lines) < mostRefused {
		f.result.Lines = append(f.result.Lines, refusedLine{n, code, text})
	}
}

func (f *caseFile) goesOn() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.failed == nil
}

// stop ends the command with the first error that does not concern a line alone.
func (f *caseFile) stop(n int, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.failed == nil {
		f.failed = exit(ExitDatabase, "line %d: %w%s", n, err, f.again())
	}
}

// again says what a repeated command does after one that was stopped.
func (f *caseFile) again() string {
	if f.q.command.Key != "" {
		return "; repeat the command to start the others: its --key keeps those that are there from being started again"
	}
	return "; without --key a repeated command starts all cases again"
}
