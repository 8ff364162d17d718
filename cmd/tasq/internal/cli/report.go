package cli

import (
	"context"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workflow"
)

// report asks the engine that owns the database for its current state. answered is false if there is no engine: then
// nothing is running, and the rest is in the database. It opens no engine, since it would start to execute live work.
func (o *owning) report(ctx context.Context, q *asking) (result workflow.Result, answered bool, err error) {
	if err := q.complete(); err != nil {
		return result, false, err
	}
	if o.db, err = o.a.database(); err != nil {
		return result, false, err
	}
	if err := o.a.view(ctx, func(store.Reader) error { return nil }); err != nil { // the database may not exist
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
