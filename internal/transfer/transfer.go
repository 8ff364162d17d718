// Package transfer copies all cases of one store into another, entry by entry of the journal. Each store maps entries
// to its own tables, so the stores may be of different kinds. An interrupted copy continues where it stopped.
package transfer

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/tasq-dev/tasq/domain"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// The reasons for which a copy is refused.
var (
	ErrNotEmpty = errors.New("the target holds cases already, and is not the beginning of a copy of this source: name an empty one, " +
		"or use it as it is if the copy was complete, which tasq doctor checks")
	ErrRequests = errors.New("commands that were left for the engine of the source are not done yet")
)

// Progress is the progress of a copy, in entries of the journal.
type Progress struct{ Entries, Of int64 }

// position is the state of a copy, stored as a record of the target until the copy is complete. It is written in the
// transaction of the entries that it describes.
type position struct {
	Root    string `json:"root"`    // of the first entry; it identifies the source
	Seq     int64  `json:"seq"`     // the position in the source of the last copied entry
	Entries int64  `json:"entries"` // the number of copied entries
}

// positions has one record, under the key "copy".
var positions = domain.Collection[string, position]{Name: "tasq-copy"}

const key = "copy"

var (
	batch    = 2000 // entries in one transaction: a row that several of them change is written once
	maxTrees = 5000 // trees in memory, so that their next entries need no query of the target
)

// copier is one call of Copy.
type copier struct {
	from, to store.Store
	at       position
	of       int64
	trees    map[workitem.CaseID]*state.Tree
	progress func(Progress)
}

// Copy copies definitions, cases with all their data, idempotency keys, the records of collections, and the settings of
// limits and queues. It does not copy tables of the user. Both stores must be open for writing, so that no engine runs
// on them; progress may be nil. The error wraps [ErrNotEmpty], [ErrRequests] or, for the source, [store.ErrHalfCopied];
// after any other error, the same call continues the copy. Until it is complete, no engine opens the target: see
// [Whole].
func Copy(ctx context.Context, from, to store.Store, progress func(Progress)) (Progress, error) {
	c := &copier{from: from, to: to, trees: make(map[workitem.CaseID]*state.Tree), progress: progress}
	for _, step := range []func(context.Context) error{c.check, c.definitions, c.resume, c.entries, c.finish, c.analyze} {
		if err := step(ctx); err != nil {
			return c.done(), err
		}
	}
	return c.done(), nil
}

func (c *copier) done() Progress { return Progress{Entries: c.at.Entries, Of: c.of} }

// Whole returns an error that wraps [store.ErrHalfCopied] if the database is an incomplete copy.
func Whole(ctx context.Context, r store.Reader) error {
	at, err := positions.Get(ctx, r.DB(), key)
	switch {
	case errors.Is(err, domain.ErrNotFound):
		return nil
	case err != nil:
		return fmt.Errorf("look whether it is a whole copy: %w", err)
	}
	return fmt.Errorf("%w: %d journal entries of its source are there: give the same tasq copy again, which goes on where it was, "+
		"or drop the database and go on with the source", store.ErrHalfCopied, at.Entries)
}

// check refuses a source that is an incomplete copy itself, and one with commands in its inbox, which would be lost.
func (c *copier) check(ctx context.Context) error {
	if err := c.from.View(ctx, func(r store.Reader) error { return Whole(ctx, r) }); err != nil {
		return fmt.Errorf("the source: %w", err)
	}
	return c.from.Update(ctx, func(tx store.Tx) error {
		left, err := tx.Requests(ctx, 0, 1)
		if err == nil && len(left) > 0 {
			err = fmt.Errorf("%w: have an engine open it once", ErrRequests)
		}
		return err
	})
}

func (c *copier) definitions(ctx context.Context) error {
	var defs []*store.Definition
	err := c.from.View(ctx, func(r store.Reader) (err error) {
		defs, err = r.Definitions(ctx)
		return err
	})
	if err != nil {
		return err
	}
	return c.to.Register(ctx, defs)
}

// resume reads the position of the copy, and the number of entries to copy.
func (c *copier) resume(ctx context.Context) error {
	first := ""
	err := c.from.View(ctx, func(r store.Reader) error {
		entries, err := r.Journal(ctx, store.JournalFilter{Limit: 1})
		for _, e := range entries {
			first = e.Root.String()
		}
		if auditor, ok := r.(store.Auditor); ok && err == nil {
			a, failed := auditor.Audit(ctx, 0)
			c.of, err = a.Entries, failed
		}
		return err
	})
	if err != nil {
		return err
	}
	return c.to.View(ctx, func(r store.Reader) error {
		at, err := positions.Get(ctx, r.DB(), key)
		switch {
		case err == nil && at.Root == first:
			c.at = at
			return nil
		case err == nil:
			return ErrNotEmpty
		case !errors.Is(err, domain.ErrNotFound):
			return err
		}
		c.at = position{Root: first}
		there, err := r.Journal(ctx, store.JournalFilter{Limit: 1})
		if err == nil && len(there) > 0 {
			err = ErrNotEmpty
		}
		return err
	})
}

// entries copies the journal in batches.
func (c *copier) entries(ctx context.Context) error {
	var waiting []*store.Entry
	for e, err := range store.AllEntries(ctx, c.from, store.JournalFilter{After: c.at.Seq}) {
		if err != nil {
			return err
		}
		if waiting = append(waiting, e); len(waiting) < batch {
			continue
		}
		if err := c.write(ctx, waiting); err != nil {
			return err
		}
		waiting = waiting[:0]
	}
	return c.write(ctx, waiting)
}

// write appends entries to the target and updates the position, in one transaction.
func (c *copier) write(ctx context.Context, entries []*store.Entry) error {
	if len(entries) == 0 {
		return nil
	}
	if err := c.load(ctx, entries); err != nil {
		return err
	}
	next := c.at
	err := c.to.Update(ctx, func(tx store.Tx) error {
		if err := prefetch(ctx, tx, entries); err != nil {
			return err
		}
		for _, e := range entries {
			next.Seq = e.Seq
			next.Entries++
			if err := c.append(ctx, tx, e); err != nil {
				return fmt.Errorf("journal entry %d of case %s: %w", next.Seq, e.Root, err)
			}
		}
		return positions.Put(ctx, tx.DB(), key, next)
	})
	if err != nil {
		return err
	}
	c.at = next
	if c.progress != nil {
		c.progress(c.done())
	}
	if len(c.trees) > maxTrees {
		clear(c.trees)
	}
	return nil
}

// load reads the trees of entries that are not in memory, together: a live case of a large database has its entries far
// apart, and a query for each of its trees would take most of the time.
func (c *copier) load(ctx context.Context, entries []*store.Entry) error {
	var missing []workitem.CaseID
	looked := make(map[workitem.CaseID]bool)
	for _, e := range entries {
		if !looked[e.Root] && e.Prev != 0 && c.trees[e.Root] == nil {
			missing = append(missing, e.Root)
		}
		looked[e.Root] = true
	}
	if len(missing) == 0 {
		return nil
	}
	return c.to.View(ctx, func(r store.Reader) error {
		trees, err := r.Trees(ctx, missing)
		for _, t := range trees {
			c.trees[t.Root] = t
		}
		return err
	})
}

// prefetch looks up the idempotency keys of entries together, if the store does not keep them in memory.
func prefetch(ctx context.Context, tx store.Tx, entries []*store.Entry) error {
	shared, is := tx.(store.SharedTx)
	if !is {
		return nil
	}
	var keys []string
	for _, e := range entries {
		if e.Key != "" {
			keys = append(keys, e.Key)
		}
	}
	if len(keys) == 0 {
		return nil
	}
	return shared.PrefetchKeys(ctx, keys)
}

// append applies an entry to its tree, and appends it to the target, which assigns it a new position.
func (c *copier) append(ctx context.Context, tx store.Tx, e *store.Entry) error {
	t := c.trees[e.Root]
	switch {
	case t != nil:
	case e.Prev == 0:
		t = state.NewTree()
		t.Root = e.Root
	default:
		var err error
		if t, err = tx.Load(ctx, e.Root); err != nil {
			return err
		}
	}
	t.Begin()
	for _, change := range e.Changes {
		if err := t.Apply(change); err != nil {
			return err
		}
	}
	if c.trees[e.Root] = t; t.Ended() {
		delete(c.trees, e.Root) // most ended cases are not changed again
	}
	own := *e // the target sets its position
	return tx.Append(ctx, &own, t)
}

// record is a row of a collection in its stored form.
type record struct{ collection, key, value string }

// finish copies the records and the settings, and removes the position.
func (c *copier) finish(ctx context.Context) error {
	var all []record
	var settings []store.Setting
	err := c.from.View(ctx, func(r store.Reader) (err error) {
		if settings, err = r.Settings(ctx); err != nil {
			return err
		}
		rows, err := r.DB().QueryContext(ctx, "SELECT collection, key, value FROM "+domain.Table(r.DB(), "records")+" WHERE collection <> $1 AND collection <> $2", positions.Name, store.DeadEngines)
		if err != nil {
			return err
		}
		for rows.Next() {
			var one record
			if err := rows.Scan(&one.collection, &one.key, &one.value); err != nil {
				return errors.Join(err, rows.Close())
			}
			all = append(all, one)
		}
		return errors.Join(rows.Err(), rows.Close())
	})
	if err != nil {
		return err
	}
	return c.to.Update(ctx, func(tx store.Tx) error {
		db := tx.DB()
		for _, one := range all {
			if _, err := db.ExecContext(ctx, "INSERT INTO "+domain.Table(db, "records")+" (collection, key, value) VALUES ($1, $2, $3) "+
				"ON CONFLICT (collection, key) DO UPDATE SET value = excluded.value", one.collection, one.key, one.value); err != nil {
				return fmt.Errorf("record %q of %s: %w", one.key, one.collection, err)
			}
		}
		for _, s := range settings {
			if err := tx.Set(ctx, s.Name, s.Value); err != nil {
				return fmt.Errorf("setting %s: %w", s.Name, err)
			}
		}
		return positions.Delete(ctx, db, key)
	})
}

// analyze has a PostgreSQL server collect statistics of what it got. Without them its planner does not know what is in
// the tables, until its own housekeeping looks at them, and reads whole tables for pages of them. The copy is complete
// before that, so an error, such as that of a timeout of the server, does not make it fail.
func (c *copier) analyze(ctx context.Context) error {
	err := c.to.Update(ctx, func(tx store.Tx) error {
		db := tx.DB()
		if domain.DialectOf(db) != domain.Postgres {
			return nil
		}
		names := []string{"journal", "cases", "case_labels", "work_items", "jobs", "steps", "messages", "idempotency_keys"}
		for i, name := range names {
			names[i] = domain.Table(db, name)
		}
		_, err := db.ExecContext(ctx, "ANALYZE "+strings.Join(names, ", "))
		return err
	})
	if ctx.Err() != nil {
		return err
	}
	return nil
}
