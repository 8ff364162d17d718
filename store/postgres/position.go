package postgres

import (
	"context"
	"fmt"
	"strconv"
)

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
	query := currentXact
	if !tx.begun {
		query = "BEGIN; " + query
	}
	results, err := tx.w.simple(context.Background(), query)
	if err != nil && tx.w.gone() && !tx.begun && !tx.gave { // it was lost while nothing was under way
		if err = tx.s.rejoin(context.Background()); err == nil {
			tx.w = tx.s.w
			results, err = tx.w.simple(context.Background(), query)
		}
	}
	tx.w.mu.Lock()
	defer tx.w.mu.Unlock()
	if err != nil {
		return tx.failLocked(err)
	}
	tx.begun = true
	last := results[len(results)-1]
	if tx.xact, err = strconv.ParseInt(string(last.Rows[0][0]), 10, 64); err != nil {
		return tx.failLocked(err)
	}
	tx.first = tx.s.base + tx.xact<<xactBits
	return nil
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

// findBase finds what positions are counted from. It is raised if the journal is ahead of the numbers of transactions, as in a dump
// that was restored on another server. No engine appends then: its own entries would not be ahead.
func (s *Store) findBase(c *conn) error {
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
	if behind := head - (base + xact<<xactBits); behind >= 0 {
		base += behind + 1<<xactBits
		if _, err := c.run("INSERT INTO @.meta (name, value) VALUES ('base', $1) ON CONFLICT (name) DO UPDATE SET value = $1", base); err != nil {
			return err
		}
	}
	s.base = base
	return nil
}
