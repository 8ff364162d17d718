package postgres

import (
	"slices"
	"sync/atomic"

	"github.com/tasq-dev/tasq/store/internal/tables"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// The statements of a large transaction are sent in parts, so that the server works on one part while this process
// encodes the next:
//
//	process   commands 1 to 40  commands 41 to 90   journal  cases  items  jobs, COMMIT
//	server                      rows of 1 to 40              journal  cases  items  jobs, COMMIT
//
// Before the commit, only the entries of trees that have ended are sent, since the rows of other trees would probably
// be written twice. Nothing is sent of a command that may still be rolled back.
//
// While there are other engines, nothing is sent before the commit. Rows are locked in the order of their keys only
// within a part, so two engines could deadlock.

const (
	// fewestEnded is the least number of entries of ended trees for which a part is sent before the commit.
	fewestEnded = 64

	// fewestLarge is the least number of entries for which each table has a part of its own.
	fewestLarge = 256

	// maxQueued bounds the parts that wait for the sender.
	maxQueued = 8
)

// sender sends batches one after the other in a goroutine. It owns the connection until wait returns.
type sender struct {
	c       *conn
	queued  chan *batch
	over    chan struct{}
	pending atomic.Int32 // number of batches without a result

	done answers
	err  error // of the first statement that failed; later ones are not sent
}

func newSender(c *conn) *sender {
	s := &sender{c: c, queued: make(chan *batch, maxQueued), over: make(chan struct{})}
	go s.work()
	return s
}

// After an error the server refuses the other statements of the transaction, so they are not sent. The batches are
// taken out of the channel all the same, or send would block.
func (s *sender) work() {
	defer close(s.over)
	for b := range s.queued {
		if s.err == nil {
			var done *answers
			done, s.err = b.send(s.c)
			s.done.add(done)
		}
		s.pending.Add(-1)
	}
}

// It blocks while maxQueued batches wait: this process may encode faster than the server works, and would keep all of
// it in memory.
func (s *sender) send(b *batch) {
	s.pending.Add(1)
	s.queued <- b
}

// isIdle reports whether the next batch would be sent at once.
func (s *sender) isIdle() bool { return s.pending.Load() == 0 && s.err == nil }

// wait waits for the results of all batches, and ends the sender.
func (s *sender) wait() {
	close(s.queued)
	<-s.over
}

// parts is what a transaction has sent so far.
type parts struct {
	to     *sender   // nil if no part is under way
	staged *pipeline // the sent statements of the commit; nil if none
	n      int       // number of sent statements
	checks []int     // positions of those that fail if a root case is stale
	done   answers
	err    error // of the first statement that failed
	roots  map[workitem.CaseID]struct{}
}

// wait waits for the results of all statements.
func (p *parts) wait() {
	if p.to == nil {
		return
	}
	p.to.wait()
	p.done.add(&p.to.done)
	p.to, p.err = nil, p.to.err
}

// part sends what was queued since the last part.
// The statements are moved to a new batch, since the caller continues to fill the given one while these are sent.
func (tx *transaction) part(b *batch) {
	if len(b.b.QueuedQueries) == 0 {
		return
	}
	part := &batch{sql: b.sql}
	part.b, b.b = b.b, part.b
	tx.sendPart(part, part.b.Len())
}

// sendPart sends a number of statements.
func (tx *transaction) sendPart(part *batch, n int) {
	if tx.parts.to == nil {
		tx.parts.to = newSender(tx.w)
	}
	tx.parts.n += n
	tx.parts.to.send(part)
}

// stage sends the statements of a commit that are queued so far, so that the server begins with them. A large commit
// has parts instead.
func (tx *transaction) stage(b *batch) {
	if tx.parts.to != nil || !tx.begun || !tx.w.hasNames() || len(tx.appended) >= tx.s.db.set.fewestLarge {
		return
	}
	if tx.parts.staged == nil {
		tx.parts.staged = &pipeline{c: tx.w}
	}
	tx.parts.n += b.b.Len()
	tx.parts.staged.send(b)
}

// send sends the last part and the statements that run behind the commit, and waits for the results of all parts.
func (tx *transaction) send(b, behind *batch) (done *answers, err error) {
	if tx.parts.to == nil && tx.w.hasNames() {
		x := tx.parts.staged
		if x == nil {
			x = &pipeline{c: tx.w}
		}
		done, err = x.finish(b, behind)
		tx.parts.done.add(done)
		return &tx.parts.done, err
	}
	all, begins := tx.parts.n+b.b.Len()+behind.b.Len(), behind.b.Len() > 0
	b.b.QueuedQueries = append(b.b.QueuedQueries, behind.b.QueuedQueries...)
	if tx.parts.to == nil {
		done, err = b.send(tx.w)
		tx.parts.done.add(done)
	} else {
		tx.part(b)
		tx.parts.wait()
		err = tx.parts.err
	}
	if begins && tx.parts.done.n == all {
		tx.w.begun = tx.parts.done.number()
	}
	return &tx.parts.done, err
}

// partIfLarge sends a part if the commit is large enough.
func (tx *transaction) partIfLarge(b *batch) {
	if b.large {
		tx.part(b)
	}
}

// landed waits until the connection is free. If a sent part has failed, the transaction is rolled back. The error is
// not that of the running command, which runs again.
func (tx *transaction) landed() error {
	tx.w.mu.Lock()
	defer tx.w.mu.Unlock()
	return tx.landedLocked()
}

func (tx *transaction) landedLocked() error {
	if tx.parts.to == nil {
		return nil
	}
	tx.parts.wait()
	if tx.parts.err == nil {
		return nil
	}
	if err := tx.parts.err; tx.w.gone() {
		return tx.failLocked(err)
	}
	return tx.failLocked(tx.staleError(nil, tx.parts.err))
}

// isCheck reports whether a statement is one of those that lock root cases.
func (p *parts) isCheck(statement int) bool { return slices.Contains(p.checks, statement) }

// mark describes an appended entry.
// An entry of a case that has ended is sent once there are enough of them; that of a removed one is never sent, since
// nothing of it is to be written but its removal.
type mark struct {
	over  bool // its tree has ended, or was removed
	ended bool // it has ended
	sent  bool
}

// note marks the entry that was appended last.
func (tx *transaction) note(t *state.Tree, dirty *state.Dirty) {
	m := mark{over: dirty.Removed || t.Ended(), ended: !dirty.Removed && t.Ended()}
	if m.ended {
		tx.endings++
	}
	tx.marks = append(tx.marks, m)
}

// cut removes the marks of entries that were rolled back, which were not sent.
func (tx *transaction) cut(entries int) {
	for _, m := range tx.marks[entries:] {
		if m.ended {
			tx.endings--
		}
	}
	tx.marks = tx.marks[:entries]
}

// sendEnded sends the entries of ended trees, with those before them, and the rows of these trees.
func (tx *transaction) sendEnded() {
	if tx.endings < tx.s.db.set.fewestEnded || !tx.maySendEarly() {
		return
	}
	ended := make(map[workitem.CaseID]struct{}, tx.endings)
	for i, m := range tx.marks {
		if m.ended && !m.sent {
			ended[tx.appended[i].Entry.Root] = struct{}{}
		}
	}
	var entries []tables.Command
	for i, c := range tx.appended {
		if _, is := ended[c.Entry.Root]; is && !tx.marks[i].sent {
			entries = append(entries, c)
			tx.marks[i].sent = true
		}
	}
	tx.endings = 0
	b := &batch{sql: tx.w.sql}
	// As a commit does, the part begins with the fence and the check of its trees: if this engine was declared dead,
	// or another one has changed a tree, the first statements fail and nothing is written.
	tx.queueFence(b)
	roots, last := inOrder(before(entries))
	tx.queueCheck(b, roots, last)
	tx.queueEntries(b, entries)
	tx.queueTables(b, entries)
	tx.part(b)
	if tx.parts.roots == nil {
		tx.parts.roots = ended
		return
	}
	for root := range ended {
		tx.parts.roots[root] = struct{}{}
	}
}

// maySendEarly reports whether a part is sent before the commit.
// Not after the user's SQL has had the connection, nor within a savepoint: what is sent then could not be rolled back
// alone.
func (tx *transaction) maySendEarly() bool {
	tx.w.mu.Lock()
	defer tx.w.mu.Unlock()
	return tx.s.others.Load() == 0 && !tx.s.window.on && tx.begun && !tx.gave && tx.depth == 0 && tx.broken == nil && len(tx.late) == 0 &&
		(tx.parts.to == nil && tx.parts.err == nil || tx.parts.to != nil && tx.parts.to.isIdle())
}

// unsent returns the entries that were not sent yet, without those of removed trees.
func (tx *transaction) unsent(gone map[workitem.CaseID]bool) []tables.Command {
	if len(tx.parts.roots) == 0 && len(gone) == 0 {
		return tx.appended
	}
	entries := make([]tables.Command, 0, len(tx.appended))
	for i, c := range tx.appended {
		if !tx.marks[i].sent && !gone[c.Entry.Root] {
			entries = append(entries, c)
		}
	}
	return entries
}
