package commit

import (
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// offer leaves jobs of a tree that the transaction has appended to for other engines, if this one does not do them.
func (tx *Tx) offer(u *TreeWrite) {
	if tx.shared == nil || tx.w.o.Holder == nil {
		return
	}
	for _, change := range u.changes() {
		var id workitem.JobID
		switch change := change.(type) {
		case *state.JobOpened:
			id = change.Job.ID
		case *state.JobMoved:
			id = change.Job
		default:
			continue
		}
		c, j := u.Tree.Job(id)
		// A running job has an owner, and one that has ended is no work.
		if j != nil && (j.State == state.JobPending || j.State == state.JobWaiting) && tx.w.o.Holder.Offers(u.Tree, c, j) {
			tx.offered = append(tx.offered, id)
			tx.shared.Offer(id)
		}
	}
}

// Forget drops root cases from memory that another engine may have changed. What is not in memory is read when it is needed.
func (w *Writer) Forget(roots []workitem.CaseID) {
	w.Send(&Request{Reads: true, Run: func(*Tx) error {
		for _, root := range roots {
			w.trees.evict(root)
		}
		return nil
	}})
}
