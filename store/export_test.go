package store

import (
	"context"
	"iter"
	"time"
)

// ActsWithin is [Acts] with other bounds: how many commands it examines at a time, and how many in all.
func ActsWithin(ctx context.Context, r Reader, f JournalFilter, part, all int) (page []*Entry, next int64, err error) {
	return actsWithin(ctx, r, f, actsBounds{part: part, all: all, time: time.Hour})
}

// ActsOfNoTime is [Acts] whose time is up at once.
func ActsOfNoTime(ctx context.Context, r Reader, f JournalFilter, part int) (page []*Entry, next int64, err error) {
	return actsWithin(ctx, r, f, actsBounds{part: part, all: MaxSearched})
}

// IncidentsOf is [Incidents] that looks in the trees of so many cases with the key and the labels.
func IncidentsOf(ctx context.Context, v Viewer, f IncidentFilter, few int) iter.Seq2[*Incident, error] {
	return incidentsOf(ctx, v, f, few)
}
