package sqlite

import (
	"context"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/internal/tables"
	"github.com/tasq-dev/tasq/workitem"
)

// OpenIncidents implements [store.Reader]. They are in the order of jobs_incidents.
func (r *reader) OpenIncidents(_ context.Context, most int) ([]workitem.JobID, bool, error) {
	w := newConditions()
	tables.OpenIncidents(&w.Conditions, liveJob)
	end := " ORDER BY due, id" + w.Limit(most+1)
	ids, err := listOf(r.c, "SELECT id FROM jobs"+w.Where()+end, w.values(), tables.ReadJobID)
	return ids[:min(len(ids), most)], len(ids) <= most, err
}

// IncidentHeads implements [store.Reader].
func (r *reader) IncidentHeads(_ context.Context, ids []workitem.JobID) ([]store.IncidentHead, error) {
	w := newConditions()
	addIDs(&w, "j.id", append([]workitem.JobID{}, ids...))
	from, of := "jobs j LEFT JOIN cases c ON c.id = j.case_id", "c.workflow, c.fingerprint"
	// A reader with temporary tables has a view of cases, which a join would read whole. A subquery looks one case up.
	if r.c.overlaid {
		const one = " FROM cases WHERE id = j.case_id)"
		from, of = "jobs j", "(SELECT workflow"+one+", (SELECT fingerprint"+one
	}
	return listOf(r.c, "SELECT "+of+", "+tables.Heads+" FROM "+from+w.Where(), w.values(), tables.ReadHead)
}
