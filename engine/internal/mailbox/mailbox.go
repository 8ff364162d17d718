// Package mailbox executes the commands that other processes leave in the store.
//
//	another process        the store                    the engine
//	  leave a command ──►  request 7        Changed? ◄── Poller, four times a second
//	                       request 7  ──►  Requests ──►  Submit: the writer executes it,
//	  read the answer ◄──  answer to 7             ◄──   and replies in the same transaction
//
// Commands are executed in the order of their ids, and several of them can share a commit. One that is left where it is, because
// only another program can execute it, does not keep those behind it.
package mailbox

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/tasq-dev/tasq/store"
)

const (
	// Interval is how often the store is asked whether a command was left. Asking costs microseconds and reads no table.
	Interval = 250 * time.Millisecond

	// PageSize is how many commands are read at a time at most.
	PageSize = 100
)

// Executor reads and executes commands that were left.
type Executor interface {
	// Requests lists up to max commands whose ids are above one, oldest first.
	Requests(ctx context.Context, after int64, max int) ([]store.Request, error)

	// Submit queues a command behind those that were submitted before. Wait returns once it is executed and answered, also if the
	// answer is an error, or left for another program. An error of either says that the command is unanswered for a fault of the
	// store, or because the engine closes; it is submitted again later.
	Submit(ctx context.Context, r store.Request) (wait func() error, err error)
}

// Watcher says whether commands may have been left since it was last asked; a [store.Watcher] does.
type Watcher interface {
	Changed(ctx context.Context) (bool, error)
}

// Options are what a [Poller] needs. All are required.
type Options struct {
	Watcher  Watcher
	Executor Executor

	// Report takes the outcome of each poll, and returns the error that is a reason to wait longer than usual before the next.
	Report func(error) error

	// Backoff is how long to wait after a number of failures in a row, from 0 on, if that is longer than Interval.
	Backoff func(failures int) time.Duration

	// Active is called with 1 before the first poll, and with -1 after it.
	Active func(delta int)
}

// Poller executes commands as they come in. Make one with [New].
type Poller struct {
	o      Options
	owed   bool // the last poll failed, or there was none, so commands may be there though nothing has changed
	polled sync.WaitGroup
}

// New returns a Poller that does nothing until it is started.
func New(o Options) *Poller { return &Poller{o: o} }

// Start executes the commands that were left before, and then those that come, until the context ends.
func (p *Poller) Start(ctx context.Context) {
	p.owed = true
	p.o.Active(1)
	p.polled.Go(func() {
		err := p.o.Report(p.Poll(ctx))
		p.o.Active(-1)
		for failures := 0; p.pause(ctx, err, failures); err = p.o.Report(p.Poll(ctx)) {
			if failures++; err == nil {
				failures = 0
			}
		}
	})
}

// Wait waits until the Poller has stopped, after the end of its context.
func (p *Poller) Wait() { p.polled.Wait() }

// pause waits until it is time for the next poll; false if the context has ended.
func (p *Poller) pause(ctx context.Context, err error, failures int) bool {
	interval := Interval
	if err != nil {
		interval = max(interval, p.o.Backoff(failures))
	}
	timer := time.NewTimer(interval)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// Poll executes what was left, if anything may have been left since the last poll that succeeded.
func (p *Poller) Poll(ctx context.Context) error {
	changed, err := p.o.Watcher.Changed(ctx)
	if err != nil || !changed && !p.owed {
		return err
	}
	p.owed = true
	if err := p.executeAll(ctx); err != nil {
		return err
	}
	p.owed = false
	return nil
}

// executeAll executes every command, page by page. Those for another program stay, so each page begins after the one before.
func (p *Poller) executeAll(ctx context.Context) error {
	for after := int64(0); ; {
		requests, err := p.o.Executor.Requests(ctx, after, PageSize)
		if err == nil {
			err = p.execute(ctx, requests)
		}
		if err != nil || len(requests) < PageSize {
			return err
		}
		after = requests[len(requests)-1].ID
	}
}

// execute submits commands, and waits for all of them.
func (p *Poller) execute(ctx context.Context, requests []store.Request) error {
	var waits []func() error
	var errs []error
	for _, r := range requests {
		wait, err := p.o.Executor.Submit(ctx, r)
		if err != nil {
			errs = append(errs, err)
			break
		}
		waits = append(waits, wait)
	}
	for _, wait := range waits {
		errs = append(errs, wait())
	}
	return errors.Join(errs...)
}
