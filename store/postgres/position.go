package postgres

import (
	"context"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5/pgconn"
)

//	transaction 812, first entry     base + 812 * 2^20 + 1
//	transaction 812, second          base + 812 * 2^20 + 2
//	transaction 815, first           base + 815 * 2^20 + 1
//
// 813 and 814 may be of other programs, so there are gaps. A position has 63 bits: the numbers last for 8.8 * 10^12
// transactions.
//
// Within one tree positions rise, as each commit on it has a later number than the one it follows, or is stale; see Append.
// Over all trees they are the order in which transactions began, and not that in which they ended: entry 815 may be seen
// while 812 is not there yet. Who follows the journal reads up to the horizon.
// The position of an entry is base + (transaction << xactBits) + n, where n counts the entries of the transaction from 1. Numbers of
// transactions rise, and are never given twice, so no sequence is shared by all commits. And the entries below the oldest transaction
// that is under way are complete: none can appear among them any more.
const (
	xactBits   = 20
	maxEntries = 1<<xactBits - 1 // of one transaction
)

// horizon is the position before which all entries have appeared: the least that a transaction under way can have. Transactions of
// other databases of the server count too, since numbers are the server's.
const horizon = "(SELECT COALESCE((SELECT value FROM @.meta WHERE name = 'base'), 0) + " +
	"(pg_snapshot_xmin(pg_current_snapshot())::text::bigint << 20))" // xactBits

const currentXact = "SELECT pg_current_xact_id()::text::bigint"

// position finds the number of the transaction, which it begins if need be. An engine that loads a tree after that may find a later
// position in it; its commit fails as a stale one.
func (tx *transaction) position() error {
	if tx.xact != 0 {
		return nil
	}
	if tx.useAhead(); tx.xact != 0 {
		return nil
	}
	// In one message. pg_current_xact_id gives the transaction its number, if it has none yet.
	ask := func() (*pgconn.Result, error) { return tx.w.begin(context.Background(), "BEGIN", currentXact) }
	if tx.begun {
		ask = func() (*pgconn.Result, error) { return tx.w.last(context.Background(), currentXact) }
	}
	result, err := ask()
	// A connection that was idle may have been closed by a restart of the server, and that shows at the first statement. f
	// goes on with the new one; what it has read before is compared at the commit, as always.
	if err != nil && tx.w.gone() && !tx.begun && !tx.gave { // it was lost while nothing was under way
		if err = tx.s.rejoin(context.Background()); err == nil {
			tx.w = tx.s.w
			result, err = ask()
		}
	}
	tx.w.mu.Lock()
	defer tx.w.mu.Unlock()
	if err != nil {
		return tx.failLocked(err)
	}
	tx.begun = true
	if tx.xact, err = strconv.ParseInt(string(result.Rows[0][0]), 10, 64); err != nil {
		return tx.failLocked(err)
	}
	tx.first = tx.s.base + tx.xact<<xactBits
	return nil
}

// useAhead makes a transaction that was begun ahead this one's.
func (tx *transaction) useAhead() {
	tx.w.mu.Lock()
	defer tx.w.mu.Unlock()
	tx.useAheadLocked()
}

func (tx *transaction) useAheadLocked() {
	if tx.begun {
		return
	}
	if xact := tx.s.takeAhead(); xact != 0 {
		tx.begun, tx.xact, tx.first = true, xact, tx.s.base+xact<<xactBits
	}
}

// next is the position of the next entry.
func (tx *transaction) next() (int64, error) {
	if tx.seq == maxEntries {
		return 0, fmt.Errorf("one transaction has %d journal entries already, and may have no more: use several", maxEntries)
	}
	if err := tx.position(); err != nil {
		return 0, err
	}
	tx.seq++
	return tx.first + tx.seq, nil
}

// serverStart is when the server was started, in microseconds.
const serverStart = "(extract(epoch FROM pg_postmaster_start_time()) * 1000000)::bigint"

// newServer notes which server it is, and reports whether it was another one before, or was restarted. One engine does it at a time.
const newServer = "INSERT INTO @.meta (name, value) VALUES ('server', " + serverStart + ") " +
	"ON CONFLICT (name) DO UPDATE SET value = excluded.value WHERE meta.value <> excluded.value RETURNING 1"

// maxLost is how many transactions a standby may lack when it is promoted.
const maxLost = 1 << 20

// findBase finds what positions are counted from, for a new connection, before it appends. It is raised if the journal is ahead of the numbers of
// transactions, as in a dump that was restored on another server. No engine appends then: its own entries would not be ahead.
//
// And it is raised if the server is not the one before. A standby that is promoted, and lacks the last transactions, gives their numbers
// again: an engine that knows of an entry which was lost would take the one that has its position for it. All connections are new then.
func (s *Store) findBase(c *conn) error {
	_, fresh, err := c.number(newServer)
	if err != nil {
		return err
	}
	base, _, err := c.number("SELECT value FROM @.meta WHERE name = 'base'")
	if err != nil {
		return err
	}
	head, _, err := c.number("SELECT max(seq) FROM @.journal")
	if err != nil {
		return err
	}
	xact, _, err := c.number(currentXact)
	if err != nil {
		return err
	}
	behind := head - (base + xact<<xactBits)
	if behind >= 0 {
		base += behind + 1<<xactBits
	}
	// The standby may lack up to maxLost transactions, and gives their numbers again: positions go on behind all of theirs.
	if fresh {
		base += maxLost << xactBits
	}
	if fresh || behind >= 0 {
		if _, err := c.run("INSERT INTO @.meta (name, value) VALUES ('base', $1) ON CONFLICT (name) DO UPDATE SET value = $1", base); err != nil {
			return err
		}
	}
	s.base = base
	return nil
}
