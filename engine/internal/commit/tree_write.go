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

// TreeWrite is what a transaction does to one tree: one entry of the journal for all its commands, but for those with an
// idempotency key, of which each has an entry of its own, with its key, its answer, and its very command. So the key is known
// again by what it was used for, whatever else the transaction did.
type TreeWrite struct {
	// Tree is the writer's, with all that the transaction has done to it.
	Tree  *state.Tree
	done  []store.Entry // those before the one that is written now
	entry store.Entry
	also  []string // the commands of the entry after its first

	touched int // how many of the savepoints of the transaction, from the outermost, know where it stood
}

// Create makes a new tree a part of the transaction.
func (tx *Tx) Create(tree *state.Tree) *TreeWrite {
	tree.Begin()
	u := &tx.first
	if len(tx.writes.list) > 0 {
		u = new(TreeWrite)
	}
	*u = TreeWrite{Tree: tree, entry: store.Entry{Root: tree.Root, At: tx.now}, touched: len(tx.savepoints)}
	tx.writes.add(u)
	return u
}

// mustBeThere refuses a tree that this transaction has removed.
func (u *TreeWrite) mustBeThere() error {
	if u.Tree.Removed() {
		return fmt.Errorf("case %s was removed: %w", u.Tree.Root, store.ErrNotFound)
	}
	return nil
}

// mark notes a command that begins. One with a key keeps its result.
func (tx *Tx) mark(u *TreeWrite, o Operation, result workflow.Result) error {
	tx.touch(u)
	if u.entry.Command != "" && (u.entry.Key != "" || o.Key != "") {
		u.seal()
	}
	if u.entry.Command == "" {
		u.entry.Command = o.Command
	} else {
		u.also = append(u.also, o.Command)
	}
	if o.Actor != "" {
		u.entry.By = o.Actor
	}
	if o.Key == "" {
		return nil
	}
	return u.answer(o, result)
}

// answer keeps the key of a command in the entry that is written now, with its result.
func (u *TreeWrite) answer(o Operation, result workflow.Result) (err error) {
	u.entry.Key = o.Key
	u.entry.Answer, err = json.Marshal(answer{Hash: o.Hash, Result: result})
	return err
}

// Operation is what the journal keeps of a command beside its changes.
type Operation struct {
	Command string // as the journal names it
	Actor   string
	Key     string // idempotency key; "" if there is none
	Hash    string // of the command; "" without a key
}

// answer is what the journal keeps of a command with a key: what it was, and its result.
type answer struct {
	Hash   string          `json:"hash"`
	Result workflow.Result `json:"result"`
}

// Remember keeps the key of a command whose result is known once it is done: in the entry of its changes if that is of this command alone,
// or else in one of its own. One that reached no case (u is nil) did nothing, so there is nothing to remember.
func (tx *Tx) Remember(u *TreeWrite, o Operation, result workflow.Result) error {
	if o.Key == "" || u == nil {
		return nil
	}
	if e := &u.entry; e.Command == o.Command && e.By == o.Actor && e.Key == "" && u.also == nil {
		tx.touch(u)
		return u.answer(o, result)
	}
	return tx.mark(u, o, result)
}

// seal ends an entry and begins the next.
func (u *TreeWrite) seal() {
	u.named()
	u.done = append(u.done, u.entry)
	u.entry = store.Entry{Root: u.entry.Root, At: u.entry.At}
}

// named puts the commands of the last entry together.
func (u *TreeWrite) named() {
	if u.also != nil {
		u.entry.Command += ", " + strings.Join(u.also, ", ")
		u.also = nil
	}
}

// close ends the last entry, and leaves those out that say nothing. It reports whether there are any.
func (u *TreeWrite) close() bool {
	u.named()
	u.done = slices.DeleteFunc(u.done, silent)
	if silent(u.entry) && len(u.done) > 0 {
		last := len(u.done) - 1
		u.done, u.entry = u.done[:last], u.done[last]
	}
	return !silent(u.entry)
}

func silent(e store.Entry) bool { return len(e.Changes) == 0 && e.Key == "" }

// entries lists what was written, in order.
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

// changes lists what happened to the tree, in order.
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

// keyed finds the entry of a command of this transaction by its idempotency key; nil if there is none.
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

// Answered finds the result of an earlier command with the same idempotency key.
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
	case entry.Command == o.Command:
		return workflow.Result{}, false, fmt.Errorf("%w: key %q was first used for %q with other values", workflow.ErrKeyReused, o.Key, o.Command)
	default:
		return workflow.Result{}, false, fmt.Errorf("%w: key %q was first used for %q, and now for %q",
			workflow.ErrKeyReused, o.Key, entry.Command, o.Command)
	}
	return first.Result, true, nil
}

// append hands the transaction's changes to the store.
func (tx *Tx) append() error {
	kept := tx.writes.list[:0]
	for _, u := range tx.writes.list {
		if u.close() {
			kept = append(kept, u)
		} else {
			u.Tree.Rollback()
		}
	}
	tx.writes = writes{list: kept} // nothing is looked up any more
	for _, u := range tx.writes.list {
		for e := range u.entries() {
			if err := tx.s.Append(tx.ctx, e, u.Tree); err != nil {
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
func (tx *Tx) measure(e *store.Entry, t *state.Tree) {
	if tx.w.o.Committed == nil {
		return
	}
	tx.size.Requests = 1
	tx.size.Entries++
	tx.size.Changes += len(e.Changes)
	tx.size.Bytes += len(state.AppendChanges(nil, e.Changes, t))
}

// Rollback undoes what the transaction did to trees, so that nothing of it is appended.
func (tx *Tx) Rollback() {
	for _, u := range tx.writes.list {
		u.Tree.Rollback()
	}
	tx.writes = writes{}
}
