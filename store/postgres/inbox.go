package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/internal/tables"
)

// Requests implements [store.Tx].
func (tx *transaction) Requests(_ context.Context, after int64, max int) ([]store.Request, error) {
	if err := tx.reachable(); err != nil {
		return nil, err
	}
	// Replies are written at the commit, so the table does not show yet which requests this transaction has answered.
	answered := make(map[int64]bool, len(tx.replies))
	for _, r := range tx.replies {
		answered[r.id] = true
	}
	var all []store.Request
	err := tx.w.each("SELECT id, at, command FROM @.requests WHERE replied IS NULL AND id > $1 ORDER BY id LIMIT $2",
		[]any{after, max + len(answered)}, func(r *tables.Row) error {
			q := store.Request{ID: r.Number(), At: r.Time(), Command: r.JSON()}
			if len(all) < max && !answered[q.ID] {
				all = append(all, q)
			}
			return r.Err
		})
	return all, tx.met(err)
}

// Reply implements [store.Tx].
func (tx *transaction) Reply(_ context.Context, id int64, a store.Answer) error {
	if err := tx.reachable(); err != nil {
		return err
	}
	// It is not locked here. The commit checks again that the request is there and has no reply, as another engine
	// may be faster.
	_, found, err := tx.w.number("SELECT id FROM @.requests WHERE id = $1 AND replied IS NULL", id)
	if err != nil {
		return tx.met(err)
	}
	if !found {
		return fmt.Errorf("request %d, without a reply: %w", id, store.ErrNotFound)
	}
	tx.replies = append(tx.replies, reply{id: id, answer: a})
	return nil
}

// Reachable implements [store.Watcher].
// Any process that can connect to the server can leave a command.
func (s *Store) Reachable() bool { return true }

// Changed implements [store.Watcher]. It makes no query, since a process that leaves a command notifies the engine. So
// an engine without commands does not load the server.
func (s *Store) Changed(context.Context) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return false, errClosed
	case s.readOnly:
		return false, s.db.at("%w: it was opened so", store.ErrReadOnly)
	case s.lost != nil:
		return false, s.lost
	}
	if err := s.lose(s.presence.check()); err != nil {
		return false, err
	}
	return s.presence.left.Swap(false), nil
}

// Post leaves a command for the engine that has the database open, and waits for its reply; see [store.Inbox.Requests]
// for the engine's side. If the context ends first, the request is withdrawn, and the error says that the command did
// not run, or, if the engine was faster, that it did. Post waits until the context ends even if no engine is running.
// The error wraps [store.ErrNotFound] if the database has no tables of Tasq.
func Post(ctx context.Context, dsn string, command json.RawMessage, opts ...Option) (store.Answer, error) {
	return Open(dsn, opts...).(opener).Post(ctx, command)
}

// Leave is like [Post], but does not wait: the command stays in the database until an engine executes it, and the reply
// is discarded.
func Leave(ctx context.Context, dsn string, command json.RawMessage, opts ...Option) error {
	return Open(dsn, opts...).(opener).Leave(ctx, command)
}

// Post is the function [Post] for the database of this Opener.
func (o opener) Post(ctx context.Context, command json.RawMessage) (a store.Answer, err error) {
	err = o.inInbox(ctx, func(c *conn) (err error) {
		a, err = tables.Post(ctx, inbox{c}, command)
		return err
	})
	return a, err
}

// Leave is the function [Leave] for the database of this Opener.
func (o opener) Leave(ctx context.Context, command json.RawMessage) error {
	return o.inInbox(ctx, func(c *conn) error {
		_, err := inbox{c}.Leave(command)
		return err
	})
}

// Owned reports whether an engine has the schema of this Opener open. An engine that is opening or closing it may or
// may not be counted.
func (o opener) Owned(ctx context.Context) (owned bool, err error) {
	err = o.inInbox(ctx, func(c *conn) (err error) {
		_, owned, err = c.number("SELECT 1 FROM @.processes p WHERE p.state = 'live' AND NOT (" + absent + ") LIMIT 1")
		return err
	})
	return owned, err
}

func (o opener) inInbox(ctx context.Context, f func(*conn) error) error {
	db, err := o.database()
	if err != nil {
		return err
	}
	c, err := db.connect(ctx)
	if err != nil {
		return db.explain(err)
	}
	there, err := db.hasSchema(c)
	switch {
	case err != nil:
	case !there:
		err = db.noSchema()
	default:
		err = f(c)
	}
	return errors.Join(db.explain(err), c.close())
}

// now is the server's time in microseconds, as SQL.
const now = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint"

// inbox is the table of requests of a database.
type inbox struct{ c *conn }

// Leave implements [tables.Inbox]. It notifies the engine, and deletes replies that were not fetched.
//
// The INSERT and the notification are one statement and so one commit: an engine that receives the notification finds
// the request.
func (in inbox) Leave(command json.RawMessage) (id int64, err error) {
	if _, err := in.c.run("DELETE FROM @.requests WHERE replied < " + now + " - " + tables.KeptReply); err != nil {
		return 0, err
	}
	id, _, err = in.c.number("WITH left_one AS (INSERT INTO @.requests (at, command) VALUES ("+now+", $1) RETURNING id) "+
		"SELECT id FROM left_one, (SELECT pg_notify('"+channel+"', '')) n", string(command))
	return id, err
}

// TakeReply implements [tables.Inbox]. It is a single statement, so that of two callers only one gets the reply.
func (in inbox) TakeReply(id int64) (a store.Answer, done bool, err error) {
	err = in.c.each("DELETE FROM @.requests WHERE id = $1 AND replied IS NOT NULL RETURNING result, code, error", []any{id},
		func(r *tables.Row) (err error) {
			a, err = tables.ReadReply(r)
			done = true
			return err
		})
	return a, done, err
}

// TakeBack implements [tables.Inbox].
//
// If the engine's transaction is about to reply, it has locked the row, and TakeBack waits. Afterwards either the reply
// exists or the request was deleted.
func (in inbox) TakeBack(id int64) (bool, error) {
	n, err := in.c.run("DELETE FROM @.requests WHERE id = $1 AND replied IS NULL", id)
	return n > 0, err
}
