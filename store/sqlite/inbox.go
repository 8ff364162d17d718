package sqlite

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/internal/tables"
	"github.com/tasq-dev/tasq/store/state"
)

// Requests implements [store.Tx].
//
// A command that another process leaves, and its reply:
//
//	tasq item complete ...                   the owner
//	Leave: INSERT INTO requests
//	                                         Changed: data_version is another, there is a request
//	TakeReply: none yet; waits               Update: Requests, the command, Reply
//	                                           journal and requests.replied in one COMMIT
//	TakeReply: there; DELETE
//
// The reply is committed with the command. A crash leaves both or neither, and the next owner executes a request
// without a reply.
func (tx *transaction) Requests(_ context.Context, after int64, max int) ([]store.Request, error) {
	if err := tx.usable(); err != nil {
		return nil, err
	}
	// Replies are written at the commit, so the table does not show yet which requests this transaction has answered.
	answered := make(map[int64]bool, len(tx.replies))
	for _, r := range tx.replies {
		answered[r.id] = true
	}
	var all []store.Request
	err := tx.s.w.each("SELECT id, at, command FROM requests WHERE replied IS NULL AND id > ? ORDER BY id LIMIT +?",
		args(after, int64(max+len(answered))), func(r *tables.Row) error {
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
	// Under the write lock: the process that left the request cannot take it back between this query and the commit.
	_, found, err := tx.s.w.number("SELECT id FROM requests WHERE id = ? AND replied IS NULL", id)
	if err != nil {
		return tx.met(err)
	}
	if !found {
		return fmt.Errorf("request %d, without a reply: %w", id, store.ErrNotFound)
	}
	tx.replies = append(tx.replies, reply{id: id, answer: a})
	return nil
}

// They are written with the entries at the commit, so a command that was rolled back leaves its request without a
// reply.
func (tx *transaction) writeReplies() error {
	for _, r := range tx.replies {
		a := r.answer
		err := tx.s.w.run("UPDATE requests SET replied = ?, result = ?, code = ?, error = ? WHERE id = ?",
			state.Micros(tx.s.now()), jsonOf(a.Result), a.Code, a.Error, r.id)
		if err != nil {
			return err
		}
	}
	return nil
}

// Reachable implements [store.Watcher].
// No other process can leave a command in a database in memory.
func (s *Store) Reachable() bool { return s.memory == nil }

// Changed implements [store.Watcher], using SQLite's counter of the commits of other connections.
//
// The counter also changes when a request is taken back, and does not show what has changed. So the table is read after
// a change, but not otherwise.
func (s *Store) Changed(context.Context) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := errors.Join(s.writable(), s.present()); err != nil {
		return false, err
	}
	version, _, err := s.w.number("PRAGMA data_version")
	if err != nil || version == s.version {
		return false, explain(s.path, err)
	}
	_, found, err := s.w.number("SELECT id FROM requests WHERE replied IS NULL LIMIT 1")
	if err != nil {
		return false, explain(s.path, err)
	}
	// The value from before the query. A request that is left after the query changes the value again, and is found the
	// next time.
	s.version = version
	return found, nil
}

// Post leaves a command for the process that owns the file, and waits for its reply; see [store.Inbox.Requests] for the
// owner's side. If the context ends first, the request is withdrawn, and the error says that the command did not run,
// or, if the owner was faster, that it did. Post waits until the context ends even if no process owns the file. The
// error wraps [store.ErrNotFound] if there is no file, and [store.ErrCorrupt] if it is not one of Tasq's.
//
// The connection is not that of an owner. It migrates nothing, takes the write lock for one statement, and syncs its
// commit: a request that was left is on disk.
func Post(ctx context.Context, path string, command json.RawMessage) (store.Answer, error) {
	c, err := openInbox(ctx, path)
	if err != nil {
		return store.Answer{}, err
	}
	a, err := tables.Post(ctx, inbox{c}, command)
	return a, errors.Join(explain(path, err), c.close())
}

// Leave is like [Post], but does not wait: the command stays in the file until a process owns it and executes it, and
// the reply is discarded.
func Leave(ctx context.Context, path string, command json.RawMessage) error {
	c, err := openInbox(ctx, path)
	if err != nil {
		return err
	}
	_, err = inbox{c}.Leave(command)
	return errors.Join(explain(path, err), c.close())
}

func openInbox(ctx context.Context, path string) (*conn, error) {
	path, err := resolve(path)
	if err == nil {
		err = mustHold(path)
	}
	if err != nil {
		return nil, err
	}
	c, err := connect(ctx, dsn(path, "rw"), "busy_timeout=10000", "synchronous=FULL")
	if err != nil {
		return nil, explain(path, err)
	}
	if err := (&Store{path: path}).checkSchema(c); err != nil {
		return nil, errors.Join(explain(path, err), c.close())
	}
	return c, nil
}

// inbox is the table of requests of a file.
type inbox struct{ c *conn }

// Leave implements [tables.Inbox]. It deletes replies that were not fetched.
func (in inbox) Leave(command json.RawMessage) (id int64, err error) {
	const now = "CAST(unixepoch('subsec') * 1000000 AS INTEGER)"
	if err := in.c.run("DELETE FROM requests WHERE replied < " + now + " - " + tables.KeptReply); err != nil {
		return 0, err
	}
	id, _, err = in.c.number("INSERT INTO requests (at, command) VALUES ("+now+", ?) RETURNING id", string(command))
	return id, err
}

// TakeReply implements [tables.Inbox].
//
// If the process ends after it has read a reply and before it deletes it, a later Leave deletes it.
func (in inbox) TakeReply(id int64) (a store.Answer, done bool, err error) {
	err = in.c.each("SELECT result, code, error FROM requests WHERE id = ? AND replied IS NOT NULL", args(id),
		func(r *tables.Row) (err error) {
			a, err = tables.ReadReply(r)
			done = true
			return err
		})
	if done && err == nil {
		err = in.c.run("DELETE FROM requests WHERE id = ?", id)
	}
	return a, done, err
}

// TakeBack implements [tables.Inbox].
//
// One statement decides the race with the owner: either it deletes the request, or the owner has already committed a
// reply, and it deletes nothing. While the owner's transaction runs, it waits.
func (in inbox) TakeBack(id int64) (bool, error) {
	n, err := in.c.change("DELETE FROM requests WHERE id = ? AND replied IS NULL", id)
	return n > 0, err
}

// Post is the function [Post] for the file of this Opener.
func (f file) Post(ctx context.Context, command json.RawMessage) (store.Answer, error) {
	return Post(ctx, f.path, command)
}

// Leave is the function [Leave] for the file of this Opener.
func (f file) Leave(ctx context.Context, command json.RawMessage) error {
	return Leave(ctx, f.path, command)
}
