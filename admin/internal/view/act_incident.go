package view

import (
	"context"
	"fmt"

	"github.com/tasq-dev/tasq/internal/printable"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workitem"
)

// incident says what an incident is about.
func (p *actPage) incident(ctx context.Context, v store.Finder, id string) error {
	var key workitem.JobID
	_ = key.UnmarshalText([]byte(id)) // an invalid id matches no incident
	i, err := store.OpenIncident(ctx, v, key)
	if err != nil {
		return err
	}
	if p.Target = "Incident " + id; i == nil || key.IsZero() {
		p.Target += ", which is not open"
		return nil
	}
	found, err := v.Cases(ctx, store.CaseFilter{ID: i.Case})
	if err != nil || len(found) == 0 {
		return err
	}
	p.Target += fmt.Sprintf(" (%s) of case %s of %s", i.Kind, i.Case, found[0].Workflow)
	if i.Task != "" {
		p.Target += ", task " + i.Task
	}
	if i.Failure != nil {
		p.Target += ": " + printable.Line(printable.Brief([]byte(i.Failure.String()), 200))
	}
	return nil
}
