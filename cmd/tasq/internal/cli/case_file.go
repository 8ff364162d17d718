package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/tasq-dev/tasq/cmd/tasq/internal/demo"
	"github.com/tasq-dev/tasq/internal/printable"
	"github.com/tasq-dev/tasq/internal/startlines"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workflow"
)

// caseFile starts a case for each line of a file.
type caseFile struct {
	o    *owning
	q    *asking
	name string // of the file; "-" for standard input

	result startlines.Starts
}

// check returns an error for flags that are those of one case.
func (f *caseFile) check() error {
	switch {
	case f.q.data.json != nil:
		return usagef("--data is the input of one case, and --file has those of many: give one of them")
	case f.q.command.BusinessKey != "":
		return usagef("--business-key is the key of one case: with --file the workflow derives it from each input")
	case f.q.dryRun && f.q.queue:
		return errTriedAndLeft()
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
	for _, l := range f.result.Lines {
		f.o.a.remark("line %d: %s", l.Line, l.Error)
	}
	if err == nil && f.result.All() == 0 {
		f.o.a.remark("%s has no lines; each line is the input of a case in JSON", f.name)
	}
	if f.o.a.output == "json" {
		err = errors.Join(err, f.o.a.object(f.result))
	} else {
		err = errors.Join(err, f.o.a.say("%s, %s refused", f.done(), printable.Plural(f.result.Refused, "line")))
	}
	if err == nil && f.result.Refused > 0 {
		err = &exitError{ExitRefused, errors.New("")}
	}
	return err
}

// done says what was done for the lines that were not refused.
func (f *caseFile) done() string {
	switch f.mode() {
	case startlines.DryRun:
		return printable.Plural(f.result.WouldStart, "case") + " would start"
	case startlines.Leave:
		return fmt.Sprintf("%s left in %s for the program that owns it next", printable.Plural(f.result.Left, "start"), f.o.db.Name())
	}
	return printable.Plural(f.result.Started, "case") + " started"
}

// mode is what the flags say.
func (f *caseFile) mode() startlines.Mode {
	switch {
	case f.q.dryRun:
		return startlines.DryRun
	case f.q.queue:
		return startlines.Leave
	}
	return startlines.Start
}

// send starts the cases in this process if no process owns the database, and otherwise in the one that does.
func (f *caseFile) send(ctx context.Context, in io.Reader) error {
	if f.q.queue {
		return f.each(ctx, in, &leaving{o: f.o})
	}
	if f.o.claim && !f.q.dryRun {
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
	if err == nil && !f.q.dryRun {
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

// leaving leaves commands for the process that owns the database next.
type leaving struct {
	o  *owning
	mu sync.Mutex // each writes to the file, which takes one after the other
}

// Do implements workflow.Doer. Its result is empty.
func (l *leaving) Do(ctx context.Context, c workflow.Command) (workflow.Result, error) {
	command, err := json.Marshal(c)
	if err != nil {
		return workflow.Result{}, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return workflow.Result{}, l.o.db.Inbox().Leave(ctx, command)
}

// each starts the cases by an engine, or by the process that has one.
func (f *caseFile) each(ctx context.Context, in io.Reader, e workflow.Doer) (err error) {
	s := startlines.Starter{Doer: e, Command: f.q.command, Mode: f.mode(), Progress: func(lines int) { f.o.a.remark("%d lines so far", lines) }}
	f.result, err = s.Run(ctx, in)
	if stopped := (*startlines.StoppedError)(nil); errors.As(err, &stopped) {
		return exit(ExitDatabase, "%w%s", err, f.again())
	}
	if err != nil {
		f.o.a.remark("stopped%s", f.again())
	}
	return err
}

// again says what a repeated command does after one that was stopped.
func (f *caseFile) again() string {
	if f.q.dryRun {
		return ""
	}
	if f.q.command.Key != "" {
		return "; repeat the command to start the others: its --key keeps those that are there from being started again"
	}
	return "; without --key a repeated command starts all cases again"
}
