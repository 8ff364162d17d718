package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/internal/tables"
)

// Requests implements [store.Tx].
func (tx *transaction) Requests(_ context.Context, after int64, max int) ([]store.Request, error) {
	if err := tx.usable(); err != nil {
		return nil, err
	}
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
	if err := tx.usable(); err != nil {
		return err
	}
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

// Changed implements [store.Watcher]. Whoever leaves a command notifies the engine.
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

// pollReply is how often Post looks for its reply.
const pollReply = 20 * time.Millisecond

// Post leaves a command for the engine that has the database open and waits for its answer; see [store.Tx.Requests] for the
// other end. If the context ends first, the request is taken back: the error then says that the command did not happen, or,
// if the engine was faster, that it did. Post waits as long as the context lets it, also if there is no engine. The error
// wraps [store.ErrNotFound] if the database has no tables of Tasq's.
func Post(ctx context.Context, dsn string, command json.RawMessage, opts ...Option) (store.Answer, error) {
	return Open(dsn, opts...).(opener).Post(ctx, command)
}

// Leave is like [Post] without a wait: the command stays in the database until an engine opens it and does it, and nobody
// gets the answer.
func Leave(ctx context.Context, dsn string, command json.RawMessage, opts ...Option) error {
	return Open(dsn, opts...).(opener).Leave(ctx, command)
}

// Post is the function [Post] for the database of this Opener.
func (o opener) Post(ctx context.Context, command json.RawMessage) (a store.Answer, err error) {
	err = o.inInbox(ctx, func(c *conn) (err error) {
		a, err = post(ctx, c, command)
		return err
	})
	return a, err
}

// Leave is the function [Leave] for the database of this Opener.
func (o opener) Leave(ctx context.Context, command json.RawMessage) error {
	return o.inInbox(ctx, func(c *conn) error {
		_, err := leave(c, command)
		return err
	})
}

func (o opener) inInbox(ctx context.Context, f func(*conn) error) error {
	db, err := o.database()
	if err != nil {
		return err
	}
	c, err := db.connect(ctx, "")
	if err != nil {
		return db.explain(err)
	}
	there, err := hasSchema(c)
	switch {
	case err != nil:
	case !there:
		err = db.noSchema()
	default:
		err = f(c)
	}
	return errors.Join(db.explain(err), c.close())
}

// now is the server's time in microseconds.
const now = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint"

// keptReply is how long a reply that nobody takes stays, in microseconds: a day.
const keptReply = "86400000000"

// leave writes a command into the inbox, notifies the engine, and throws replies away that nobody has taken.
func leave(c *conn, command json.RawMessage) (id int64, err error) {
	if _, err := c.run("DELETE FROM @.requests WHERE replied < " + now + " - " + keptReply); err != nil {
		return 0, err
	}
	id, _, err = c.number("WITH left_one AS (INSERT INTO @.requests (at, command) VALUES ("+now+", $1) RETURNING id) "+
		"SELECT id FROM left_one, (SELECT pg_notify('"+channel+"', '')) n", string(command))
	return id, err
}

func post(ctx context.Context, c *conn, command json.RawMessage) (store.Answer, error) {
	id, err := leave(c, command)
	if err != nil {
		return store.Answer{}, err
	}
	ticker := time.NewTicker(pollReply)
	defer ticker.Stop()
	for {
		a, done, err := takeReply(c, id)
		if done || err != nil {
			return a, err
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return takeBack(c, id, ctx.Err())
		}
	}
}

func takeReply(c *conn, id int64) (a store.Answer, done bool, err error) {
	err = c.each("DELETE FROM @.requests WHERE id = $1 AND replied IS NOT NULL RETURNING result, code, error", []any{id},
		func(r *tables.Row) error {
			a, done = store.Answer{Result: r.JSON(), Code: r.Text(), Error: r.Text()}, true
			return r.Err
		})
	return a, done, err
}

// takeBack deletes a request that has no reply yet. The engine reads and answers in one transaction, so it cannot be half
// done.
func takeBack(c *conn, id int64, why error) (store.Answer, error) {
	n, err := c.run("DELETE FROM @.requests WHERE id = $1 AND replied IS NULL", id)
	if err != nil {
		return store.Answer{}, errors.Join(why, fmt.Errorf("the command may still happen: %w", err))
	}
	if n > 0 {
		return store.Answer{}, fmt.Errorf("nobody answered in time, and the command did not happen: %w", why)
	}
	a, _, err := takeReply(c, id)
	return a, err
}
