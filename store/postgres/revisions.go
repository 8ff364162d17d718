package postgres

import (
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workitem"
)

// revision is the position and the revision of the newest entry of a root case.
type revision struct{ seq, rev int64 }

// revisions are those of entries that this engine has appended, for live root cases. The server looks up the others.
type revisions map[workitem.CaseID]revision

// maxRevisions limits how many are cached.
const maxRevisions = 1 << 16

// place is the place of an entry in the journal of its root case: the nth appended entry after base, the newest entry
// in the database, with seq as its own position. The revision of base is known or unknown.
type place struct{ base, known, nth, seq int64 }

// placeBehind returns the place before the first queued entry of a root case.
func (tx *transaction) placeBehind(e *store.Entry) *place {
	p := &place{base: e.Prev, known: unknown}
	newest, ok := tx.revs[e.Root]
	if !ok {
		newest, ok = tx.s.revs[e.Root]
	}
	switch {
	case e.Prev == 0:
		p.known = 0
	case ok && newest.seq == e.Prev:
		p.known = newest.rev
	}
	return p
}

// appendedTo records the newest queued entries.
func (tx *transaction) appendedTo(roots map[workitem.CaseID]*place) {
	if tx.revs == nil {
		tx.revs = make(map[workitem.CaseID]revision, len(roots))
	}
	for root, p := range roots {
		// The server looks the revision up.
		if p.known == unknown {
			delete(tx.revs, root)
		} else {
			tx.revs[root] = revision{p.seq, p.known + p.nth}
		}
	}
}

// keepRevisions caches the revisions of the newest entries of a commit.
func (tx *transaction) keepRevisions() {
	known := tx.s.revs
	for root, r := range tx.revs {
		known[root] = r
	}
	for i, m := range tx.marks {
		if m.over {
			// A tree that has ended, or was removed, hardly gets another entry.
			delete(known, tx.appended[i].Entry.Root)
		}
	}
	for root := range known {
		if len(known) <= maxRevisions {
			break
		}
		delete(known, root)
	}
}
