package postgres

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"strconv"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/internal/tables"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// fenced fails, by a division by zero, unless this engine is alive. A process that declares it dead waits for the lock until this
// transaction has ended, and none can pass after that.
//
//	this engine                                the one that declares it dead
//	SELECT ... FOR SHARE: the row is live
//	                                           UPDATE processes SET state = 'dead': waits for the row
//	INSERT INTO journal ...; COMMIT
//	                                           goes on; frees the jobs as the commit has left them
//	SELECT ... FOR SHARE: no live row: 1 / 0
//
// Shared, as the row is also locked by Take, beside a commit of the same engine. A division by zero is an error that a batch
// can be made to depend on in plain SQL, without a function in the database; it has a code of its own. Other statements of a
// commit do the same, and are distinguished by their place in the batch; see outcome.
const fenced = "SELECT 1 / (SELECT count(*) FROM (SELECT FROM @.processes WHERE id = $1 AND epoch = $2 AND state = 'live' FOR SHARE) p)"

// appendEntries adds entries to their streams. Each row says which entry of its root the newest one in the database must be,
// and how many of this transaction come before: another newest entry makes the revision NULL, or one that
// is there already, and the transaction fails. Of root A, 17 is the newest entry, as revision 4, when two are made:
//
//	                 base  nth
//	first entry        17    1   ->  revision 5
//	second entry       17    2   ->  revision 6
//
// If another engine has appended 18 since, the newest one is not 17, and the revision is NULL, which the column refuses. If that engine
// has not committed yet, 18 is not seen, and both have revision 5: the primary key has the second one wait for the first, and then fail
// if that one has committed.
//
// The base is compared with seq, which is unique in the database, and not with rev: after a standby without the last commits
// was promoted, the same revision may be another entry.
//
// The revision of the base is known if this engine has appended it. If there is a newer entry all the same, the primary key refuses the new ones in the same way; if the case was removed, or
// that entry was lost with a server, the check before has failed.
var appendEntries = newStatement("INSERT INTO @.journal (root, rev, seq, process, format, at, command, actor, key, answer, events) "+
	"SELECT u.root, u.nth + COALESCE(u.known, (SELECT CASE WHEN j.seq = u.base THEN j.rev END FROM "+
	"(SELECT seq, rev FROM @.journal WHERE root = u.root ORDER BY rev DESC LIMIT 1) j)), "+
	"u.seq, u.process, "+strconv.Itoa(format)+", u.at, u.command, u.actor, u.key, u.answer, u.events FROM %s",
	[]string{"root", "base", "known", "nth", "seq", "process", "at", "command", "actor", "key", "answer", "events"}, (&transaction{}).entryColumns(nil, nil))

// commit writes what was appended and replied, and ends the transaction. It goes in one round trip, unless SQL of the user's ran:
// then the end is one of its own.
//
//	engine                                          server
//	fence, locks and checks, journal, keys,  ──▶    runs them in this order; after one that fails
//	tables, replies, settings, end                  it runs none of the others
//	results, up to the first that failed     ◀──
//
// So the number of the statement that failed says why, see outcome. A large one goes in parts, see parts.go. The fence is the first: it is locked until the end, so an engine
// that is declared dead has committed before that, or writes nothing. The checks come before what is written, so that a transaction
// that is stale has written nothing that others wait for.
func (tx *transaction) commit() error {
	if err := tx.usable(); err != nil {
		return err
	}
	tx.end()
	switch {
	case tx.spoiled != nil:
		return tx.failLocked(tx.spoiled)
	// Once: the engine drops the trees that it has in memory, and loads them as they are.
	case tx.s.rejoined: // commits may be lost that those who ask for this one know of
		tx.s.rejoined = false
		clear(tx.s.revs)
		return tx.staleError(nil, store.ErrFenced)
	case len(tx.late) > 0:
		return tx.staleError(tx.late, nil)
	// It wrote nothing and holds nothing, so there is nothing to fence. What it has read may be stale all the same.
	case len(tx.appended) == 0 && len(tx.replies) == 0 && len(tx.settings) == 0 && !tx.begun:
		return tx.checkExpected()
	}
	tx.useAhead()           // what has no entry would otherwise be written in it, and undone when it ends
	if tx.w.opening != "" { // a transaction of one round trip would not have it
		if err := tx.begin(); err != nil {
			return err
		}
	}
	b := &batch{sql: tx.w.sql}
	tx.queueFence(b)
	// SQL of the user's ran with the plans of the role; those of the store's statements below need its own settings, see
	// keyed.
	if tx.users {
		b.queue(storesPlans)
	}
	tx.queueAll(b)
	tx.s.hints.queue(tx, b)
	committed := 0 // how many statements there are with the one that commits
	// Without an entry there is no number yet; it is asked for, so that happened can be answered. Without SQL of the user's
	// the end of the transaction goes with the rest, and if no transaction was begun, the batch is one by itself.
	switch {
	case tx.users && tx.xact == 0:
		b.queue(currentXact)
	case tx.begun && !tx.users:
		b.queue("COMMIT")
		committed = tx.parts.n + b.b.Len()
		if tx.s.mayBeginAhead() {
			b.queue("BEGIN")
			b.queue(currentXact)
		}
	}
	done, err := tx.send(b)
	// The commit succeeded. That the next transaction could not be begun behind it is an error of that one, and not of this.
	if committed > 0 && done.n >= committed {
		tx.s.beganAhead(done, committed)
		err = nil
	}
	if tx.users && err == nil {
		if tx.xact == 0 {
			tx.xact = done.number()
		}
		// In a round trip of its own: triggers and constraints of the user's that are deferred run in it, and their errors
		// are distinguished from those of the batch. Its context is not that of a caller, as for every statement of the writer: a
		// canceled one closes the connection.
		err = tx.w.exec(context.Background(), "COMMIT")
	}
	if err == nil {
		tx.s.deltas++
		tx.s.noteLast(tx.appended)
		tx.keepRevisions()
		return nil
	}
	return tx.outcome(err, done.n)
}

// queueFence adds the statement that is the first of all.
func (tx *transaction) queueFence(b *batch) {
	if tx.parts.n == 0 {
		b.queue(fenced, tx.s.self, tx.s.epoch)
	}
}

// outcome is the error of a commit that failed at one of its statements. If the connection was lost on the way, it finds out whether the
// commit happened all the same.
func (tx *transaction) outcome(err error, at int) error {
	switch {
	// The fence is statement 0. A division by zero of another statement is a stale tree, or a reply that another engine
	// gave.
	case at == 0 && code(err) == divisionByZero:
		tx.rollback()
		return tx.s.fencedOut(err)
	case code(err) == divisionByZero && tx.parts.isCheck(at):
		return tx.staleError(tx.findStale(), err)
	case tx.s.db.isConflict(err):
		return tx.staleError(nil, err)
	case code(err) == lockNotAvailable && tx.parts.isCheck(at):
		return tx.lockedOut(err)
	case !tx.w.gone():
		return tx.s.db.refusal(err)
	}
	// resolve may give this engine another number, and the entry has the one that it was written with.
	before := tx.s.self
	if again := tx.s.resolve(); again != nil {
		tx.s.doubt = true
		return tx.s.db.at("%w: the connection was lost in the commit, and whether that happened could not be found out, so look before you "+
			"repeat it, or repeat it with an idempotency key: %w (%w)", store.ErrUnavailable, err, again)
	}
	if happened, failed := tx.happened(before); failed != nil || !happened {
		return tx.s.db.at("%w: the connection was lost, and nothing of this happened: %w", store.ErrUnavailable, cmp.Or(failed, err))
	}
	tx.s.log.Warn("the connection was lost in a commit, which happened", "database", tx.s.db.name, "error", err)
	return nil
}

// happened reports whether the commit of a connection that was lost is in the database. What it was made with is fenced, so
// the answer does not change any more. One entry answers for all, as they are there together or not at all; one of a tree that was
// removed does not, since it is not there either way. Without any, the server is asked by the number of the transaction.
func (tx *transaction) happened(process int64) (bool, error) {
	// By (root, seq) and the process: positions are made of numbers of transactions, and after a promotion a number may be
	// given again.
	for i := range tx.appended {
		if e := tx.appended[i].Entry; !tx.appended.Removed(e.Root) {
			_, found, err := tx.s.w.number("SELECT 1 FROM @.journal WHERE root = $1 AND seq = $2 AND process = $3", uuid(e.Root), e.Seq, process)
			return found, err
		}
	}
	if tx.xact == 0 {
		return false, nil
	}
	committed := false
	err := tx.s.w.each("SELECT pg_xact_status($1::text::xid8) = 'committed'", []any{strconv.FormatInt(tx.xact, 10)}, func(r *tables.Row) error {
		committed = r.Flag()
		return r.Err
	})
	return committed, err
}

// queueAll adds the statements that write what the transaction did.
func (tx *transaction) queueAll(b *batch) {
	roots, last := tx.known(tx.unsent(nil))
	tx.queueCheck(b, roots, last)
	// First, so that a key of a removed case is free for a command that comes after it in this transaction.
	gone := tx.queueRemoved(b)
	if entries := tx.unsent(gone); len(entries) > 0 {
		b.large = len(entries) >= tx.s.db.set.fewestLarge
		tx.queueEntries(b, entries)
		tx.partIfLarge(b)
		tx.queueTables(b, entries)
	}
	if tx.counts != nil {
		tx.counts.queue(b)
	}
	for _, r := range tx.replies {
		// Two engines may read the same request; the command of the second is undone with its reply, since they are one
		// transaction.
		b.queue(replyOnce,
			state.Micros(tx.s.now()), nullable(string(r.answer.Result)), nullable(r.answer.Code), nullable(r.answer.Error), r.id)
	}
	tx.queueSettings(b)
}

// replyOnce fails, by a division by zero, if another engine has replied.
const replyOnce = "WITH r AS (UPDATE @.requests SET replied = $1, result = $2, code = $3, error = $4 WHERE id = $5 AND replied IS NULL " +
	"RETURNING id) SELECT 1 / (SELECT count(*) FROM r)"

func (tx *transaction) queueEntries(b *batch, entries []tables.Command) {
	// Several commands of a batch may be on one root case. All have the base of the first, as the later ones are not in the
	// database yet.
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
	appendEntries.queue(b, len(entries), tx.entryColumns(entries, at))
	tx.appendedTo(roots)
	if len(keys) > 0 {
		b.queue(keepKeys, keys, ids(keyed, rootOf), numbers(keyed, seqOf))
	}
}

func rootOf(c tables.Command) workitem.CaseID { return c.Entry.Root }

func seqOf(c tables.Command) int64 { return c.Entry.Seq }

// entryColumns are in the order of appendEntries.
func (tx *transaction) entryColumns(entries []tables.Command, at []place) []any {
	return []any{
		ids(entries, rootOf),
		numbers(at, func(p place) int64 { return p.base }),
		optionalNumbers(at, func(p place) int64 { return p.known }),
		numbers(at, func(p place) int64 { return p.nth }),
		numbers(entries, seqOf),
		numbers(entries, func(tables.Command) int64 { return tx.s.self }),
		numbers(entries, func(c tables.Command) int64 { return state.Micros(c.Entry.At) }),
		texts(entries, func(c tables.Command) string { return c.Entry.Command }),
		texts(entries, func(c tables.Command) string { return c.Entry.By }),
		optionalTexts(entries, func(c tables.Command) string { return c.Entry.Key }),
		optionalTexts(entries, func(c tables.Command) json.RawMessage { return c.Entry.Answer }),
		encoded(entries, len(tx.buf), func(b []byte, c tables.Command) []byte { return append(b, tx.buf[c.Start:c.End]...) }),
	}
}

// A key that another engine has used meanwhile violates the primary key, which is a conflict: the command is run again,
// finds the entry with the key, and returns its result.
const keepKeys = "INSERT INTO @.idempotency_keys (key, root, seq) SELECT * FROM unnest($1::bytea[], $2::uuid[], $3::bigint[])"

// keyHash is how an idempotency key is kept.
func keyHash(key string) []byte {
	sum := sha256.Sum256([]byte(key))
	return sum[:]
}
