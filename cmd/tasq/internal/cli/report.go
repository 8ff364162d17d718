package cli

import (
	"context"

	"github.com/spf13/cobra"

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

// reporting returns the body of a command that shows what the engine reports, once or repeatedly.
func (w *watch) reporting(q *asking, look func(context.Context, store.Reader) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		if err := w.check(cmd, new(int), nil); err != nil {
			return err
		}
		if w.on && q.queue {
			return usagef("--watch cannot be combined with --queue: a queued command has no answer")
		}
		return w.a.run(func(ctx context.Context, _ []string) error { return w.run(ctx, look) })(cmd, args)
	}
}
