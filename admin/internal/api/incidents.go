package api

import (
	"context"
	"net/http"

	"github.com/tasq-dev/tasq/engine/why"
	"github.com/tasq-dev/tasq/internal/record"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workitem"
)

func (a *API) incidents(w http.ResponseWriter, r *http.Request) {
	q := a.params(r)
	f, of, p := q.Incidents(), q.Case(), q.Page(50, false)
	if !check(w, q) {
		return
	}
	m, note := a.mask(r), ""
	listNoted(a, w, r, p, func(v store.Reader, p store.Page) ([]*store.Incident, error) {
		f.Page = p
		here, err := a.Backend.Here().WithFleet(r.Context(), v)
		if err != nil {
			return nil, err
		}
		if here.Unknown() && why.SelectsDefinitions(f) {
			note = why.Unanswered
		}
		rows, err := a.incidentRows(r.Context(), v, f, of, here)
		return rows, orUnknown(r, v, len(rows), err, f.Workflow, r.URL.Query().Get("task"))
	}, func(i *store.Incident) string { return i.ID.String() }, func(i *store.Incident) record.Incident { return record.OfIncident(m.Incident(i)) }, &note)
}

func (a *API) incidentRows(ctx context.Context, v store.Reader, f store.IncidentFilter, of workitem.CaseID, here why.Here) (all []*store.Incident, err error) {
	if !of.IsZero() {
		if f.Root, err = v.Root(ctx, of); err != nil {
			return nil, err
		}
	}
	for i, err := range why.Incidents(ctx, store.ViewerOf(v), f, here, a.Backend.Now()) {
		if err != nil {
			return nil, err
		}
		all = append(all, i)
	}
	return all, nil
}
