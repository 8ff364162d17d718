package demo

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workitem"
)

// mostShown is the number of cases whose history is printed after the user has decided.
const mostShown = 3

// leave leaves the decisions about incidents to the user of the pages, and waits for them. It returns the cases whose history is printed.
func (d *incidents) leave(ctx context.Context, open []*store.Incident) (shown []workitem.CaseID, err error) {
	d.supplier.down.Store(false)
	after, err := store.Newest(ctx, d.engine, store.JournalFilter{})
	if err != nil || len(open) == 0 {
		return nil, err
	}
	item := open[0].Item.String()
	key, err := d.keyOf(ctx, open[0].Case)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(d.out, `
The supplier is back. Now you decide, in the pages:
  all together   %s
                 "Retry all…" tries the purchases of a cause again
  only one       %s
                 "Retry…", "Skip…" with an output such as %s, or "Give up…"
  a step back    the page of a case moves its token from buy to price
  afterwards     %s
                 says who decided, and why

`, d.page("incidents"), d.page("items/"+item), `{"id":"`+key+`","from":"a shop"}`, d.page("audit"))
	if err := d.decided(ctx, after); err != nil {
		return nil, err
	}
	fmt.Fprintln(d.out, "All is decided.")
	for _, i := range open[:min(len(open), mostShown)] {
		shown = append(shown, i.Case)
	}
	return shown, nil
}

// page returns the address of a page, with the token.
func (d *incidents) page(path string) string { return strings.Replace(d.url, "/?", "/"+path+"?", 1) }

// decided waits until there is no incident any more. after is a position of the journal from before.
func (d *incidents) decided(ctx context.Context, after int64) error {
	for _, err := range d.engine.Watch(ctx, workitem.CaseID{}, after) {
		if err != nil {
			return err
		}
		if open, err := d.isOpen(ctx); err != nil || !open {
			return err
		}
	}
	return ctx.Err()
}

// isOpen reports whether there is an incident, for whatever reason.
func (d *incidents) isOpen(ctx context.Context) (bool, error) {
	for _, err := range store.Incidents(ctx, d.engine, store.IncidentFilter{Workflow: d.recipe.Name}) {
		return err == nil, err
	}
	return false, nil
}

// ends waits until purchases have ended. One that the user of the pages has removed has.
func (d *incidents) ends(ctx context.Context, all []workitem.CaseID) error {
	for _, id := range all {
		if _, err := d.engine.WaitRun(ctx, id); err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
	}
	return nil
}
