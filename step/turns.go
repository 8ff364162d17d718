package step

import (
	"context"
	"fmt"
	"time"

	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/workitem"
)

// status says what a branch is about. The job can be given up when every branch is parked or over.
type status uint8

const (
	running status = iota // in the function's own code
	gated                 // about to do something new, once the others have come to what they did before: see waitGated
	working               // doing it: a step's function is called, or something is recorded
	parked                // waiting for a step to end, or for other branches
	gone                  // its function has returned
	statuses
)

// turns counts who does what.
type turns struct {
	count      [statuses]int
	echoing    int              // branches that run, and got their latest answer from the history
	waits      int              // branches parked for a step; the other parked ones wait for these
	moves      int              // changes since the beginning
	suspending chan struct{}    // closed once the Journal.Suspend that a branch is in has answered; nil if none is in it
	opening    []*workitem.Step // to be recorded by the Suspend that comes next
	gates      []chan struct{}  // the gated branches
	deciding   []int            // of these, the depths of those that choose
	asking     int              // of these, those that ask for a version, behind which there may be history
}

// move changes what a branch is about. The lock is held.
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

// echoes says whether the latest answer that a branch got is from the history. The lock is held.
func (r *Run) echoes(b *branch, yes bool) {
	b.live = b.live || !yes
	if b.echo == yes {
		return
	}
	was := b.status
	r.move(b, working) // counted anew
	b.echo = yes
	r.move(b, was)
}

// patience is how long a branch is gated at most. The others need microseconds to come to what they did before,
// unless they are held up by something that this package knows nothing of, such as a lock that the gated branch has.
const patience = time.Second

// chosen reports whether all recorded choices between branches have been read, or no branch is on its way there. A
// branch begins nothing new before that. Take Race(a, b), which chose a before b had begun to charge a customer; then
// the process died. In the next run, b may be faster than Race.
func (r *Run) chosen() bool { return r.choices == 0 || r.turns.count[running] == 0 }

// replayed reports whether everything recorded has been come to, or no branch is on its way there.
func (r *Run) replayed() bool { return r.unmet == 0 || r.turns.count[running] == 0 }

// settledDown reports whether, beyond that, no branch is about to return with what it read from the history. A choice
// is made only then. Take Race(a, b), when the job was suspended and both events came meanwhile, that of a first:
// both branches return at once now, and it's not the faster goroutine that wins.
func (r *Run) settledDown() bool { return r.replayed() && r.turns.echoing+r.turns.asking == 0 }

// admit has the gated branches look again. The lock is held.
func (r *Run) admit() {
	if r.turns.count[running] > 0 && r.unmet > 0 && r.choices > 0 {
		return
	}
	for _, ch := range r.turns.gates {
		close(ch)
	}
	r.turns.gates = nil
}

// waitGated gates a branch until it is free, but not without end. The lock is held, and not in between.
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

// halted returns why a branch can do nothing more; nil if it can. The lock is held.
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

// ended says why a context is over.
func ended(ctx context.Context) error {
	why, cause := ctx.Err(), context.Cause(ctx)
	if cause == nil || cause == why {
		return why
	}
	return fmt.Errorf("%w: %w", why, cause)
}

// park gives the branch's turn away until it is woken, or it can do nothing more. The lock is held, but not in
// between.
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

// suspended waits for the answer of the journal to a suspension that is under way, unless the branch is woken. The engine ends
// the context of a run as soon as its job is given up, which may be before the answer: a branch that reads the context alone
// would return "context canceled" where the others return ErrSuspended. The lock is held, but not in between.
func (r *Run) suspended(b *branch) {
	for r.turns.suspending != nil && b.wake != nil {
		answered := r.turns.suspending
		r.mu.Unlock()
		<-answered
		r.mu.Lock()
	}
}

// wakeUp lets a parked branch go on. It has its turn from now on, so that no branch suspends the job in between. The
// lock is held.
func (r *Run) wakeUp(b *branch) {
	if b.wake == nil {
		return
	}
	close(b.wake)
	b.wake = nil
	r.move(b, running)
}

// idle reports whether no branch has a turn, and claims the duty to suspend the job for that. The lock is held.
func (r *Run) idle() bool {
	t := &r.turns
	if t.count[running]+t.count[gated]+t.count[working] > 0 || t.suspending != nil || r.endedBy != nil || r.ctx.Err() != nil {
		return false
	}
	t.suspending = make(chan struct{})
	return true
}

// alone reports whether no other branch has a turn. The lock is held.
func (r *Run) alone() bool {
	t := &r.turns
	return t.count[running]+t.count[gated]+t.count[working] == 1 && t.suspending == nil
}

// yield unlocks, and suspends the job if no branch has a turn any more.
func (r *Run) yield() {
	idle := r.idle()
	r.mu.Unlock()
	if idle {
		r.suspend()
	}
}

// suspend gives the job up, unless something has happened that a branch can go on with.
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
