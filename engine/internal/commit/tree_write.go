package commit

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
)

// TreeWrite is everything that a transaction does to one tree. All commands without an idempotency key share one entry
// of the journal. A command with a key gets an entry of its own with the key, its hash and its result, so that a
// repeated key can be compared with exactly that command:
//
//	Update: Act(1), Act(2), Send(key "k"), Act(3)  ──▶  entry "act 1, act 2"   entry "send", key "k"   entry "act 3"
type TreeWrite struct {
	// Tree belongs to the writer. It includes all changes of the transaction so far.
	Tree    *state.Tree
	done    []store.Entry // the completed entries, before the current one
	entry   store.Entry   // the current one
	further []string      // the commands of the current entry after its first

	touched int // the number of open savepoints, from the outermost, that have recorded a point of it
}

// Create adds a tree to the transaction.
func (tx *Tx) Create(tree *state.Tree) *TreeWrite {
	tree.Begin()
	// Most transactions have one tree, whose write needs no allocation of its own.
	u := &tx.first
	if len(tx.writes.list) > 0 {
		u = new(TreeWrite)
	}
	*u = TreeWrite{Tree: tree, entry: store.Entry{Root: tree.Root, At: tx.now}, touched: len(tx.savepoints)}
	tx.writes.add(u)
	return u
}

// mustExist returns an error for a tree that this transaction has removed.
func (u *TreeWrite) mustExist() error {
	if u.Tree.Removed() {
		return fmt.Errorf("case %s was removed: %w", u.Tree.Root, store.ErrNotFound)
	}
	return nil
}

// mark records the beginning of a command, with its result if it has a key.
func (tx *Tx) mark(u *TreeWrite, o Operation, result workflow.Result) error {
	tx.touch(u)
	// A command with a key is alone in its entry, so the current one ends before it and after it.
	if u.entry.Command != "" && (u.entry.Key != "" || o.Key != "") {
		u.seal()
	}
	if u.entry.Command == "" {
		u.entry.Command = o.Command
	} else {
		u.further = append(u.further, o.Command)
	}
	// An entry has one actor. Commands of the engine itself in the same entry have none, and leave it as it is.
	if o.Actor != "" {
		u.entry.By = o.Actor
	}
	if o.Key == "" {
		return nil
	}
	return u.answer(o, result)
}

// answer records the key of a command and its result in the current entry.
func (u *TreeWrite) answer(o Operation, result workflow.Result) (err error) {
	u.entry.Key = o.Key
	u.entry.Answer, err = json.Marshal(answer{Hash: o.Hash, Result: result})
	return err
}

// Operation describes a command in the journal, besides its changes.
type Operation struct {
	Command string // as the journal names it
	Actor   string
	Key     string // idempotency key; "" if there is none
	Hash    string // of the command; "" without a key
}

// Unkeyed returns the operation without its key, for an entry that must not have the result of the command: one of
// several that it makes, or one that is made before the result is known. [Tx.Remember] records the key afterwards.
func (o Operation) Unkeyed() Operation { return Operation{Command: o.Command, Actor: o.Actor} }

// answer is the JSON that the journal keeps of a command with a key.
type answer struct {
	Hash   string          `json:"hash"`
	Result workflow.Result `json:"result"`
}

// Remember records the key of a command whose result is only known after it, such as the id of a new item. It uses the
// entry of the command's changes if no other command shares that, or else a new entry. A command that reached no case
// (u is nil) has done nothing, and is not recorded.
func (tx *Tx) Remember(u *TreeWrite, o Operation, result workflow.Result) error {
	if o.Key == "" || u == nil {
		return nil
	}
	if e := &u.entry; e.Command == o.Command && e.By == o.Actor && e.Key == "" && u.further == nil {
		tx.touch(u)
		return u.answer(o, result)
	}
	return tx.mark(u, o, result)
}

// seal completes the current entry, and begins the next.
// The tree continues: only the changes that follow are recorded in the next entry.
func (u *TreeWrite) seal() {
	u.named()
	u.done = append(u.done, u.entry)
	u.entry = store.Entry{Root: u.entry.Root, At: u.entry.At}
}

// named joins the names of the commands of the current entry.
func (u *TreeWrite) named() {
	if u.further != nil {
		u.entry.Command += ", " + strings.Join(u.further, ", ")
		u.further = nil
	}
}

// close completes the last entry, and drops the silent ones. It reports whether any is left to append.
// An entry with a key is kept without changes too: it is the answer to a repetition of its command.
func (u *TreeWrite) close() bool {
	u.named()
	u.done = slices.DeleteFunc(u.done, silent)
	if silent(u.entry) && len(u.done) > 0 {
		last := len(u.done) - 1
		u.done, u.entry = u.done[:last], u.done[last]
	}
	return !silent(u.entry)
}

// silent reports whether an entry has neither changes nor a key, so that it need not be stored.
func silent(e store.Entry) bool { return len(e.Changes) == 0 && e.Key == "" }

// entries yields all entries in order.
func (u *TreeWrite) entries() iter.Seq[*store.Entry] {
	return func(yield func(*store.Entry) bool) {
		for i := range u.done {
			if !yield(&u.done[i]) {
				return
			}
		}
		yield(&u.entry)
	}
}

// changes returns all changes to the tree, in order.
func (u *TreeWrite) changes() []state.Change {
	if len(u.done) == 0 {
		return u.entry.Changes
	}
	var all []state.Change
	for e := range u.entries() {
		all = append(all, e.Changes...)
	}
	return all
}

// keyed returns the entry of this transaction with an idempotency key; nil if there is none.
// The store has the entries only after the append, at the end of the request.
func (tx *Tx) keyed(key string) *store.Entry {
	for _, u := range tx.writes.list {
		for e := range u.entries() {
			if e.Key == key {
				return e
			}
		}
	}
	return nil
}

// Answered returns the result of an earlier command with the same idempotency key, and whether there is one. A key that
// was used for another command is an error.
func (tx *Tx) Answered(o Operation) (workflow.Result, bool, error) {
	var first answer
	entry := tx.keyed(o.Key)
	if entry == nil {
		var err error
		if entry, err = tx.s.Answered(tx.ctx, o.Key); errors.Is(err, store.ErrNotFound) {
			return first.Result, false, nil
		} else if err != nil {
			return first.Result, false, err
		}
	}
	if err := json.Unmarshal(entry.Answer, &first); err != nil {
		return first.Result, false, fmt.Errorf("%w: the answer of key %q: %w", store.ErrCorrupt, o.Key, err)
	}
	switch {
	case first.Hash == o.Hash:
	// The command in words is the same, so the difference is in its values, such as the input, which the error does
	// not show.
	case entry.Command == o.Command:
		return workflow.Result{}, false, fmt.Errorf("%w: key %q was first used for %q with other values", workflow.ErrKeyReused, o.Key, o.Command)
	default:
		return workflow.Result{}, false, fmt.Errorf("%w: key %q was first used for %q, and now for %q",
			workflow.ErrKeyReused, o.Key, entry.Command, o.Command)
	}
	return first.Result, true, nil
}

// append appends the changes of the transaction to the journal of the store. Trees without changes are left out.
func (tx *Tx) append() error {
	kept := tx.writes.list[:0]
	for _, u := range tx.writes.list {
		if u.close() {
			kept = append(kept, u)
		} else {
			// A tree that was opened and not changed is between Begin and End as well, and must leave that state.
			u.Tree.Rollback()
		}
	}
	tx.writes = writes{list: kept} // without indexes, since there are no more lookups
	for _, u := range tx.writes.list {
		for e := range u.entries() {
			if err := tx.s.Append(tx.ctx, e, u.Tree); err != nil {
				// The trees have changes that the store has refused, and no other copy of their committed state is in
				// memory.
				tx.w.trees.forget(tx)
				return fmt.Errorf("append to the journal: %w", err)
			}
			tx.measure(e, u.Tree)
		}
	}
	for _, u := range tx.writes.list {
		tx.w.trees.appended(u)
		tx.offer(u)
	}
	return nil
}

// measure adds an entry to the size of what was appended.
// To encode the changes once more costs time, and happens only if a middleware asks for the sizes.
func (tx *Tx) measure(e *store.Entry, t *state.Tree) {
	if tx.w.o.Committed == nil {
		return
	}
	tx.size.Requests = 1
	tx.size.Entries++
	tx.size.Changes += len(e.Changes)
	tx.size.Bytes += len(state.AppendChanges(nil, e.Changes, t))
}

// Rollback undoes all changes of the transaction to trees.
func (tx *Tx) Rollback() {
	for _, u := range tx.writes.list {
		u.Tree.Rollback()
	}
	tx.writes = writes{}
}
