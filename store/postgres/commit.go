package postgres

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/internal/tables"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// fenced fails with a division by zero unless this engine is still registered as live. An engine that declares this one
// dead waits for the row lock until this transaction has ended; no later transaction passes the fence.
//
//	this engine                                the one that declares it dead
//	SELECT ... FOR SHARE: the row is live
//	                                           UPDATE processes SET state = 'dead': waits for the row
//	INSERT INTO journal ...; COMMIT
//	                                           continues; frees the jobs as the commit has left them
//	SELECT ... FOR SHARE: no live row: 1 / 0
//
// The lock is FOR SHARE because Take locks the same row while a commit of the same engine runs, and the two must not
// block each other. A division by zero aborts a batch in plain SQL, without a function in the database, and has its own
// SQLSTATE. Other statements of a commit abort in the same way; their position in the batch tells them apart, see
// outcome.
const fenced = "SELECT 1 / COALESCE((SELECT 1 FROM @.processes WHERE id = $1 AND epoch = $2 AND state = 'live' FOR SHARE), 0)"

// appendEntries appends journal entries with an optimistic check for each root case. A row carries base, the seq that
// the newest entry of its root must have, and nth, its number among the entries of this transaction for that root. If
// the newest entry is another one, the revision becomes NULL or one that exists already, and the transaction fails.
// Example: the newest entry of root A is 17, with revision 4, and a transaction appends two:
//
//	                 base  nth
//	first entry        17    1   ->  revision 5
//	second entry       17    2   ->  revision 6
//
// If another engine has committed entry 18 meanwhile, the newest entry is not 17, and the revision is NULL, which
// violates NOT NULL. If that engine has not committed yet, this transaction does not see 18, and both insert revision
// 5: the primary key makes the second wait for the first, and fail if the first commits.
//
// The base is compared with seq, which is unique in the database, and not with rev: after the failover to a standby
// that lacks the last commits, the same revision may belong to another entry.
//
// If this engine appended the base itself, it knows its revision (known), which saves the lookup. A newer entry then
// violates the primary key in the same way. A case that was removed, or a base that was lost in a failover, has already
// failed the check that precedes this statement.
var appendEntries = appending("COALESCE(u.known, (SELECT CASE WHEN j.seq = u.base THEN j.rev END FROM " +
	"(SELECT seq, rev FROM @.journal WHERE root = u.root ORDER BY rev DESC LIMIT 1) j))")

// appendKnown is appendEntries for entries whose bases all have known revisions. The server does not set up the lookup.
var appendKnown = appending("u.known")

var copyEntries = copying("journal", journalColumns)

// journalColumns are those that are copied, see copiedEntries.
var journalColumns = []string{"root", "rev", "seq", "process", "format", "at", "command", "actor", "key", "answer", "events"}

func appending(base string) statement {
	return newStatement("INSERT INTO @.journal ("+strings.Join(journalColumns, ", ")+") "+
		"SELECT u.root, u.nth + "+base+", u.seq, u.process, "+strconv.Itoa(format)+", u.at, u.command, u.actor, u.key, u.answer, u.events FROM %s",
		[]string{"root", "base", "known", "nth", "seq", "process", "at", "command", "actor", "key", "answer", "events"}, (&transaction{}).entryColumns(nil, nil))
}

// commit writes the entries and replies of the transaction and ends it, in one round trip. If the user's own SQL ran in
// the transaction, COMMIT takes a second round trip.
//
//	engine                                          server
//	fence, locks and checks, journal, keys   ──▶    runs them in this order; after one that fails
//	tables, replies, settings, end           ──▶    it runs none of the others
//	results, up to the first that failed     ◀──
//
// The first statements are sent before the rows of the tables are encoded, see pipeline.go. The server stops at the
// first statement that fails, so the number of results says why the commit failed; see outcome. A large transaction is
// sent in parts, see parts.go. The fence comes first and its lock lasts until the end: an engine that is declared dead
// has either committed before that, or writes nothing. The checks come before the writes, so that a stale transaction
// holds no row locks that others wait for.
func (tx *transaction) commit() error {
	if err := tx.usable(); err != nil {
		return err
	}
	tx.end()
	if ended, err := tx.endWithoutWriting(); ended {
		return err
	}
	if err := tx.chooseTables(); err != nil {
		return err
	}
	tx.useAhead()           // otherwise the checks run in it, and are undone when it ends
	if tx.w.opening != "" { // a transaction of one round trip would not have it
		if err := tx.begin(); err != nil {
			return err
		}
	}
	b, behind := &batch{sql: tx.w.sql}, &batch{sql: tx.w.sql}
	tx.queueFence(b)
	// The user's SQL ran with the planner settings of the role; the store's statements below need the store's own, see
	// keyed.
	if tx.users {
		b.queue(storesPlans)
	}
	tx.queueAll(b)
	tx.s.hints.queue(tx, b)
	committed := tx.queueCommit(b, behind)
	done, err := tx.send(b, behind)
	// The commit succeeded. If BEGIN of the next transaction failed, that is an error of the next one, not of this one.
	if committed > 0 && done.n >= committed {
		if err = nil; tx.w.behind != nil || tx.w.begun != 0 {
			tx.s.beganAhead()
		}
	}
	if err != nil {
		return tx.outcome(err, done.n)
	}
	if tx.users {
		if tx.xact == 0 {
			tx.xact = done.number()
		}
		// A separate round trip: the user's deferred triggers and constraints run in COMMIT, and their errors must not
		// be taken for those of the batch. Like every statement of the writer it does not use the context of a caller,
		// since canceling a context closes the connection.
		if err = tx.w.exec(context.Background(), "COMMIT"); err != nil {
			return tx.ownOutcome(err)
		}
	}
	tx.noteCommitted()
	return nil
}

// endWithoutWriting reports whether the transaction has ended without a statement that writes: it has failed before, or
// it has written nothing.
func (tx *transaction) endWithoutWriting() (bool, error) {
	switch {
	case tx.spoiled != nil:
		return true, tx.failLocked(tx.spoiled)
	// Reported once: the engine then drops its cached trees and loads them again.
	case tx.s.rejoined: // commits may be lost that callers were told of
		tx.s.rejoined = false
		clear(tx.s.revs)
		return true, tx.staleError(nil, store.ErrFenced)
	case len(tx.late) > 0:
		return true, tx.staleError(tx.late, nil)
	case len(tx.appended) > 0 || len(tx.replies) > 0 || len(tx.settings) > 0 || tx.begun:
		return false, nil
	}
	// It wrote nothing and holds no locks, so there is nothing to fence. What it read may still be stale.
	err := tx.checkExpected()
	if err != nil && tx.w.gone() {
		err = tx.notCommitted(err)
	}
	return true, err
}

// queueCommit adds the statements that end the transaction to b, and those that begin the next one to behind. It returns
// the number of statements up to the one that commits, or 0 if none of b does.
//
// Without the user's SQL, COMMIT is part of the batch; if no transaction was begun, the batch is an implicit transaction
// of its own. A transaction without an entry has no transaction id yet; it is requested, so that happened can ask for
// the outcome.
func (tx *transaction) queueCommit(b, behind *batch) int {
	if tx.users && tx.xact == 0 {
		b.queue(currentXact)
	}
	if tx.users || !tx.begun {
		return 0
	}
	b.queue("COMMIT")
	if tx.s.mayBeginAhead() {
		behind.queue(begin)
		behind.queue(currentXact)
	}
	return tx.parts.n + b.b.Len()
}

// noteCommitted keeps what the following transactions use of this one.
func (tx *transaction) noteCommitted() {
	tx.s.deltas++
	tx.s.noteLast(tx.appended)
	tx.keepRevisions()
	if tx.deferred {
		tx.s.window.add(tx)
	}
}

// chooseTables decides whether the rows are written in the commit, and makes room in the window, or empties it.
//
// After the user's SQL they are: its later statements see the rows. So they are if a case is removed with them.
func (tx *transaction) chooseTables() error {
	if !tx.s.window.on {
		return nil
	}
	tx.deferred = !tx.users && tx.parts.n == 0 && len(tx.appended) > 0 && !slices.ContainsFunc(tx.appended, func(c tables.Command) bool { return c.Dirty.Removed })
	if tx.deferred && tx.s.window.size() < maxWindow {
		return nil
	}
	return tx.settled()
}

// queueFence adds the fence, which is the first statement of a transaction, to its first part.
// Later parts need none: the row of this engine stays locked until the transaction ends, and an engine that would
// declare this one dead waits for it.
func (tx *transaction) queueFence(b *batch) {
	if tx.parts.n == 0 {
		b.queue(tx.fence(), tx.s.self, tx.s.epoch)
	}
}

func (tx *transaction) fence() string {
	if tx.deferred {
		return fencedAlone
	}
	return fenced
}

// outcome turns the failure of statement number at into the error of the commit. If the connection was lost, it finds
// out whether the commit happened nevertheless.
func (tx *transaction) outcome(err error, at int) error {
	switch {
	// The fence is statement 0. A division by zero in another statement means a stale tree, or a reply that another
	// engine has written.
	case at == 0 && code(err) == divisionByZero:
		tx.rollback()
		return tx.refused(err)
	case code(err) == divisionByZero && tx.parts.isCheck(at):
		return tx.staleError(tx.findStale(), err)
	case tx.s.db.isConflict(err):
		return tx.staleError(nil, err)
	case code(err) == lockNotAvailable && tx.parts.isCheck(at):
		return tx.lockedOut(err)
	case !tx.w.gone():
		return tx.s.db.refusal(err)
	}
	return tx.lost(err, false)
}

// refused is the outcome of a commit that the fence refused.
func (tx *transaction) refused(err error) error {
	if !tx.deferred {
		return tx.s.fencedOut(err)
	}
	_, live, failed := tx.s.w.number("SELECT 1 FROM @.processes WHERE id = $1 AND epoch = $2 AND state = 'live'", tx.s.self, tx.s.epoch)
	if failed == nil && !live {
		return tx.s.fencedOut(err)
	}
	if failed == nil {
		failed = tx.s.window.leave()
	}
	if failed != nil {
		return failed
	}
	// Another engine has joined. The batch runs again, with its rows in the commit.
	return tx.staleError(nil, err)
}

// queueAll adds the statements that write what the transaction did.
func (tx *transaction) queueAll(b *batch) {
	if !tx.deferred { // no other engine can have changed a case
		roots, last := tx.known(tx.unsent(nil))
		tx.queueCheck(b, roots, last)
	}
	// Removals come first, so that a later command in this transaction can use a key of the removed case.
	gone := tx.queueRemoved(b)
	if entries := tx.unsent(gone); len(entries) > 0 {
		b.large = len(entries) >= tx.s.db.set.fewestLarge
		tx.queueEntries(b, entries)
		if !tx.deferred {
			tx.stage(b)
			tx.partIfLarge(b)
			tx.queueTables(b, entries)
		}
	}
	if tx.counts != nil {
		tx.counts.queue(b)
	}
	for _, r := range tx.replies {
		// Two engines may read the same request. The reply of the second fails, and rolls back its command, since both
		// are in one transaction.
		b.queue(replyOnce,
			state.Micros(tx.s.now()), nullable(string(r.answer.Result)), nullable(r.answer.Code), nullable(r.answer.Error), r.id)
	}
	tx.queueSettings(b)
	if tx.s.window.on && !tx.deferred && len(tx.appended) > 0 {
		b.queue(projected, tx.s.self, tx.appended[len(tx.appended)-1].Entry.Seq)
	}
}

// replyOnce fails with a division by zero if another engine has replied already.
const replyOnce = "WITH r AS (UPDATE @.requests SET replied = $1, result = $2, code = $3, error = $4 WHERE id = $5 AND replied IS NULL " +
	"RETURNING id) SELECT 1 / (SELECT count(*) FROM r)"

func (tx *transaction) queueEntries(b *batch, entries []tables.Command) {
	// Several commands of a batch may concern one root case. All share the base of the first, since its entry is not in
	// the database yet.
	at := make([]place, len(entries))
	roots := make(map[workitem.CaseID]*place)
	var keys [][]byte
	var keyed []tables.Command
	for i, c := range entries {
		p := roots[c.Entry.Root]
		if p == nil {
			p = tx.placeBehind(c.Entry)
			roots[c.Entry.Root] = p
		}
		p.nth++
		p.seq = c.Entry.Seq
		at[i] = *p
		if c.Entry.Key != "" {
			keys, keyed = append(keys, keyHash(c.Entry.Key)), append(keyed, c)
		}
	}
	how := appendKnown
	if slices.ContainsFunc(at, func(p place) bool { return p.known == unknown }) {
		how = appendEntries
	}
	if how == appendKnown && b.large {
		tx.copyRows(b, copyEntries, len(entries), tx.copiedEntries(entries, at))
	} else {
		how.queue(b, len(entries), tx.entryColumns(entries, at))
	}
	tx.appendedTo(roots)
	if len(keys) > 0 {
		b.queue(keepKeys, keys, ids(keyed, rootOf), numbers(keyed, seqOf))
	}
}

func rootOf(c tables.Command) workitem.CaseID { return c.Entry.Root }

func seqOf(c tables.Command) int64 { return c.Entry.Seq }

// entryColumns are in the order of appendEntries.
func (tx *transaction) entryColumns(entries []tables.Command, at []place) []any {
	return append([]any{
		ids(entries, rootOf),
		numbers(at, func(p place) int64 { return p.base }),
		optionalNumbers(at, func(p place) int64 { return p.known }),
		numbers(at, func(p place) int64 { return p.nth }),
		numbers(entries, seqOf),
		numbers(entries, func(tables.Command) int64 { return tx.s.self }),
	}, tx.contents(entries)...)
}

// copiedEntries are in the order of journalColumns. All bases have known revisions.
func (tx *transaction) copiedEntries(entries []tables.Command, at []place) []any {
	return append([]any{
		ids(entries, rootOf),
		numbers(at, func(p place) int64 { return p.known + p.nth }),
		numbers(entries, seqOf),
		numbers(entries, func(tables.Command) int64 { return tx.s.self }),
		smallints(entries, func(tables.Command) int16 { return format }),
	}, tx.contents(entries)...)
}

// contents are the columns from "at" on.
func (tx *transaction) contents(entries []tables.Command) []any {
	return []any{
		numbers(entries, func(c tables.Command) int64 { return state.Micros(c.Entry.At) }),
		texts(entries, func(c tables.Command) string { return c.Entry.Command }),
		texts(entries, func(c tables.Command) string { return c.Entry.By }),
		optionalTexts(entries, func(c tables.Command) string { return c.Entry.Key }),
		optionalTexts(entries, func(c tables.Command) json.RawMessage { return c.Entry.Answer }),
		encoded(entries, len(tx.buf), func(b []byte, c tables.Command) []byte { return append(b, tx.buf[c.Start:c.End]...) }),
	}
}

// keepKeys stores idempotency keys with the entries that used them. If another engine has used a key meanwhile, the
// insert violates the primary key. That is a conflict: the engine runs the command again, finds the entry with the key,
// and returns its result.
const keepKeys = "INSERT INTO @.idempotency_keys (key, root, seq) SELECT * FROM unnest($1::bytea[], $2::uuid[], $3::bigint[])"

// keyHash returns the hash under which an idempotency key is stored: keys have any length, and the hash keeps
// index entries small.
func keyHash(key string) []byte {
	sum := sha256.Sum256([]byte(key))
	return sum[:]
}
