package record

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
)

// Definition is the JSON form of a definition.
type Definition struct {
	Workflow    string    `json:"workflow"`
	Version     string    `json:"version,omitempty"`
	Fingerprint string    `json:"fingerprint"`
	Tasks       []string  `json:"tasks"`
	Code        bool      `json:"code"` // only a program that has its code can run it
	Live        int64     `json:"live"` // live cases
	Ended       int64     `json:"ended"`
	Registered  time.Time `json:"registered"`
	Allows      []string  `json:"allows,omitempty"` // the findings that it allows

	Suspended *store.Decision `json:"suspended,omitempty"` // who suspended the workflow, so that new cases begin suspended; nil if it is not
}

// Definitions are the JSON forms of definitions, by workflow and age, with the numbers of their cases. The error is
// that of the reader.
func Definitions(ctx context.Context, r store.Reader, defs []*store.Definition) ([]*Definition, error) {
	settings, err := r.Settings(ctx)
	if err != nil {
		return nil, err
	}
	suspended, err := store.ReadSuspensions(settings)
	if err != nil {
		return nil, err
	}
	rows := make([]*Definition, 0, len(defs))
	byPrint := make(map[string]*Definition, len(defs))
	for _, d := range defs {
		row := &Definition{
			Workflow: d.Name, Version: d.Version, Fingerprint: d.Fingerprint, Code: d.Code, Registered: d.Created,
		}
		if by, found := suspended[d.Name]; found {
			row.Suspended = &by
		}
		for i := range d.Net.Tasks {
			row.Tasks = append(row.Tasks, d.Net.Tasks[i].Name)
		}
		var document struct{ Allows []string }
		if json.Unmarshal(d.Document, &document) == nil { // a definition that was given without one allows nothing
			row.Allows = document.Allows
		}
		rows, byPrint[d.Fingerprint] = append(rows, row), row
	}
	slices.SortStableFunc(rows, func(a, b *Definition) int {
		return cmp.Or(strings.Compare(a.Workflow, b.Workflow), a.Registered.Compare(b.Registered))
	})
	return rows, countCases(ctx, r, byPrint)
}

// countCases counts the cases of each definition. If a workflow has only one definition, the stored counts of the
// workflow are used at no cost; only the cases of a workflow with several definitions are counted.
func countCases(ctx context.Context, r store.Counter, byPrint map[string]*Definition) error {
	only, several := make(map[string]*Definition), false
	for _, d := range byPrint {
		if _, known := only[d.Workflow]; known {
			only[d.Workflow], several = nil, true
			continue
		}
		only[d.Workflow] = d
	}
	counts, err := r.Counts(ctx)
	if err != nil {
		return err
	}
	for _, c := range counts {
		if d := only[c.Workflow]; d != nil && c.What == "case" {
			d.add(c.State, c.N)
		}
	}
	if !several {
		return nil
	}
	each, err := r.CountsByDefinition(ctx, false)
	for _, c := range each {
		if d := byPrint[c.Fingerprint]; d != nil && c.State != "" && only[d.Workflow] == nil {
			d.add(c.State, c.N)
		}
	}
	return err
}

func (d *Definition) add(caseState string, n int64) {
	if caseState == state.CaseStarted.String() {
		d.Live += n
	} else {
		d.Ended += n
	}
}
