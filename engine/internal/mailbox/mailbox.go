// Package mailbox executes the commands that other processes leave in the store.
//
//	another process        the store                    the engine
//	  leave a command ──►  request 7        Changed? ◄── Poller, four times a second
//	                       request 7  ──►  Requests ──►  Submit: the writer executes it,
//	  read the answer ◄──  answer to 7             ◄──   and replies in the same transaction
//
// Commands are executed in the order of their ids, and several of them can share a commit. A command that only another
// program can execute, since this one does not have its workflow, stays in the store, and does not block those after
// it.
package mailbox

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/tasq-dev/tasq/store"
)

const (
	// Interval is the time between two polls. A poll that finds no change costs microseconds and reads no table.
	Interval = 250 * time.Millisecond

	// PageSize is the maximum number of commands that are read at a time.
	PageSize = 100
)

// Executor reads and executes the commands in the mailbox.
type Executor interface {
	// Requests returns up to max commands with ids greater than after, oldest first.
	Requests(ctx context.Context, after int64, max int) ([]store.Request, error)

	// Submit queues a command after those submitted before. wait returns nil once the command is answered, also if the
	// answer is an error, or is left for another program. An error of Submit or wait says that the command has no
	// answer, since the store failed or the engine closes; it is submitted again later.
	Submit(ctx context.Context, r store.Request) (wait func() error, err error)
}

// Watcher reports whether there may be new commands since the last call; a [store.Watcher] implements it.
type Watcher interface {
	Changed(ctx context.Context) (bool, error)
}

// Options are what a [Poller] needs. All are required.
type Options struct {
	Watcher  Watcher
	Executor Executor

	// Report receives the outcome of each poll. If it returns an error, the next poll waits for Backoff.
	Report func(error) error

	// Backoff returns the wait after a number of consecutive failures before this one. Interval is used if it is
	// longer.
	Backoff func(failures int) time.Duration

	// Active is called with 1 before the first poll, and with -1 after it: until then the engine is not idle.
	Active func(delta int)
}

// Poller executes the commands in the mailbox. Make one with [New].
type Poller struct {
	o         Options
	pollAgain bool // no poll has succeeded since the last change, so there may be commands although Changed reports false
	polled    sync.WaitGroup
}

// New returns a Poller that does nothing until it is started.
func New(o Options) *Poller { return &Poller{o: o} }

// Start begins to poll: it executes the commands that are in the mailbox, and then new ones, until the context ends.
func (p *Poller) Start(ctx context.Context) {
	p.pollAgain = true
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

// Poll executes all commands in the mailbox, unless nothing has changed since the last successful poll.
func (p *Poller) Poll(ctx context.Context) error {
	changed, err := p.o.Watcher.Changed(ctx)
	if err != nil || !changed && !p.pollAgain {
		return err
	}
	p.pollAgain = true
	if err := p.executeAll(ctx); err != nil {
		return err
	}
	p.pollAgain = false
	return nil
}

// executeAll executes every command, page by page. Commands for another program stay in the store, so each page begins
// after the last id of the one before, and not at the beginning.
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

// execute submits all commands before it waits for the first, so that they can share a commit.
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
