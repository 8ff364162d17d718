package postgres

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/internal/tables"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// With [Window], an engine that has no other beside it commits journal entries, and writes the rows of the tables after
// the commits, for many entries at a time. What is committed and not in the tables yet is the window:
//
//	Update   fence, journal, COMMIT ──▶ window ──▶ answers
//	flush                               window ──▶ rows, projected; COMMIT      after 20 ms, or before something reads the tables
//
// The journal has all that the rows are made of, and a window that is lost with its process is written again from the journal by the next
// engine that joins. A flush waits for the disk as every commit: this engine forgets what it has written, and nothing would write it again if
// the server crashed before. pulses.projected is the
// position up to which the tables have the entries of an engine. It is written in the transaction of the rows, so both are lost, or neither.
//
// Everything that reads the tables through the store reads them with the window:
//
//	an Update or a View of this engine    flushes first
//	a commit with the user's SQL          the same; its rows are written in the commit
//	another engine, as it joins           takes processes.windowed from this one, and waits until the tables have what was
//	                                      committed before; see settleOthers
//	a reader of another process           waits for what is committed as its View begins; see beginView
//
// A View has no entries that are newer than the tables.
//
// windowed is part of the fence of a commit whose rows are not in it. So after another engine has joined, no such commit succeeds,
// and this engine writes the rows in its commits, with the checks that several engines need.

const (
	// maxAge bounds how long an engine that joins, or a reader, waits for the window of another process.
	maxAge = time.Second
	// fullWindow is the number of commands at which the window is written before its age.
	fullWindow = 512
	// maxWindow is the number of commands at which a commit waits for the flush.
	maxWindow = 16 * fullWindow
	// windowRetry is how long after a failure a flush is tried again.
	windowRetry = 500 * time.Millisecond
	// enterPace is how often an engine tries to be the only one.
	enterPace = time.Second
)

// window is what an engine has committed and not written to the tables yet.
//
// flushing is taken after Store.mu, and before mu; it is held during a flush.
type window struct {
	s     *Store
	on    bool        // whether commits leave their rows to the window; guarded by Store.mu
	rests atomic.Bool // whether the engine has just tried to be the only one

	flushing    sync.Mutex
	c           *conn // nil while there is no connection
	self, epoch int64 // fence a flush
	doubt       bool  // the outcome of the last flush is unknown, as its connection was lost
	closed      bool

	mu      sync.Mutex
	commits []committed
	n       int // number of commands
	roots   map[workitem.CaseID]int
	timer   *time.Timer // begins a flush; nil before the first commit
}

// committed is what one transaction leaves to the window.
type committed struct {
	entries []tables.Command
	offered map[workitem.JobID]bool
}

// holderOf is [transaction.holderOf] for a job of the commit.
func (c committed) holderOf(self int64, j *state.Job) int64 { return holder(self, c.offered, j) }

// last returns the position of its last entry.
func (c committed) last() int64 { return c.entries[len(c.entries)-1].Entry.Seq }

// add takes the entries of a commit.
func (w *window) add(tx *transaction) {
	c := committed{entries: slices.Clone(tx.appended), offered: tx.offered}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.commits = append(w.commits, c)
	w.count(c, 1)
	switch {
	case w.timer == nil:
		w.timer = time.AfterFunc(w.s.db.set.window, w.flushLater)
	case w.n >= fullWindow && w.n-len(c.entries) < fullWindow:
		w.timer.Reset(0)
	case len(w.commits) == 1:
		w.timer.Reset(w.s.db.set.window)
	}
}

// count adds a commit to the numbers of commands, or subtracts it.
func (w *window) count(c committed, sign int) {
	w.n += sign * len(c.entries)
	if w.roots == nil {
		w.roots = make(map[workitem.CaseID]int)
	}
	for i := range c.entries {
		root := c.entries[i].Entry.Root
		if w.roots[root] += sign; w.roots[root] == 0 {
			delete(w.roots, root)
		}
	}
}

// flushLater is the flush of the timer.
func (w *window) flushLater() {
	if err := w.flush(); err != nil && w.s.ending.Err() == nil {
		w.s.log.Warn("the tables could not be written; the journal has everything, and it is tried again", "database", w.s.db.name, "error", err)
	}
}

// has reports whether the window has entries of a root case.
func (w *window) has(root workitem.CaseID) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.roots[root] > 0
}

// size returns the number of commands in the window.
func (w *window) size() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.n
}

// flush writes what was committed before the call. What could not be written stays in the window, and is tried again.
func (w *window) flush() error {
	w.flushing.Lock()
	defer w.flushing.Unlock()
	w.mu.Lock()
	all := slices.Clip(w.commits)
	w.mu.Unlock()
	if len(all) == 0 {
		return nil
	}
	err := w.write(all)
	if err != nil && w.doubt { // the server may have ended an idle connection
		err = w.write(all)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		w.timer.Reset(windowRetry)
		return w.s.db.explain(err)
	}
	if w.forget(len(all)); len(w.commits) > 0 { // committed meanwhile
		w.timer.Reset(w.s.db.set.window)
	}
	return nil
}

// forget removes the first n commits.
func (w *window) forget(n int) {
	for _, c := range w.commits[:n] {
		w.count(c, -1)
	}
	if w.commits = w.commits[n:]; len(w.commits) == 0 {
		w.commits = nil
	}
}

// drop empties the window, of which the journal has everything.
func (w *window) drop() {
	w.flushing.Lock() // a flush forgets what it has written
	defer w.flushing.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.forget(len(w.commits))
}

// projected is the last statement of a flush: a heartbeat, which changes the same row, waits for the end of the transaction only.
const projected = "UPDATE @.pulses SET projected = $2 WHERE process = $1 AND projected IS NOT NULL"

// write writes the rows of commits, in one transaction that is fenced as theirs was.
func (w *window) write(all []committed) error {
	if w.closed {
		return errClosed
	}
	if w.c == nil || w.c.gone() {
		c, err := w.s.db.connectFor(context.Background(), w.s.db.set.attention, writerNeeds...)
		if err != nil {
			return err
		}
		w.c = c
	}
	written := int64(0)
	if w.doubt {
		var found bool
		var err error
		if written, found, err = w.c.number("SELECT projected FROM @.pulses WHERE process = $1", w.self); err != nil {
			return err
		}
		if !found { // an engine that joined has found the tables complete, and has ended the window
			w.doubt = false
			return nil
		}
	}
	r, last := newRows(), int64(0)
	for _, c := range all {
		if end := c.last(); end > written {
			r.add(c.entries, func(j *state.Job) int64 { return c.holderOf(w.self, j) })
			last = end
		}
	}
	if w.doubt = false; last == 0 {
		return nil
	}
	tx := &transaction{serverTransaction: serverTransaction{s: w.s, w: w.c}}
	b := &batch{sql: w.c.sql}
	b.queue(fenced, w.self, w.epoch)
	r.queue(tx, b)
	tx.counts.queue(b)
	b.queue(projected, w.self, last)
	done, err := b.send(w.c)
	if done.n == 0 && code(err) == divisionByZero {
		return w.refused(err)
	}
	// It may have been committed; if its session still runs, it has locked the rows, and the next attempt fails or waits.
	w.doubt = err != nil && w.c.gone()
	return err
}

// refused is the error of a flush that the fence refused.
func (w *window) refused(err error) error {
	_, live, failed := w.c.number("SELECT 1 FROM @.processes WHERE id = $1 AND state = 'live'", w.self)
	switch {
	case failed != nil:
		return failed
	case live:
		return w.s.db.at("%w: this engine is connecting again: %w", store.ErrUnavailable, err)
	}
	return w.s.db.at("%w: another engine declared this one dead, and writes what it has committed: %w", store.ErrFenced, err)
}

// fence sets the number and the epoch of this engine.
func (w *window) fence() {
	w.flushing.Lock()
	defer w.flushing.Unlock()
	w.self, w.epoch = w.s.self, w.s.epoch
}

// close ends the window. What is in it stays in the journal.
func (w *window) close(how func(*conn) error) error {
	w.mu.Lock()
	if w.timer != nil {
		w.timer.Stop()
	}
	w.mu.Unlock()
	w.flushing.Lock()
	defer w.flushing.Unlock()
	w.closed = true
	if w.c == nil || w.c.gone() {
		return nil
	}
	return how(w.c)
}
