package tables

import (
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// Heads are the columns of an incident, with the prefix "j.", for [ReadHead]. Before them come the workflow and the fingerprint of its
// case.
const Heads = "j.id, j.task, j.name, j.created, j.failure"

// ReadHead reads a row for [store.Finder.IncidentHeads].
func ReadHead(r *Row) (store.IncidentHead, error) {
	h := store.IncidentHead{Workflow: r.Text(), Fingerprint: r.Text(), ID: ID[workitem.JobID](r), Task: r.Text(), Kind: r.Text(), Since: r.Time()}
	if f := r.Failure(); f != nil {
		h.Code, h.Message = f.Code, f.Message
	}
	return h, r.Err
}

// OpenIncidents is the condition of open incidents, which is that of their partial index: no other column is read.
func OpenIncidents(w *Conditions, live string) {
	w.Plain(live)
	w.AddKind("", state.JobIncident)
}

// ReadJobID reads a row that is the id of a job.
func ReadJobID(r *Row) (workitem.JobID, error) {
	id := ID[workitem.JobID](r)
	return id, r.Err
}
