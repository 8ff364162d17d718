package postgres

import (
	"context"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/internal/tables"
	"github.com/tasq-dev/tasq/workitem"
)

// OpenIncidents implements [store.Reader]. The index jobs_incidents has all that it reads.
func (r *reader) OpenIncidents(_ context.Context, most int) ([]workitem.JobID, bool, error) {
	w := newConditions()
	tables.OpenIncidents(&w.Conditions, liveJob)
	end := " ORDER BY due, id" + w.Limit(most+1)
	ids, err := listOf(r.c, "SELECT id FROM @.jobs"+w.Where()+end, w.Args, tables.ReadJobID)
	return ids[:min(len(ids), most)], len(ids) <= most, err
}

// IncidentHeads implements [store.Reader]. OFFSET 0 keeps the planner from a join that reads all cases.
func (r *reader) IncidentHeads(_ context.Context, ids []workitem.JobID) ([]store.IncidentHead, error) {
	w := newConditions()
	addIDs(&w, "j.id", append([]workitem.JobID{}, ids...))
	return listOf(r.c, "SELECT c.workflow, c.fingerprint, "+tables.Heads+" FROM @.jobs j LEFT JOIN LATERAL "+
		"(SELECT workflow, fingerprint FROM @.cases WHERE root = j.root AND id = j.case_id OFFSET 0) c ON true"+w.Where(), w.Args, tables.ReadHead)
}
