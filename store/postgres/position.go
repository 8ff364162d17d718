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
// Transactions 813 and 814 may belong to other programs, so there are gaps. A position has 63 bits, which suffice for
// 8.8 * 10^12 transactions.
//
// Positions increase within a tree: a commit on it has a later transaction id than the commit that it follows, or is
// stale; see Append. Across trees they have the order in which transactions began, not that in which they ended: entry
// 815 may be visible before 812. A reader that follows the journal reads up to the horizon.
//
// The position of an entry is base + (transaction id << xactBits) + n, where n counts the entries of the transaction
// from 1. Transaction ids increase and are never reused, so commits need no shared sequence. All entries below the
// oldest transaction in progress are visible: none can appear among them later.
const (
	xactBits   = 20
	maxEntries = 1<<xactBits - 1 // per transaction
)

// horizon is the position below which all entries are visible: the least that a transaction in progress can have.
// Transactions of other databases of the server count too, since transaction ids are common to the server.
const horizon = "(SELECT COALESCE((SELECT value FROM @.meta WHERE name = 'base'), 0) + " +
	"(pg_snapshot_xmin(pg_current_snapshot())::text::bigint << 20))" // xactBits

const currentXact = "SELECT pg_current_xact_id()::text::bigint"

// position gets the transaction id, and begins the transaction if necessary. An engine that loads a tree after that may
// find a later position in it; its commit then fails as stale.
func (tx *serverTransaction) position() error {
	if tx.xact != 0 {
		return nil
	}
	if tx.useAhead(); tx.xact != 0 {
		return nil
	}
	// In one message. pg_current_xact_id assigns an id to the transaction if it has none yet.
	ask := func() (*pgconn.Result, error) { return tx.w.begin(context.Background(), begin, currentXact) }
	if tx.begun {
		ask = func() (*pgconn.Result, error) { return tx.w.last(context.Background(), currentXact) }
	}
	result, err := ask()
	// A restart of the server may have closed an idle connection, which shows at the first statement. f continues with
	// a new connection; as always, the commit checks what it has read.
	if err != nil && tx.w.gone() && !tx.begun && !tx.gave { // it was lost outside of a transaction
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

// useAhead makes this transaction use the one that was begun ahead.
func (tx *serverTransaction) useAhead() {
	tx.w.mu.Lock()
	defer tx.w.mu.Unlock()
	tx.useAheadLocked()
}

func (tx *serverTransaction) useAheadLocked() {
	if tx.begun {
		return
	}
	if xact := tx.s.takeAhead(); xact != 0 {
		tx.begun, tx.xact, tx.first = true, xact, tx.s.base+xact<<xactBits
	}
}

// next returns the position of the next entry.
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

// newServer stores which server this is, and reports whether it has changed or was restarted. Engines run it one at a
// time.
const newServer = "INSERT INTO @.meta (name, value) VALUES ('server', " + serverStart + ") " +
	"ON CONFLICT (name) DO UPDATE SET value = excluded.value WHERE meta.value <> excluded.value RETURNING 1"

// maxLost is how many transactions a standby may lack when it is promoted.
const maxLost = 1 << 20

// findBase finds the base of positions for a new connection, before it appends. The base is raised if the journal is
// ahead of the transaction ids, as in a dump that was restored on another server. No engine is appending then: the
// journal is not ahead of the entries of a live engine.
//
// The base is also raised if the server is another one. A promoted standby that lacks the last transactions assigns
// their ids again, and an engine that knows a lost entry would mistake the new entry at its position for it. All
// connections are new then.
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
	// The standby may lack up to maxLost transactions, and assigns their ids again: new positions come after all of
	// theirs.
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
