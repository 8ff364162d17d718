// Package runs starts many runs of a function, or cases of a workflow, in one call, and waits for many of them.
//
//	handles, err := runs.Start(ctx, e, send, mails, nil)
//	receipts, err := runs.All(ctx, e, handles...)
//
// [Map] does both for an unlimited sequence of inputs, with a limit on the number of active runs.
package runs

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/workflow"
)

// Batch is the maximum number of runs that one transaction of [Start] starts.
const Batch = 5000

// batchTime is the time after which a transaction of [Start] starts no further run. So it stays far below
// engine.Config.CallbackTimeout also on a slow machine, and other commands get their turn.
const batchTime = time.Second

// Startable is what [Start] starts: a function, or a workflow, whose case is the run.
type Startable[In, Out any] interface {
	Run(ctx context.Context, e workflow.Doer, in In, opts ...workflow.Option) (builder.Run[Out], error)
}

// Start starts a run of a function, or a case of a workflow, for each input. It commits after each [Batch] of them, or after a second. The
// options of a run, such as a key, are those that the function options returns for its input; nil means none. The
// handles are in the order of the inputs. If a start is refused, none of its batch is started, and the handles are
// those of the batches before it; the error has the index of the input, and wraps the reason.
//
// In an engine with Config.MaxPending each run is a batch of its own: a start that would add a job to a full queue is
// refused with engine.ErrFull, or waits for room (Config.WaitWhenFull).
func Start[In, Out any](
	ctx context.Context, e *engine.Engine, f Startable[In, Out], inputs []In, options func(In) []workflow.Option,
) ([]builder.Run[Out], error) {
	started := make([]builder.Run[Out], 0, len(inputs))
	for len(started) < len(inputs) {
		first := len(started)
		batch := inputs[first:min(first+Batch, len(inputs))]
		fresh := make([]builder.Run[Out], 0, len(batch))
		bounded := false
		err := e.Update(ctx, func(tx *engine.Tx) error {
			fresh = fresh[:0]
			if bounded = tx.HasBounds(); bounded {
				return nil
			}
			for i, began := 0, retry.SystemClock.Now(); i < len(batch); i++ {
				if retry.SystemClock.Now().Sub(began) >= batchTime {
					break
				}
				in := batch[i]
				var opts []workflow.Option
				if options != nil {
					opts = options(in)
				}
				run, err := f.Run(ctx, tx, in, opts...)
				if err != nil {
					return fmt.Errorf("input %d: %w", first+i, err)
				}
				fresh = append(fresh, run)
			}
			return nil
		}, engine.Repeatable())
		if err != nil {
			return started, err
		}
		if bounded {
			return startEach(ctx, e, f, inputs, options)
		}
		started = append(started, fresh...)
	}
	return started, nil
}

// startEach starts the runs one by one, each if its queue has room.
func startEach[In, Out any](
	ctx context.Context, e *engine.Engine, f Startable[In, Out], inputs []In, options func(In) []workflow.Option,
) ([]builder.Run[Out], error) {
	started := make([]builder.Run[Out], 0, len(inputs))
	for i, in := range inputs {
		var opts []workflow.Option
		if options != nil {
			opts = options(in)
		}
		run, err := f.Run(ctx, e, in, opts...)
		if err != nil {
			return started, fmt.Errorf("input %d: %w", i, err)
		}
		started = append(started, run)
	}
	return started, nil
}

// All waits until every run has ended, and returns their results in order. A run without a result leaves the zero
// value; the error joins the errors, each with the index of its run.
func All[Out any](ctx context.Context, e builder.Waiter, handles ...builder.Run[Out]) ([]Out, error) {
	results := make([]Out, len(handles))
	var errs []error
	for i, h := range handles {
		out, err := h.Result(ctx, e)
		if ctx.Err() != nil && err != nil {
			return results, errors.Join(append(errs, err)...)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("run %d: %w", i, err))
		}
		results[i] = out
	}
	return results, errors.Join(errs...)
}

// ended is the end of one of several runs.
type ended[Out any] struct {
	place int
	out   Out
	err   error
}

// Race returns the result of the run that ends first, in whatever state, with its index. The others continue. Without
// runs, and if the context ends, the index is -1.
func Race[Out any](ctx context.Context, e builder.Waiter, handles ...builder.Run[Out]) (place int, out Out, err error) {
	return first(ctx, e, handles, func(error) bool { return true })
}

// First returns the result of the run that completes first, with its index. The others continue. If none completes, the
// index is -1, and the error joins their errors.
func First[Out any](ctx context.Context, e builder.Waiter, handles ...builder.Run[Out]) (place int, out Out, err error) {
	return first(ctx, e, handles, func(err error) bool { return err == nil })
}

var errNoRuns = errors.New("there are no runs to wait for")

func first[Out any](
	ctx context.Context, e builder.Waiter, handles []builder.Run[Out], counts func(error) bool,
) (int, Out, error) {
	var none Out
	if len(handles) == 0 {
		return -1, none, errNoRuns
	}
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	ends := make(chan ended[Out], len(handles))
	for i, h := range handles {
		go func() {
			out, err := h.Result(waiting, e)
			ends <- ended[Out]{i, out, err}
		}()
	}
	var errs []error
	for range handles {
		end := <-ends
		if ctx.Err() != nil && errors.Is(end.err, ctx.Err()) {
			return -1, none, end.err
		}
		if counts(end.err) {
			return end.place, end.out, end.err
		}
		errs = append(errs, fmt.Errorf("run %d: %w", end.place, end.err))
	}
	return -1, none, errors.Join(errs...)
}

// Progress is the progress of a [Map].
type Progress struct{ Started, Done, Failed int }

// Map runs a function for each input, at most atOnce at a time, and yields the results in the order of the inputs, each
// with the error of its run. It reads an input only when there is room for its run, so the sequence can be endless.
// progress, if not nil, is called after each result. If the loop ends early, the started runs continue. atOnce is at
// least 1. A nil sequence has no inputs. If a run cannot be started, Map ends after the results of the runs before it.
func Map[In, Out any](
	ctx context.Context, e interface {
		builder.Runs
		builder.Waiter
	}, f *builder.FuncRef[In, Out], inputs iter.Seq[In], atOnce int, progress func(Progress),
) iter.Seq2[Out, error] {
	return func(yield func(Out, error) bool) {
		if inputs == nil {
			return
		}
		next, stop := iter.Pull(inputs)
		defer stop()
		var p Progress
		var failed error
		pending := make([]builder.Run[Out], 0, max(atOnce, 1))
		for more := true; ; {
			for more && len(pending) < max(atOnce, 1) {
				in, ok := next()
				if more = ok; !more {
					break
				}
				run, err := f.Run(ctx, e, in)
				if err != nil {
					more, failed = false, fmt.Errorf("input %d: %w", p.Started, err)
					break
				}
				pending = append(pending, run)
				p.Started++
			}
			if len(pending) == 0 {
				break
			}
			out, err := pending[0].Result(ctx, e)
			pending = append(pending[:0], pending[1:]...)
			if p.Done++; err != nil {
				p.Failed++
			}
			if progress != nil {
				progress(p)
			}
			if !yield(out, err) || ctx.Err() != nil {
				return
			}
		}
		if failed != nil {
			var none Out
			yield(none, failed)
		}
	}
}
