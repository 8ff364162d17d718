// Package virtual has a clock that moves only when it is advanced. Tests and scenario files use it, so that waiting for
// hours takes no time, and work starts exactly when it is due.
package virtual

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"
)

// Epoch is the initial time of a clock: a full hour, so that times in transcripts are easy to read.
var Epoch = time.Date(2030, time.January, 1, 0, 0, 0, 0, time.UTC)

// Clock is a clock that only [Clock.Set] and [Clock.Advance] move. It is safe for concurrent use. Create one with
// [NewClock].
type Clock struct {
	mu    sync.Mutex
	now   time.Time
	next  int
	calls []call
}

// call is a scheduled call of a function.
type call struct {
	at time.Time
	id int
	f  func()
}

// NewClock returns a clock at [Epoch].
func NewClock() *Clock { return &Clock{now: Epoch} }

// Now returns the current time of the clock.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// AfterFunc schedules a call of f after the clock has moved by d. The caller that moves the clock calls it. If d is
// zero or negative, f is called immediately in its own goroutine.
func (c *Clock) AfterFunc(d time.Duration, f func()) (stop func() bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if d <= 0 {
		go f()
		return func() bool { return false }
	}
	c.next++
	id := c.next
	c.calls = append(c.calls, call{at: c.now.Add(d), id: id, f: f})
	return func() bool { return c.cancel(id) }
}

func (c *Clock) cancel(id int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := len(c.calls)
	c.calls = slices.DeleteFunc(c.calls, func(k call) bool { return k.id == id })
	return len(c.calls) < before
}

// Set moves the clock to a time, possibly backwards. Before it returns, it calls the functions that become due, in the
// order of their times, while the clock already has the new time.
func (c *Clock) Set(now time.Time) {
	c.mu.Lock()
	c.now = now
	var due []call
	c.calls = slices.DeleteFunc(c.calls, func(k call) bool {
		if k.at.After(now) {
			return false
		}
		due = append(due, k)
		return true
	})
	c.mu.Unlock()
	slices.SortFunc(due, func(a, b call) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.id, b.id)) })
	for _, k := range due {
		k.f()
	}
}

// Engine is the part of an engine that [Clock.Advance] uses.
type Engine interface {
	Drain(ctx context.Context) error
	NextDue() (time.Time, bool)
}

// Advance moves the clock by d, and makes the engine run every job that becomes due, in the order of the due times,
// each at its own due time.
func (c *Clock) Advance(ctx context.Context, e Engine, d time.Duration) error {
	target := c.Now().Add(d)
	for {
		if err := e.Drain(ctx); err != nil {
			return err
		}
		due, ok := e.NextDue()
		if !ok || due.After(target) {
			break
		}
		if due.After(c.Now()) {
			c.Set(due)
		}
	}
	c.Set(target)
	return e.Drain(ctx)
}
