package postgres

import (
	"context"
	"time"
)

// The transaction id must be known before the statements are sent, since positions derive from it; see position.go. A
// busy engine without other engines begins its next transaction behind the commit of the previous one, in the same
// round trip.
//
//	update 1    BEGIN, number ──▶ ◀──   statements, COMMIT ──▶ ◀──
//	                                                BEGIN, number ──▶ ◀──
//	update 2                                                           statements, COMMIT ──▶ ◀──
//
// The update returns with the result of its COMMIT. The id is read when the next update needs it, or when the
// transaction is dropped.
//
// Reads before the id is known may be older than the id, but only if no other engine commits in between: the positions
// of that commit would be later than those of this transaction, which would be stale and run its batch again. So
// transactions are begun ahead only while there are no other engines.

// keepAhead is how long a transaction waits for an update to use it. It holds no lock and no snapshot, but until it
// ends, entries of later transactions are not settled, and vacuum cannot remove rows that it may see.
const keepAhead = 5 * time.Millisecond

// restEvery is how many commits in a row begin the next transaction before one does not. A session reports to the
// server's statistics, which autovacuum uses, only while it is outside of a transaction, and at most once a second.
const restEvery = 50

// ahead is a transaction on the server that the next update may use. It is guarded by Store.mu.
type ahead struct {
	begun bool        // there is one
	row   int         // how many were begun since a commit that began none
	timer *time.Timer // ends it if no update uses it
}

// mayBeginAhead reports whether the commit of an update begins the next transaction. Behind a pooler, that would keep a
// session from other clients.
func (s *Store) mayBeginAhead() bool {
	if s.others.Load() != 0 || s.db.set.poll != 0 {
		return false
	}
	s.ahead.row = (s.ahead.row + 1) % restEvery
	return s.ahead.row != 0
}

// beganAhead records that the next transaction was begun behind a commit.
func (s *Store) beganAhead() {
	s.ahead.begun = true
	if s.ahead.timer == nil {
		s.ahead.timer = time.AfterFunc(s.db.set.keepAhead, s.endAhead)
		return
	}
	s.ahead.timer.Reset(s.db.set.keepAhead)
}

// endAhead ends the transaction that was begun ahead. It does nothing if an update has taken it.
func (s *Store) endAhead() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dropAhead()
}

// dropAhead is endAhead with the lock held.
func (s *Store) dropAhead() {
	if s.takeAhead() == 0 {
		return
	}
	if err := s.w.exec(context.Background(), "ROLLBACK"); err != nil {
		s.log.Warn("a transaction that nothing was done in could not be ended; the connection is closed, which does it",
			"database", s.db.name, "error", err)
		_ = s.w.cut() // the next update reconnects
	}
}

// checkAhead ends the transaction that was begun ahead if an error has aborted it, such as that of a read.
func (s *Store) checkAhead() {
	if !s.ahead.begun || s.w == nil {
		return
	}
	if s.w.catchUp(); s.w.pg.PgConn().TxStatus() != 'T' {
		s.dropAhead()
	}
}

// takeAhead returns the id of the transaction that was begun ahead, which the caller then owns; 0 if there is none, or
// if its connection was lost.
func (s *Store) takeAhead() (xact int64) {
	if !s.forgetAhead() || s.w == nil || s.w.gone() {
		return 0
	}
	s.w.catchUp()
	xact, s.w.begun = s.w.begun, 0
	return xact
}

// forgetAhead reports whether a transaction was begun ahead, and leaves it to end with its connection.
func (s *Store) forgetAhead() bool {
	if !s.ahead.begun {
		return false
	}
	s.ahead.timer.Stop()
	s.ahead.begun = false
	return true
}
