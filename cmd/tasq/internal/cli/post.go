package cli

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workflow"
)

// patience is how long a command waits for a reply before it checks that the database still has an owner: that may have
// been another call of tasq, which has ended.
const patience = time.Second

// errUnowned says that a command was withdrawn, and did not happen, since no process owns the database any more.
var errUnowned = errors.New("no process owns the database")

// post leaves the command for the process that owns the database, and waits for its reply, as long as the context allows. The error
// is [errUnowned] if there is no such process any more. The command is not left again in between: what the owner has begun would be
// undone by that.
func (o *owning) post(ctx context.Context, command json.RawMessage) (workflow.Result, error) {
	answer, err := o.whileOwned(ctx, func(ctx context.Context) (store.Answer, error) { return o.db.Inbox().Post(ctx, command) })
	if err != nil {
		return workflow.Result{}, err
	}
	return engine.RemoteAnswer(answer)
}

// whileOwned calls a function whose context ends once no process owns the database. Its error is errUnowned then.
func (o *owning) whileOwned(ctx context.Context, f func(context.Context) (store.Answer, error)) (store.Answer, error) {
	waiting, cancel := context.WithCancelCause(ctx)
	checked := make(chan struct{})
	go func() {
		defer close(checked)
		for {
			retry.Sleep(waiting, nil, patience)
			if waiting.Err() != nil {
				return
			}
			if owned, err := o.db.Owned(waiting); !owned || err != nil {
				cancel(errUnowned)
			}
		}
	}()
	answer, err := f(waiting)
	cancel(nil)
	<-checked
	if errors.Is(err, context.Canceled) && context.Cause(waiting) == errUnowned {
		err = errUnowned
	}
	return answer, err
}
