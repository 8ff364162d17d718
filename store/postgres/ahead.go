package postgres

import (
	"context"
	"time"
)

// The number of a transaction is asked for before its statements are sent, since positions are made of it: see position.go. A busy
// engine that is alone begins its next transaction behind the commit of the one before, in the same round trip.
//
//	update 1    BEGIN, number ──▶ ◀──   statements, COMMIT ──▶ ◀──
//	                                                BEGIN, number ──▶ ◀──
//	update 2                                                           statements, COMMIT ──▶ ◀──
//
// The update returns with the result of its COMMIT. The number is read when the next update needs it, or when the transaction is dropped.
//
// What is read before the number is known may be older than the number, and nothing else may: another engine that commits in between
// makes positions that are later than those of this one, which so is stale, and has to do its batch again. So an engine that has company
// begins nothing ahead.

// keepAhead is for how long a transaction waits for an update to use it. It holds no lock and no snapshot, but entries of transactions
// that began later are not settled before it ends, and vacuum spares what they see.
const keepAhead = 5 * time.Millisecond

// restEvery is how many commits in a row begin the next transaction, before one does not. What a session did reaches the statistics of the
// server, by which it vacuums and analyzes tables, only while the session is in no transaction, and once a second at most.
const restEvery = 50

// ahead is a transaction of the server's that the next update may use. It is guarded by Store.mu.
type ahead struct {
	begun bool        // there is one
	row   int         // how many were begun since a commit began none
	timer *time.Timer // ends it if no update wants it
}

// mayBeginAhead reports whether the commit of an update is to begin the next transaction. Behind a pooler, that would keep a session from
// others.
func (s *Store) mayBeginAhead() bool {
	if s.others.Load() != 0 || s.db.set.poll != 0 {
		return false
	}
	s.ahead.row = (s.ahead.row + 1) % restEvery
	return s.ahead.row != 0
}

// beganAhead notes that the next transaction was begun behind a commit.
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

// checkAhead ends the transaction that was begun ahead if an error made it useless, as that of a read.
func (s *Store) checkAhead() {
	if !s.ahead.begun || s.w == nil {
		return
	}
	if s.w.catchUp(); s.w.pg.PgConn().TxStatus() != 'T' {
		s.dropAhead()
	}
}

// takeAhead returns the number of the transaction that was begun ahead, which is the caller's then; 0 if there is none, or if the connection
// was lost with it.
func (s *Store) takeAhead() (xact int64) {
	if !s.forgetAhead() || s.w == nil || s.w.gone() {
		return 0
	}
	s.w.catchUp()
	xact, s.w.begun = s.w.begun, 0
	return xact
}

// forgetAhead reports whether a transaction was begun ahead, and leaves it to the end of its connection.
func (s *Store) forgetAhead() bool {
	if !s.ahead.begun {
		return false
	}
	s.ahead.timer.Stop()
	s.ahead.begun = false
	return true
}
