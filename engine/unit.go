package engine

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/store"
)

// unit is what a transaction does to one tree: one entry of the journal for all its commands, but for those with an
// idempotency key, of which each has an entry of its own, with its key, its answer, and its very command. So the key is known
// again by what it was used for, whatever else the transaction did.
type unit struct {
	tree  *store.Tree
	done  []store.Entry // those before the one that is written now
	entry store.Entry
	also  []string // the commands of the entry after its first

	touched int // how many of the transaction's levels, from the outermost, know where it stood
}

func (tx *Tx) unit(tree *store.Tree) *unit {
	tree.Begin()
	u := &tx.first
	if len(tx.units) > 0 {
		u = new(unit)
	}
	*u = unit{tree: tree, entry: store.Entry{Root: tree.Root, At: tx.now}, touched: len(tx.levels)}
	tx.units = append(tx.units, u)
	return u
}

// mustBeThere refuses a tree that this transaction has removed.
func (u *unit) mustBeThere() error {
	if u.tree.Removed() {
		return fmt.Errorf("case %s was removed: %w", u.tree.Root, ErrNotFound)
	}
	return nil
}

// mark notes a command that begins.
func (tx *Tx) mark(u *unit, command string, call builder.Call) {
	tx.touch(u)
	if u.entry.Command != "" && (u.entry.Key != "" || call.Key != "") {
		u.seal()
	}
	if u.entry.Command == "" {
		u.entry.Command = command
	} else {
		u.also = append(u.also, command)
	}
	if call.By != "" {
		u.entry.By = call.By
	}
	if call.Key != "" {
		u.entry.Key = call.Key
	}
}

// seal ends an entry and begins the next.
func (u *unit) seal() {
	u.named()
	u.done = append(u.done, u.entry)
	u.entry = store.Entry{Root: u.entry.Root, At: u.entry.At}
}

// named puts the commands of the last entry together.
func (u *unit) named() {
	if u.also != nil {
		u.entry.Command += ", " + strings.Join(u.also, ", ")
		u.also = nil
	}
}

// close ends the last entry, and leaves those out that say nothing. It reports whether there are any.
func (u *unit) close() bool {
	u.named()
	u.done = slices.DeleteFunc(u.done, silent)
	if silent(u.entry) && len(u.done) > 0 {
		last := len(u.done) - 1
		u.done, u.entry = u.done[:last], u.done[last]
	}
	return !silent(u.entry)
}

func silent(e store.Entry) bool { return len(e.Events) == 0 && e.Key == "" }

// entries lists what was written, in order.
func (u *unit) entries() iter.Seq[*store.Entry] {
	return func(yield func(*store.Entry) bool) {
		for i := range u.done {
			if !yield(&u.done[i]) {
				return
			}
		}
		yield(&u.entry)
	}
}

// events lists what happened to the tree, in order.
func (u *unit) events() []store.Event {
	if len(u.done) == 0 {
		return u.entry.Events
	}
	var all []store.Event
	for e := range u.entries() {
		all = append(all, e.Events...)
	}
	return all
}

// keyed finds the entry of a command of this transaction by its idempotency key; nil if there is none.
func (tx *Tx) keyed(key string) *store.Entry {
	for _, u := range tx.units {
		for e := range u.entries() {
			if e.Key == key {
				return e
			}
		}
	}
	return nil
}

// answered finds the outcome of an earlier command with the same idempotency key.
func (tx *Tx) answered(key, command string) (json.RawMessage, bool, error) {
	if key == "" {
		return nil, false, nil
	}
	if err := isText("idempotency key", key); err != nil {
		return nil, false, err
	}
	entry := tx.keyed(key)
	if entry == nil {
		var err error
		if entry, err = tx.s.Answered(tx.ctx, key); errors.Is(err, store.ErrNotFound) {
			return nil, false, nil
		} else if err != nil {
			return nil, false, err
		}
	}
	if entry.Command != command {
		return nil, false, fmt.Errorf("%w: key %q was first used for %q, and now for %q", ErrKeyReused, key, entry.Command, command)
	}
	return entry.Answer, true, nil
}

// append hands the transaction's changes to the store.
func (tx *Tx) append() error {
	kept := tx.units[:0]
	for _, u := range tx.units {
		if u.close() {
			kept = append(kept, u)
		} else {
			u.tree.Rollback()
		}
	}
	tx.units = kept
	for _, u := range tx.units {
		for e := range u.entries() {
			if err := tx.s.Append(tx.ctx, e, u.tree); err != nil {
				tx.e.forget(tx)
				return fmt.Errorf("append to the journal: %w", err)
			}
		}
	}
	for _, u := range tx.units {
		if tx.e.trees[u.tree.Root] == nil {
			tx.e.cache(u.tree)
		}
		for _, event := range u.events() {
			if opened, ok := event.(*store.ItemOpened); ok {
				tx.e.index.put(opened.Item.ID, u.tree.Root)
			}
		}
	}
	return nil
}

func (tx *Tx) rollback() {
	for _, u := range tx.units {
		u.tree.Rollback()
	}
	tx.units = nil
}
