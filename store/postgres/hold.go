package postgres

import (
	"context"

	"github.com/tasq-dev/tasq/store/internal/tables"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// Each live job is held by one engine, which does it when it is due, or by none: then any engine may take it. Holding decides who
// tries; that a job is done once is due to the order of commits, as for every command.

// Offer implements [store.SharedTx].
func (tx *transaction) Offer(jobs ...workitem.JobID) {
	if tx.offered == nil {
		tx.offered = make(map[workitem.JobID]bool, len(jobs))
	}
	for _, id := range jobs {
		tx.offered[id] = true
	}
}

// holderOf is the engine that a job is with after this transaction.
//
// A job that is new or changed is with the engine that committed it, which has it in memory and does it without asking. 0 is
// for what the engine has offered to all. A running job is not free, whatever was offered: it is under way in this process.
func (tx *transaction) holderOf(j *state.Job) int64 {
	if !j.State.Live() || tx.offered[j.ID] && j.State != state.JobRunning {
		return 0
	}
	return tx.s.self
}

// Waiting implements [store.SharedTx].
func (tx *transaction) Waiting(_ context.Context, topic string) ([]workitem.CaseID, error) {
	if err := tx.readable(); err != nil {
		return nil, err
	}
	var roots []workitem.CaseID
	// By steps_topic. In the order in which commits lock root cases, as the command goes through them one by one.
	err := tx.w.each("SELECT DISTINCT root FROM @.steps WHERE target = $1 AND state = 'waiting' AND topic ORDER BY root", []any{topic},
		func(r *tables.Row) error {
			roots = append(roots, tables.ID[workitem.CaseID](r))
			return r.Err
		})
	return roots, tx.met(err)
}
