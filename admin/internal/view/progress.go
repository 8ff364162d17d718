package view

import (
	"encoding/json"
	"fmt"

	"github.com/tasq-dev/tasq/engine/bulk"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// bulkPage is the progress of an action on many things.
type bulkPage struct {
	Crumbs      []Link
	Title, Text string
	State       Cell
	Of, Done    int
	Case        string
	Refused     *Table
}

// bulk shows an action on many things: how far it is, and what was refused.
func (s *Site) bulk(r *Request) (*Page, error) {
	var id workitem.CaseID
	if err := pathID(r, "action", &id); err != nil {
		return nil, err
	}
	p, err := bulk.ProgressOf(r, store.ViewerOf(r.R), id)
	if err != nil {
		return nil, err
	}
	found, err := r.R.Cases(r, store.CaseFilter{ID: id})
	if err != nil || len(found) == 0 {
		return nil, orMissing(err, "action", id.String())
	}
	c := found[0]
	var in bulk.Input
	if err := json.Unmarshal(c.Input, &in); err != nil {
		return nil, err
	}
	d := bulkPage{Title: fmt.Sprintf("%s %d", in.Kind, p.Of), State: stateOf(c.State.String()), Of: p.Of, Done: p.Done, Case: s.Link("/cases/" + id.String()),
		Crumbs: []Link{{Text: "Incidents", Href: s.Link("/incidents")}, {Text: "Action"}}, Text: fmt.Sprintf("%d of %d are done or refused.", p.Done, p.Of)}
	if in.Actor != "" {
		d.Text += " Asked for by " + in.Actor + "."
	}
	if in.Reason != "" {
		d.Text += " Reason: " + in.Reason
	}
	if c.State == state.CaseCompleted {
		if d.Refused, err = s.refusals(c, in); err != nil {
			return nil, err
		}
	}
	return &Page{Title: "Action", Nav: "Incidents", Live: true, Parts: []Part{{ID: "bulk", Template: "bulk", Data: d}}}, nil
}

// refusals lists what an action could not do.
func (s *Site) refusals(c *state.Case, in bulk.Input) (*Table, error) {
	var result bulk.Result
	if err := json.Unmarshal(c.Output, &result); err != nil {
		return nil, err
	}
	t := &Table{ID: "refused", Title: counted(len(result.Refused), "refusal"), Head: []string{"target", "code", "error"}, Empty: &Empty{Text: "Nothing was rejected."}}
	path := "/items/"
	if ofCases(in.Kind) {
		path = "/cases/"
	}
	for i, f := range result.Refused {
		if i == maxRows {
			t.Note = fmt.Sprintf("and %d more; the output of the case has all", len(result.Refused)-maxRows)
			break
		}
		t.row("", idLink(f.Target, s.Link(path+f.Target)), text(f.Code), text(f.Error))
	}
	return t, nil
}
