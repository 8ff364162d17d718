package postgres

import (
	"context"

	"github.com/tasq-dev/tasq/store/internal/tables"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// Each live job is held by one engine, which runs it when it is due, or is free for any engine to take. Holding only
// decides which engine tries; that a job runs once is ensured by the order of commits, as for every command.

// Offer implements [store.SharedTx].
func (tx *transaction) Offer(jobs ...workitem.JobID) {
	if tx.offered == nil {
		tx.offered = make(map[workitem.JobID]bool, len(jobs))
	}
	for _, id := range jobs {
		tx.offered[id] = true
	}
}

// holderOf returns the engine that holds a job after this transaction.
//
// A new or changed job is held by the engine that committed it, which has it in memory and need not take it. 0 means
// that the engine has offered it to all. A running job is never free, even if it was offered: this process is running
// it.
func (tx *transaction) holderOf(j *state.Job) int64 {
	return holder(tx.s.self, tx.offered, j)
}

func holder(self int64, offered map[workitem.JobID]bool, j *state.Job) int64 {
	if !j.State.Live() || offered[j.ID] && j.State != state.JobRunning {
		return 0
	}
	return self
}

// Waiting implements [store.SharedTx].
func (tx *transaction) Waiting(_ context.Context, topic string) ([]workitem.CaseID, error) {
	if err := tx.readable(); err != nil {
		return nil, err
	}
	var roots []workitem.CaseID
	// By the index steps_topic, in the order in which commits lock root cases, since the command processes them one by
	// one.
	err := tx.w.each("SELECT DISTINCT root FROM @.steps WHERE target = $1 AND state = 'waiting' AND topic ORDER BY root", []any{topic},
		func(r *tables.Row) error {
			roots = append(roots, tables.ID[workitem.CaseID](r))
			return r.Err
		})
	return roots, tx.met(err)
}
