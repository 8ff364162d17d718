package postgres

import (
	"strconv"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/internal/tables"
)

// lost returns the error of a commit whose connection was lost; nil if it happened nevertheless. With own, SQL of the user ran in it.
func (tx *transaction) lost(err error, own bool) error {
	// resolve may give this engine another number, but the entry carries the one that it was written with.
	before := tx.s.self
	happened, failed := tx.findOut(before)
	switch {
	case failed != nil:
		tx.s.doubt = true
		return tx.s.db.at("%w: the connection was lost in the commit, and whether that happened could not be found out, so look before you "+
			"repeat it, or repeat it with an idempotency key: %w (%w)", store.ErrUnavailable, err, failed)
	case !happened && own:
		return tx.s.db.at("%w: nothing of this happened: %w: %w", store.ErrUnavailable, store.ErrDisconnected, err)
	case !happened:
		tx.s.log.Warn("the connection was lost in a commit, which did not happen", "database", tx.s.db.name, "error", err)
		return tx.s.db.at("%w: %w: %w", store.ErrUnavailable, store.ErrNotCommitted, err)
	}
	if tx.deferred && tx.s.shared && tx.s.self == before {
		tx.s.window.add(tx)
	}
	tx.s.log.Warn("the connection was lost in a commit, which happened", "database", tx.s.db.name, "error", err)
	return nil
}

// maxResolves is how often the new connection may be lost, too, before the answer is here.
const maxResolves = 3

// findOut reports whether a commit whose connection was lost is in the database, on a new connection.
func (tx *transaction) findOut(process int64) (happened bool, err error) {
	for range maxResolves {
		if err = tx.s.resolve(); err != nil {
			return false, err
		}
		if happened, err = tx.happened(process); err == nil {
			return happened, nil
		}
	}
	return false, err
}

// ownOutcome is outcome for a COMMIT that runs deferred triggers and constraints of the user. They were checked at the end of each command, but
// can fail in the commit nevertheless: the commands of a batch together, or rows of another program that has committed meanwhile, may violate what
// each of them did not.
//
//	a trigger raises an error of its own      ErrRefused: the engine runs each command in a transaction of its own
//	a trigger ends the connection             ErrDisconnected: likewise, and a command that does it again and again fails
//	the server is out of space, or stops      as without SQL of the user
func (tx *transaction) ownOutcome(err error) error {
	switch c := code(err); {
	case tx.w.gone():
		return tx.lost(err, true)
	case c == serializationFailure, c == deadlockDetected:
		return tx.staleError(nil, err)
	case len(c) == 5 && !ofServer[c[:2]]:
		return tx.s.db.at("%w: %w", store.ErrRefused, err)
	}
	return err
}

// ofServer are the classes of errors whose cause is the state of the server, and not the data.
var ofServer = map[string]bool{"08": true, "25": true, "40": true, "53": true, "55": true, "57": true, "58": true, "XX": true}

// happened reports whether a commit whose connection was lost is in the database. The old session is fenced, so the
// answer is final. It looks for one entry, since all entries of a transaction are committed together; an entry of a
// removed tree proves nothing, since it is absent either way. Without a usable entry it asks the server for the status
// of the transaction id.
func (tx *transaction) happened(process int64) (bool, error) {
	// The process is compared too: positions derive from transaction ids, and after a failover to a standby an id may
	// be assigned a second time.
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
