package worker

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/engine/internal/kernel"
	"github.com/tasq-dev/tasq/internal/readable"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// call calls the function of a job with its middleware. Panics and timeouts are failures like any other.
func (r *Runner) call(ctx context.Context, def *workflow.Definition, w *activities.Work) (output json.RawMessage, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = retry.NewPanicError(p)
		}
		// An error whose own methods panic is replaced: it is formatted later, where no panic is expected.
		err = cmp.Or(readable.Error(err), err)
	}()
	if r.o.AroundJob == nil {
		return r.function(ctx, def, w)
	}
	err = r.o.AroundJob(ctx, w, func(ctx context.Context) (err error) {
		output, err = r.function(ctx, def, w)
		return err
	})
	if err != nil {
		return nil, err
	}
	return output, nil
}

// function calls the function of a job.
func (r *Runner) function(ctx context.Context, def *workflow.Definition, w *activities.Work) (output json.RawMessage, err error) {
	if w.Name != "" {
		call := def.Calls[w.Name]
		if call == nil {
			return nil, &workitem.Failure{Code: workitem.CodeError,
				Message: fmt.Sprintf("workflow %s has no function %q", def.Name, w.Name)}
		}
		return nil, call.Run(ctx, w)
	}
	t, _ := def.Net.TaskByName(w.Item.Task)
	spec := &def.Tasks[t]
	// The time counts from the call and not from the claim, which may have waited for its commit.
	if spec.RunTimeout > 0 {
		var cancel func()
		ctx, cancel = context.WithTimeout(ctx, spec.RunTimeout)
		defer cancel()
	}
	if spec.Batch != nil {
		b, _ := ctx.Value(batchKey{}).(*Batch)
		// A job that was claimed alone, as after a retry, is a batch of one.
		if b == nil {
			b = alone(r.o.Context, w.Job)
		}
		output, err = b.join(ctx, spec.Batch, w)
	} else {
		output, err = spec.Run(ctx, w)
	}
	if err != nil {
		return nil, overtime(ctx, err, spec.RunTimeout)
	}
	// Otherwise the function has returned a checked value of the right type.
	if spec.Batch != nil || !spec.RunAccepts {
		output, err = kernel.Accept(spec, workitem.Complete, output)
	}
	if err == nil {
		err = r.o.CheckPayload("output", output)
	}
	if err != nil {
		return nil, &activities.OutputError{Err: err}
	}
	return output, nil
}
