package step

import (
	"context"
	"fmt"
	"time"

	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/workitem"
)

// status is the state of a branch. The job can be suspended when every branch is parked or gone.
type status uint8

const (
	running status = iota // in the function's own code
	gated                 // about to do something new, when the other branches have replayed their history: see waitGated
	working               // calling a step's function, or recording
	parked                // waiting for a step to end, or for other branches
	gone                  // its function has returned
	statuses
)

// turns counts branches by their status.
type turns struct {
	count      [statuses]int
	echoing    int              // running branches whose latest result came from the history
	waits      int              // branches parked for a step; other parked branches wait for branches
	moves      int              // changes since the beginning
	suspending chan struct{}    // closed when a pending Journal.Suspend has returned; nil if there is none
	opening    []*workitem.Step // steps for the next Suspend to record
	gates      []chan struct{}  // the gated branches
	deciding   []int            // of these, the depths of those that make a choice
	asking     int              // of these, those that request a version, after which there may be history
}

// move changes the status of a branch. The lock is held.
func (r *Run) move(b *branch, to status) {
	t := &r.turns
	t.count[b.status]--
	t.count[to]++
	if b.echo && b.status == running {
		t.echoing--
	}
	if b.echo && to == running {
		t.echoing++
	}
	b.status = to
	t.moves++
	r.admit()
}

// echoes records whether the latest result of a branch came from the history. The lock is held.
func (r *Run) echoes(b *branch, yes bool) {
	b.live = b.live || !yes
	if b.echo == yes {
		return
	}
	was := b.status
	r.move(b, working) // counted again
	b.echo = yes
	r.move(b, was)
}

// patience is the longest time for which a branch is gated. The others need microseconds to replay their history,
// unless something blocks them that this package does not know of, such as a mutex that the gated branch holds.
const patience = time.Second

// chosen reports whether all recorded choices between branches were replayed, or no branch can still reach them. A
// branch starts nothing new before that. For example, Race(a, b) chose a before b started to charge a customer, and
// the process died. In the next run, b may be faster than Race, and must not charge.
func (r *Run) chosen() bool { return r.choices == 0 || r.turns.count[running] == 0 }

// replayed reports whether all recorded steps were replayed, or no branch can still reach them.
func (r *Run) replayed() bool { return r.unmet == 0 || r.turns.count[running] == 0 }

// settledDown reports whether, in addition, no branch is about to return with a result from the history. A choice is
// made only then. For example, the job was suspended in Race(a, b), and both events arrived, that of a first. Both
// branches now return at once, and a must win, whichever goroutine is faster.
func (r *Run) settledDown() bool { return r.replayed() && r.turns.echoing+r.turns.asking == 0 }

// admit makes the gated branches check their conditions again. The lock is held.
func (r *Run) admit() {
	if r.turns.count[running] > 0 && r.unmet > 0 && r.choices > 0 {
		return
	}
	for _, ch := range r.turns.gates {
		close(ch)
	}
	r.turns.gates = nil
}

// waitGated blocks a branch until its condition holds, or patience has passed. The lock is held, and released
// while it waits.
func (r *Run) waitGated(ctx context.Context, b *branch, free func() bool) error {
	r.move(b, gated)
	defer r.move(b, running)
	var late chan struct{}
	for !free() && r.halted(ctx, b) == nil {
		if late == nil {
			late = make(chan struct{})
			stop := retry.SystemClock.AfterFunc(patience, func() { close(late) })
			defer stop()
		}
		ch := make(chan struct{})
		r.turns.gates = append(r.turns.gates, ch)
		r.mu.Unlock()
		over := false
		select {
		case <-ch:
		case <-late:
			over = true
		case <-ctx.Done():
		case <-r.done:
		}
		r.mu.Lock()
		if over {
			break
		}
	}
	return r.halted(ctx, b)
}

// halted returns why a branch must stop; nil if it may continue. The lock is held.
func (r *Run) halted(ctx context.Context, b *branch) error {
	switch {
	case r.endedBy != nil:
		return r.endedBy
	case b.canceled:
		return b.notChosen.of(b)
	case ctx.Err() != nil:
		return ended(ctx)
	}
	return nil
}

// ended returns why a context has ended.
func ended(ctx context.Context) error {
	why, cause := ctx.Err(), context.Cause(ctx)
	if cause == nil || cause == why {
		return why
	}
	return fmt.Errorf("%w: %w", why, cause)
}

// park blocks a branch until it is woken or must stop. The lock is held, and released while it waits.
func (r *Run) park(ctx context.Context, b *branch) error {
	ch := make(chan struct{})
	b.wake = ch
	r.move(b, parked)
	r.yield()
	select {
	case <-ch:
	case <-ctx.Done():
	case <-r.ctx.Done():
	case <-r.done:
	}
	r.mu.Lock()
	r.suspended(b)
	woken := b.wake == nil
	if !woken {
		b.wake = nil
		r.move(b, running)
	}
	if err := r.halted(ctx, b); err != nil {
		return err
	}
	if !woken {
		return ended(r.ctx)
	}
	return nil
}

// suspended waits until a pending Journal.Suspend returns, unless the branch is woken. The engine cancels the context of a run
// as soon as its job is suspended, which may be before Suspend returns: a branch that only checked the context would return
// "context canceled" where the others return ErrSuspended. The lock is held, and released while it waits.
func (r *Run) suspended(b *branch) {
	for r.turns.suspending != nil && b.wake != nil {
		answered := r.turns.suspending
		r.mu.Unlock()
		<-answered
		r.mu.Lock()
	}
}

// wakeUp wakes a parked branch. The branch counts as running at once, so that no other branch suspends the job in
// between. The lock is held.
func (r *Run) wakeUp(b *branch) {
	if b.wake == nil {
		return
	}
	close(b.wake)
	b.wake = nil
	r.move(b, running)
}

// idle reports whether no branch is running. The caller that gets true must suspend the job. The lock is held.
func (r *Run) idle() bool {
	t := &r.turns
	if t.count[running]+t.count[gated]+t.count[working] > 0 || t.suspending != nil || r.endedBy != nil || r.ctx.Err() != nil {
		return false
	}
	t.suspending = make(chan struct{})
	return true
}

// alone reports whether no other branch is running. The lock is held.
func (r *Run) alone() bool {
	t := &r.turns
	return t.count[running]+t.count[gated]+t.count[working] == 1 && t.suspending == nil
}

// yield releases the lock, and suspends the job if no branch is running.
func (r *Run) yield() {
	idle := r.idle()
	r.mu.Unlock()
	if idle {
		r.suspend()
	}
}

// suspend suspends the job, unless something has happened that lets a branch continue.
func (r *Run) suspend() {
	t := &r.turns
	r.mu.Lock()
	defer r.mu.Unlock()
	defer func() {
		close(t.suspending)
		t.suspending = nil
	}()
	for moves := -1; moves != t.moves; {
		if t.count[running]+t.count[gated]+t.count[working] > 0 || r.endedBy != nil {
			return
		}
		if r.wrong != nil { // it is final, so no branch should wait a month for it
			r.stop(r.wrong)
			return
		}
		if t.waits == 0 {
			r.stop(mistakef(ErrUsage, "every branch waits for another one, so none can go on; "+
				"let a branch wait only for those that don't wait for it"))
			return
		}
		moves = t.moves
		steps := append(r.pending, t.opening...)
		r.pending, t.opening = nil, nil
		r.mu.Unlock()
		stored, suspended, err := r.journal.Suspend(context.WithoutCancel(r.ctx), steps...)
		r.mu.Lock()
		if err == nil {
			err = complete(steps, stored)
		}
		switch {
		case err != nil:
			r.stop(err)
		case suspended:
			r.stop(ErrSuspended)
		default:
			r.keep(stored)
			for i, s := range stored {
				if steps[i].State == workitem.StepWaiting && s.State.Final() {
					moves = -1 // it won't be reported
				}
			}
		}
	}
	// What has ended is still to be reported, by Journal.Watch.
}
