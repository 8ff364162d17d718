package cli

import (
	"context"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workflow"
)

// report has the engine that owns the database answer what it does at the moment. Without one answered is false: nothing happens at the moment,
// and the rest is in the database. No engine is opened here, since that takes up all that is live.
func (o *owning) report(ctx context.Context, q *asking) (result workflow.Result, answered bool, err error) {
	if err := q.complete(); err != nil {
		return result, false, err
	}
	if o.db, err = o.a.database(); err != nil {
		return result, false, err
	}
	if err := o.a.view(ctx, func(store.Reader) error { return nil }); err != nil { // there may be no database
		return result, false, err
	}
	if q.queue {
		result, err = o.ask(ctx, q)
		return result, true, err
	}
	return o.askOwner(ctx, q, func() (bool, error) {
		owned, err := o.db.Owned(ctx)
		if err != nil {
			return false, &exitError{ExitDatabase, err}
		}
		return owned, nil
	})
}
