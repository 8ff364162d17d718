package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// errCommit says that a command was fine and the store could not commit it.
var errCommit = errors.New("the store could not commit")

// maxBatch bounds one commit, so that the first of a batch does not wait for the thousandth.
const maxBatch = 256

// lazyWait is how long a batch of nothing but lazy requests waits for company. The claim of a job is lazy: a short job
// hands in its result within this time, and both share one commit.
const lazyWait = 500 * time.Microsecond

// write is the one writer. It ends when the engine is closing and the queue is empty.
func (e *Engine) write() {
	defer close(e.stopped)
	e.patience = time.NewTimer(time.Hour)
	e.patience.Stop()
	for {
		r, over := e.queue.pop()
		if r == nil && !over {
			r = e.idle()
		}
		if r == nil {
			return
		}
		e.commit(r)
	}
}

// idleWait is how long the writer waits, with nothing to do, before it has the store do its housekeeping. A caller that
// sends one command after the other so never pays for it.
const idleWait = 2 * time.Millisecond

// idle waits for a request; nil if there will be none. It has the store write its tables once the queue has been empty for
// a moment.
func (e *Engine) idle() *request {
	e.patience.Reset(idleWait)
	defer e.patience.Stop()
	for {
		select {
		case <-e.queue.ready:
			if r, over := e.queue.pop(); r != nil || over {
				return r
			}
		case <-e.patience.C:
			err := e.lose(e.store.Idle(context.Background()))
			if errors.Is(err, ErrClosed) {
				continue
			}
			e.faults.note("housekeeping", err, "the store could not do its housekeeping; nothing is lost, and it is tried again")
		}
	}
}

// commit takes what is queued and commits it together. Each request fails alone. If one of them makes the store undo the whole
// transaction, it gets its error, and the others are done again without it, each as often as it takes and none of them twice in
// effect; see docs/decisions/010-a-request-fails-alone.md.
func (e *Engine) commit(first *request) {
	batch, err := e.transact(append(e.batch, first), true)
	all := batch
	for undone(batch) {
		if batch, err = e.othersOf(batch), nil; len(batch) > 0 {
			batch, err = e.transact(batch, false)
		}
	}
	err = e.lose(err)
	for _, r := range batch {
		if err != nil && r.err == nil {
			r.err = refusedBy(err)
			e.forget(r.tx)
		}
		e.answered(r)
	}
	e.noteCommit(err, len(batch))
	clear(all)
	e.batch = all[:0]
	e.trim()
}

// refusedBy is the error of a command that was fine, and was not committed.
func refusedBy(err error) error {
	if errors.Is(err, ErrClosed) {
		return err
	}
	return fmt.Errorf("%w: %w", errCommit, err)
}

// undone reports whether the last request of a batch undid its transaction.
func undone(batch []*request) bool {
	return len(batch) > 0 && errors.Is(batch[len(batch)-1].err, store.ErrUndone)
}

// transact runs requests in one transaction: those given, and what is queued if there may be more. An Update that succeeded is
// the last of its transaction, for its function is not called again if a later request undoes all. The error wraps
// store.ErrUndone if the last request that is returned undid the transaction.
func (e *Engine) transact(batch []*request, more bool) ([]*request, error) {
	err := e.store.Update(context.Background(), func(s store.Tx) error {
		s = port{s}
		for i := 0; ; i++ {
			if i == len(batch) {
				r := (*request)(nil)
				if more {
					r = e.next(batch)
				}
				if r == nil {
					return nil
				}
				batch = append(batch, r)
			}
			r := batch[i]
			e.execute(s, r)
			switch {
			case errors.Is(r.err, store.ErrUndone):
				batch = batch[:i+1]
				return r.err
			case r.once && r.err == nil:
				more = false
			}
		}
	})
	return batch, err
}

// othersOf answers the last request of a batch, which undid the transaction, and returns the others, which are to be done again.
func (e *Engine) othersOf(batch []*request) []*request {
	last := len(batch) - 1
	failed, kept := batch[last], make([]*request, 0, last)
	for _, r := range batch[:last] {
		e.forget(r.tx)
		if r.once { // it failed, and was undone before: one that succeeds is the last
			e.answered(r)
		} else {
			kept = append(kept, r)
		}
	}
	if failed.deferHandlers() {
		return append(kept, failed)
	}
	e.answered(failed)
	return kept
}

// answered gives the outcome of a request to everybody who waits for it.
func (e *Engine) answered(r *request) {
	if r.err == nil {
		e.publish(r.tx)
	}
	if r.done != nil {
		r.done <- r.err
	}
	if r.ended != nil {
		r.ended(r.err)
	}
	e.active.add(-1)
}

// next takes another request for the batch; nil commits it. A batch that nobody is in a hurry for waits a moment.
func (e *Engine) next(batch []*request) *request {
	if len(batch) >= maxBatch {
		return nil
	}
	r, over := e.queue.pop()
	if r != nil || over || !patient(batch) {
		return r
	}
	e.patience.Reset(lazyWait)
	defer e.patience.Stop()
	for {
		select {
		case <-e.queue.ready:
			if r, over := e.queue.pop(); r != nil || over {
				return r
			}
		case <-e.patience.C:
			return nil
		}
	}
}

// patient reports whether a batch may wait for company: something of it is lazy, and the rest only reads.
func patient(batch []*request) bool {
	lazy := false
	for _, r := range batch {
		if !r.lazy && !r.reads {
			return false
		}
		lazy = lazy || r.lazy
	}
	return lazy
}

// execute runs one request in the open transaction, and undoes all of it if it fails.
func (e *Engine) execute(s store.Tx, r *request) {
	if !r.begin() {
		r.err = context.Canceled
		return
	}
	if r.now.IsZero() { // each command has its own time: one that was queued because something is due must find it due
		r.now = e.now()
		if err := r.ctx.Err(); err != nil {
			r.err = withdrawnBy(err)
			return
		}
	}
	e.attempt(s, r)
	if !errors.Is(r.err, store.ErrUndone) && r.deferHandlers() {
		e.attempt(s, r)
	}
	if r.err == nil && r.accepted != nil {
		r.accepted()
	}
}

func (e *Engine) attempt(s store.Tx, r *request) {
	r.tx = &Tx{e: e, s: s, now: r.now, ctx: whole(r.ctx), late: r.late}
	defer r.tx.gate.End()
	r.err = r.tx.try(r.run)
}

// deferHandlers reports whether a request that failed is to be done again with its completion handlers told by jobs.
func (r *request) deferHandlers() bool {
	if r.once || r.late || !errors.Is(r.err, errLate) {
		return false
	}
	r.late = true
	return true
}

// whole is the context of a command that has begun: its caller may go, and it happens as a whole or not at all.
func whole(ctx context.Context) context.Context {
	if ctx.Done() == nil {
		return ctx
	}
	return context.WithoutCancel(ctx)
}

// try runs a request, and undoes all of it if it fails.
func (tx *Tx) try(run func(*Tx) error) error {
	err := tx.s.Savepoint(tx.ctx, func() error {
		if err := run(tx); err != nil {
			return err
		}
		return tx.append()
	})
	if err != nil {
		tx.rollback()
	}
	return err
}

// publish tells the rest of the engine what a committed request did.
func (e *Engine) publish(tx *Tx) {
	for _, u := range tx.writes {
		e.observe(u.tree, u.changes())
		if u.tree.Ended() || sleepsLong(u) {
			e.evict(u.tree.Root)
		} else if c := e.trees[u.tree.Root]; c != nil {
			e.updateSteps(c, u)
		}
	}
}

// forget drops the trees of a request whose commit failed: what they hold never happened.
func (e *Engine) forget(tx *Tx) {
	if tx == nil {
		return // the store did not even begin
	}
	for _, u := range tx.writes {
		e.evict(u.tree.Root)
	}
}

// cached is a tree in memory between commands.
type cached struct {
	tree  *state.Tree
	used  uint64
	steps stepCache
}

// load finds a tree in memory, or has the store read it.
func (e *Engine) load(tx *Tx, root workitem.CaseID) (*state.Tree, error) {
	e.uses++
	if c := e.trees[root]; c != nil {
		c.used = e.uses
		return c.tree, nil
	}
	tree, err := tx.s.Load(tx.ctx, root)
	if err != nil {
		return nil, fmt.Errorf("case %s: %w", root, err)
	}
	if tree.Ended() {
		return tree, nil // nobody will change it, and most likely nobody will ask again
	}
	e.trees[root] = &cached{tree: tree, used: e.uses}
	tree.Each(func(c *state.Case) {
		for it := range c.Items.All() {
			e.index.put(it.ID, root)
		}
	})
	return tree, nil
}

// cache puts a new tree into memory.
func (e *Engine) cache(tree *state.Tree) {
	e.uses++
	e.trees[tree.Root] = &cached{tree: tree, used: e.uses}
}

// evict drops a tree from memory.
func (e *Engine) evict(root workitem.CaseID) {
	c := e.trees[root]
	if c == nil {
		return
	}
	e.dropSteps(c)
	delete(e.trees, root)
	e.index.drop(c.tree)
}

// trim keeps the cache within its size. It looks at a handful of trees and drops the one that was used longest ago: nearly
// as good as a list in order of use, and it costs nothing while a tree is used.
func (e *Engine) trim() {
	for len(e.trees) > e.cfg.CacheCases {
		var oldest workitem.CaseID
		seen, used := 0, ^uint64(0)
		for root, c := range e.trees {
			if c.used < used {
				oldest, used = root, c.used
			}
			if seen++; seen == 8 {
				break
			}
		}
		e.evict(oldest)
	}
}
