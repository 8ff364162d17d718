package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workitem"
)

// request is a command on its way through the writer.
type request struct {
	ctx      context.Context
	run      func(*Tx) error
	accepted func()      // called by the writer when run has succeeded, before the commit; may be nil
	ended    func(error) // called by the writer with the outcome, once durable; may be nil
	lazy     bool        // its commit may wait a moment for company
	once     bool        // run is the user's, and is not called again
	reads    bool        // it changes nothing, so nothing waits for its commit
	done     chan error  // gets the outcome, once durable; may be nil
	err      error
	tx       *Tx
}

// errCommit says that a command was fine and the store could not commit it.
var errCommit = errors.New("the store could not commit")

// maxBatch bounds one commit, so that the first of a batch does not wait for the thousandth.
const maxBatch = 256

// lazyWait is how long a batch of nothing but lazy requests waits for company. The claim of a job is lazy: a short job
// hands in its result within this time, and both share one commit.
const lazyWait = 500 * time.Microsecond

// submit queues a command and waits until it is durable. If the context ends first, the command may still happen.
func (e *Engine) submit(ctx context.Context, r *request) error {
	if err := e.ask(ctx, r); err != nil {
		return err
	}
	select {
	case err := <-r.done:
		e.answers.Put(r.done) // its one answer is taken, so it can carry that of another request
		return err
	case <-ctx.Done():
		return fmt.Errorf("%w; the command was queued and may still happen", ctx.Err())
	}
}

// ask queues a request whose outcome r.done gets.
func (e *Engine) ask(ctx context.Context, r *request) error {
	if err := notNested(ctx); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	r.ctx, r.done = ctx, e.answer()
	if !e.enqueue(r) {
		return ErrClosed
	}
	return nil
}

// answer finds a channel for the outcome of a request. Each engine has its own: one that was made in a bubble of
// testing/synctest is of no use outside.
func (e *Engine) answer() chan error {
	if ch, ok := e.answers.Get().(chan error); ok {
		return ch
	}
	return make(chan error, 1)
}

// enqueue queues a request; false if the engine is closed.
func (e *Engine) enqueue(r *request) bool {
	e.active.add(1)
	if e.queue.push(r) {
		return true
	}
	e.active.add(-1)
	return false
}

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
			if err := e.store.Idle(context.Background()); err != nil {
				e.log.Error("the store could not do its housekeeping; nothing is lost", "error", err)
			}
		}
	}
}

// commit takes what is queued and commits it together. Each request fails alone; a failing commit fails them all.
func (e *Engine) commit(first *request) {
	batch := append(e.batch, first)
	err := e.store.Update(context.Background(), func(s store.Tx) error {
		// Each command has its own time: one that was queued because something is due must find it due.
		e.execute(s, first, e.now())
		for r := e.next(batch); r != nil; r = e.next(batch) {
			batch = append(batch, r)
			e.execute(s, r, e.now())
		}
		return nil
	})
	for _, r := range batch {
		if err != nil && r.err == nil {
			r.err = fmt.Errorf("%w: %w", errCommit, err)
			e.forget(r.tx)
		}
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
	if err != nil {
		e.log.Error("a commit failed; none of its commands happened", "commands", len(batch), "error", err)
	}
	clear(batch)
	e.batch = batch[:0]
	e.trim()
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
func (e *Engine) execute(s store.Tx, r *request, now time.Time) {
	r.tx = &Tx{e: e, s: s, now: now, ctx: whole(r.ctx)}
	if r.err = r.ctx.Err(); r.err != nil {
		return
	}
	defer func() { r.tx.gate.End() }()
	if r.err = r.tx.try(r.run); errors.Is(r.err, errLate) && !r.once {
		r.tx.gate.End()
		r.tx = &Tx{e: e, s: s, now: now, ctx: whole(r.ctx), late: true}
		r.err = r.tx.try(r.run)
	}
	if r.err != nil {
		return
	}
	if r.accepted != nil {
		r.accepted()
	}
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
	for _, u := range tx.units {
		events := u.events()
		e.sched.note(u.tree, events)
		e.watch.note(u.tree, events)
		e.topics.note(u.tree, events)
		e.keep.note(u.tree, events)
		e.logAttempts(u.tree, events)
		if u.tree.Ended() || sleepsLong(u) {
			e.evict(u.tree.Root)
		} else if c := e.trees[u.tree.Root]; c != nil {
			e.recallNote(c, u)
		}
	}
}

// forget drops the trees of a request whose commit failed: what they hold never happened.
func (e *Engine) forget(tx *Tx) {
	if tx == nil {
		return // the store did not even begin
	}
	for _, u := range tx.units {
		e.evict(u.tree.Root)
	}
}

// cached is a tree in memory between commands.
type cached struct {
	tree   *store.Tree
	used   uint64
	recall recall
}

// load finds a tree in memory, or has the store read it.
func (e *Engine) load(tx *Tx, root workitem.CaseID) (*store.Tree, error) {
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
	tree.Each(func(c *store.Case) {
		for it := range c.Items.All() {
			e.index.put(it.ID, root)
		}
	})
	return tree, nil
}

// cache puts a new tree into memory.
func (e *Engine) cache(tree *store.Tree) {
	e.uses++
	e.trees[tree.Root] = &cached{tree: tree, used: e.uses}
}

// evict drops a tree from memory.
func (e *Engine) evict(root workitem.CaseID) {
	c := e.trees[root]
	if c == nil {
		return
	}
	e.recallDrop(c)
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
