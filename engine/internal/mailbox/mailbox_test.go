package mailbox_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/engine/internal/mailbox"
	"github.com/tasq-dev/tasq/store"
)

var (
	errDisk   = errors.New("disk full")
	errAnswer = errors.New("no answer")
)

// commands is a store with the commands that were left, and the engine that executes them.
type commands struct {
	left     []int64
	changed  bool
	stay     map[int64]bool // those for another program
	executed []int64
	events   []string // what was asked of it, in order

	changedErr, requestsErr, submitErr, waitErr error
}

// leave adds commands.
func (c *commands) leave(ids ...int64) {
	c.left, c.changed = append(c.left, ids...), true
}

// Changed implements store.Watcher.
func (c *commands) Changed(context.Context) (bool, error) {
	if c.changedErr != nil {
		return false, c.changedErr
	}
	changed := c.changed
	c.changed = false
	return changed, nil
}

// Requests implements mailbox.Executor.
func (c *commands) Requests(_ context.Context, after int64, max int) ([]store.Request, error) {
	c.events = append(c.events, "requests")
	if c.requestsErr != nil {
		return nil, c.requestsErr
	}
	var page []store.Request
	for _, id := range c.left {
		if id > after && len(page) < max {
			page = append(page, store.Request{ID: id})
		}
	}
	return page, nil
}

// Submit implements mailbox.Executor.
func (c *commands) Submit(_ context.Context, r store.Request) (wait func() error, err error) {
	if c.submitErr != nil && len(c.executed) > 0 {
		return nil, c.submitErr
	}
	c.events = append(c.events, "submit")
	if !c.stay[r.ID] {
		c.executed = append(c.executed, r.ID)
	}
	return func() error {
		c.events = append(c.events, "wait")
		if c.waitErr != nil || c.stay[r.ID] {
			return c.waitErr
		}
		var left []int64
		for _, id := range c.left {
			if id != r.ID {
				left = append(left, id)
			}
		}
		c.left = left
		return nil
	}, nil
}

// run is a poller that was started. The test holds the lock while it looks, and a poll from its first call to its last.
type run struct {
	*commands
	sync.Mutex
	reports     []error
	begun, over atomic.Int32
}

// start starts a poller of the commands. It ends with the test's bubble.
func (c *commands) start(t *testing.T) *run {
	r := &run{commands: c}
	r.Lock()
	p := mailbox.New(mailbox.Options{
		Watcher: r, Executor: c,
		Report: func(err error) error {
			defer r.Unlock()
			r.reports = append(r.reports, err)
			return err
		},
		Backoff: func(failures int) time.Duration { return time.Duration(failures) * time.Second },
		Active: func(delta int) {
			r.begun.Add(int32(max(delta, 0)))
			r.over.Add(int32(max(-delta, 0)))
		},
	})
	ctx, cancel := context.WithCancel(t.Context())
	p.Start(ctx)
	t.Cleanup(func() {
		cancel()
		r.Unlock()
		p.Wait()
	})
	return r
}

// Changed implements store.Watcher.
func (r *run) Changed(ctx context.Context) (bool, error) {
	r.Lock()
	return r.commands.Changed(ctx)
}

// after waits until the poller has done all that it does in a time of the bubble's clock.
func (r *run) after(d time.Duration) {
	r.Unlock()
	<-time.After(d)
	synctest.Wait()
	r.Lock()
}

// poller returns one that is not started.
func (c *commands) poller() *mailbox.Poller {
	return mailbox.New(mailbox.Options{Watcher: c, Executor: c})
}

// What was left before the start is executed, though nothing has changed since; and then what comes.
func TestCommandsAreExecutedAsTheyCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &commands{left: []int64{3, 5}}
		r := c.start(t)
		require.EqualValues(t, 1, r.begun.Load())
		require.Zero(t, r.over.Load(), "the engine is active until the first poll has ended")
		r.after(0)
		require.EqualValues(t, 1, r.over.Load())
		require.Equal(t, []int64{3, 5}, c.executed)
		c.leave(6)
		r.after(mailbox.Interval - 1)
		require.Equal(t, []int64{3, 5}, c.executed)
		r.after(1)
		require.Equal(t, []int64{3, 5, 6}, c.executed)
		asked := len(c.events)
		r.after(time.Minute)
		require.Len(t, c.events, asked, "nothing is read while nothing has changed")
		require.Len(t, r.reports, 2+int(time.Minute/mailbox.Interval))
		require.NoError(t, errors.Join(r.reports...))
		require.EqualValues(t, 1, r.begun.Load())
	})
}

// All commands of a page are submitted before one of them is waited for, so that they can share a commit.
func TestCommandsOfAPageAreSubmittedTogether(t *testing.T) {
	c := &commands{}
	c.leave(1, 2, 3)
	require.NoError(t, c.poller().Poll(t.Context()))
	require.Equal(t, []string{"requests", "submit", "submit", "submit", "wait", "wait", "wait"}, c.events)
}

// Commands for another program stay, and do not keep those of later pages.
func TestCommandsForAnotherProgramStay(t *testing.T) {
	c := &commands{stay: make(map[int64]bool)}
	for id := range int64(mailbox.PageSize) {
		c.leave(id + 1)
		c.stay[id+1] = true
	}
	c.leave(1000)
	require.NoError(t, c.poller().Poll(t.Context()))
	require.Equal(t, []int64{1000}, c.executed)
	require.Len(t, c.left, mailbox.PageSize)
}

// After a failure, wherever it is, the commands are asked for again, though nothing has changed in the meantime.
func TestAPollThatFailedIsRepeated(t *testing.T) {
	for name, fail := range map[string]func(*commands, error){
		"requests": func(c *commands, err error) { c.requestsErr = err },
		"submit":   func(c *commands, err error) { c.submitErr = err },
		"wait":     func(c *commands, err error) { c.waitErr = err },
		"changed":  func(c *commands, err error) { c.changedErr = err },
	} {
		t.Run(name, func(t *testing.T) {
			c := &commands{}
			p := c.poller()
			c.leave(1, 2)
			fail(c, errDisk)
			require.ErrorIs(t, p.Poll(t.Context()), errDisk)
			fail(c, nil)
			c.executed = nil
			require.NoError(t, p.Poll(t.Context()))
			require.NotEmpty(t, c.executed)
			require.Empty(t, c.left)
			require.NoError(t, p.Poll(t.Context()))
		})
	}
}

// The commands that were submitted are waited for also if a later one could not be, and every error is reported.
func TestEveryErrorOfAPageIsReported(t *testing.T) {
	c := &commands{submitErr: errDisk, waitErr: errAnswer}
	c.leave(1, 2)
	err := c.poller().Poll(t.Context())
	require.ErrorIs(t, err, errDisk)
	require.ErrorIs(t, err, errAnswer)
	require.Equal(t, []string{"requests", "submit", "wait"}, c.events)
}

// The pause between polls grows while they fail, and is the usual one again after a success.
func TestFailuresArePausedAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &commands{changedErr: errDisk}
		r := c.start(t)
		r.after(0)
		require.Len(t, r.reports, 1)
		r.after(mailbox.Interval) // the backoff of the first failure is shorter
		require.Len(t, r.reports, 2)
		r.after(time.Second)
		require.Len(t, r.reports, 3)
		r.after(2*time.Second - 1)
		require.Len(t, r.reports, 3)
		c.changedErr = nil
		r.after(1)
		require.Len(t, r.reports, 4)
		require.NoError(t, r.reports[3])
		c.changedErr = errDisk
		r.after(mailbox.Interval)
		require.Len(t, r.reports, 5)
		r.after(mailbox.Interval)
		require.Len(t, r.reports, 6, "it is the first failure in a row")
	})
}
