// Package virtual holds a clock that moves only when it is advanced. Tests and scenario files run on it, so that
// hours of waiting take no time, and every due time is met exactly.
package virtual

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"
)

// Epoch is where a clock starts: an even moment, so that times in transcripts are easy to read.
var Epoch = time.Date(2030, time.January, 1, 0, 0, 0, 0, time.UTC)

// Clock is a clock that only [Clock.Set] and [Clock.Advance] move. It is safe for concurrent use. Make one with
// [NewClock].
type Clock struct {
	mu    sync.Mutex
	now   time.Time
	next  int
	calls []call
}

// call is a function to be called at a time.
type call struct {
	at time.Time
	id int
	f  func()
}

// NewClock returns a clock that stands at [Epoch].
func NewClock() *Clock { return &Clock{now: Epoch} }

// Now returns the present time.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// AfterFunc has f called when the clock has moved by d, by the caller that moves it; at once and in a goroutine of its own if d
// is zero or less.
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

// Set moves the clock to a time, also backwards. The functions that become due are called before it returns, in the
// order of their times, while the clock already shows the new time.
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

// Engine is what [Clock.Advance] needs of an engine.
type Engine interface {
	Drain(ctx context.Context) error
	NextDue() (time.Time, bool)
}

// Advance moves the clock by d, and has the engine do every job that becomes due, in due order, each at its own due
// time.
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
