package cli

import (
	"context"
	"encoding/json"
	"errors"

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
	command, err := json.Marshal(q.command)
	if err != nil {
		return result, false, err
	}
	limited, cancel := context.WithTimeout(ctx, q.timeout)
	defer cancel()
	for {
		owned, err := o.db.Owned(ctx)
		if err != nil {
			return result, false, &exitError{ExitDatabase, err}
		}
		if !owned {
			return result, false, nil
		}
		result, err = o.post(limited, command)
		switch {
		case !errors.Is(err, context.DeadlineExceeded):
			return result, true, err
		case limited.Err() != nil:
			return result, true, o.unanswered(q)
		}
	}
}
