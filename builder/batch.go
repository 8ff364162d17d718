package builder

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"time"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/domain"
	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// Outcome is the result of one input of a batch: a value or an error.
type Outcome[Out any] struct {
	Value Out
	Err   error // why this input failed, handled like the error of a Run; nil if it succeeded
}

// Batched describes how items of a task are processed in batches, see [Batch]. The zero value processes each item by
// itself.
type Batched[In, Out any] struct {
	Most int           // the largest number of items in one call, 1 or more
	Wait time.Duration // how long the first item waits for others; 0 takes those that are due when a worker is free
	// Key groups the items: only items with the same key, such as a customer, share a batch, and batches of different
	// keys run concurrently. It must be fast and depend on the input only; an item for which it panics, which is logged, is a batch of
	// its own. Nil groups all items together.
	Key func(In) string
	// Run returns one outcome for each input, in the same order. An error fails all items, each according to its own
	// retry policy.
	Run func(context.Context, []In) ([]Outcome[Out], error)
}

func (b *Batched[In, Out]) isZero() bool {
	return b.Most == 0 && b.Wait == 0 && b.Key == nil && b.Run == nil
}

// Batch defines a function like [Func] whose runs are processed in batches. The function is called with up to most
// inputs: as soon as that many runs are due, or the first one has been due for the time wait. It is for services that
// accept several inputs in one request.
//
//	index, err := builder.Batch("index", 100, time.Second,
//		func(ctx context.Context, docs []Doc) ([]builder.Outcome[Version], error) { ... })
//	run, err := index.Run(ctx, e, doc)
//
// Each run has its own key, result, history and retries: the function returns one outcome for each input, in the same
// order, and a run that failed is retried in a later batch according to the policy. An error, a panic, or a wrong
// number of outcomes fails all runs of the batch. A batch uses one worker. Each run acquires its limits by itself; a
// run that cannot acquire them is left for a later batch. A run whose process crashed runs alone from then on, so that
// it cannot take others down with it.
//
// Each engine collects its own batches, from runs of one version, in the order of their queue. Batches are not stored;
// wait is measured from when the first run became due, also over a restart. [WorksFrom] returns the jobs of the batch.
// The context does not support steps. It ends when all runs of the batch were canceled or have reached their
// [AttemptTimeout], which is its deadline. Middleware wraps each job separately, and all of them at the same time: it
// must not make one job wait for another.
func Batch[In, Out any](
	name string, most int, wait time.Duration, run func(context.Context, []In) ([]Outcome[Out], error), opts ...FuncOption,
) (*FuncRef[In, Out], error) {
	return newFunc(name, caller(), Work[In, Out]{Batch: Batched[In, Out]{Most: most, Wait: wait, Run: run}}, opts)
}

// MustBatch is like [Batch] but panics if the definition has a problem.
func MustBatch[In, Out any](
	name string, most int, wait time.Duration, run func(context.Context, []In) ([]Outcome[Out], error), opts ...FuncOption,
) *FuncRef[In, Out] {
	return mustFunc(newFunc(name, caller(), Work[In, Out]{Batch: Batched[In, Out]{Most: most, Wait: wait, Run: run}}, opts))
}

// BatchBy groups the runs of a [Batch] by a key, such as a customer: a batch holds runs of one key only. See [Batched].
func BatchBy[In any](key func(In) string) FuncOption {
	return funcOption(func(s *funcSpec) { s.batchKey, s.batchIn = key, reflect.TypeFor[In]() })
}

// batchKeyOf is the key of a batch that an option gave.
func batchKeyOf[In any](d *draft, pos net.Pos, spec *funcSpec, batch bool) func(In) string {
	if spec.batchIn == nil {
		return nil
	}
	key, ok := spec.batchKey.(func(In) string)
	switch {
	case !batch:
		d.problem(BadBatch, d.name, pos, "function %q is given builder.BatchBy, and is no batch; define it with builder.Batch", d.name)
	case !ok:
		d.problem(BadBatch, d.name, pos, "the key of the batch of function %q takes %s, and the input is %s; let it take that", d.name, spec.batchIn, reflect.TypeFor[In]())
	case key == nil:
		d.problem(BadBatch, d.name, pos, "the key of the batch of function %q is nil; give one, or leave builder.BatchBy out", d.name)
	}
	return key
}

type worksKey struct{}

// WorksFrom returns the jobs that the function of a [Batch] is called for, in the order of the inputs: their cases,
// their items, the attempts and the fencing tokens. It returns nil in any other context.
func WorksFrom(ctx context.Context) []*activities.Work {
	works, _ := ctx.Value(worksKey{}).([]*activities.Work)
	return works
}

// batched puts the batch of a task into it.
func batched[In, Out any](d *draft, n *node, b Batched[In, Out], run bool) {
	if run {
		d.at(n, Conflict, "task %q has both Run and Batch; give it one of them", n.name)
	}
	if b.Most < 1 {
		d.at(n, BadBatch, "the batch of task %q takes %d items; give 1 or more", n.name, b.Most)
	}
	d.checkNonNegative(n, "Batch.Wait", b.Wait)
	if b.Run == nil {
		d.at(n, NilFunction, "the batch of task %q has no function", n.name)
	}
	n.worker = true
	n.task.Batch = &workflow.Batch{Batching: workflow.Batching{Most: b.Most, Wait: b.Wait}, Run: batchOf(b.Run)}
	if b.Key != nil {
		n.task.Batch.Key = withInput(b.Key)
	}
}

// batchOf wraps the typed function of a batch for a worker.
func batchOf[In, Out any](run func(context.Context, []In) ([]Outcome[Out], error)) func(context.Context, []*activities.Work) []workflow.Done {
	return func(ctx context.Context, jobs []*activities.Work) []workflow.Done {
		done := make([]workflow.Done, len(jobs))
		var inputs []In
		var works []*activities.Work
		var at []int // where the input of each of them comes from
		for i, w := range jobs {
			in, err := recovered(func() (In, error) { return restore[In](w.Input) })
			if err != nil {
				done[i].Err = workitem.Fatal(fmt.Errorf("input of %s: %w", w.Item.Label(), err))
				continue
			}
			inputs, works, at = append(inputs, in), append(works, w), append(at, i)
		}
		if len(inputs) == 0 {
			return done
		}
		outcomes, err := called(context.WithValue(ctx, worksKey{}, works), inputs, run)
		for n, i := range at {
			switch {
			case err != nil:
				done[i].Err = err
			case outcomes[n].Err != nil:
				done[i].Err = outcomes[n].Err
			default:
				done[i].Output, done[i].Err = recovered(func() (json.RawMessage, error) { return encodeOutput(outcomes[n].Value) })
			}
		}
		return done
	}
}

// called calls the function of a batch. A panic and another number of outcomes are errors.
func called[In, Out any](
	ctx context.Context, inputs []In, run func(context.Context, []In) ([]Outcome[Out], error),
) (outcomes []Outcome[Out], err error) {
	want := len(inputs)
	if outcomes, err = recovered(func() ([]Outcome[Out], error) { return run(ctx, inputs) }); err == nil && len(outcomes) != want {
		err = fmt.Errorf("the function of a batch returned %d outcomes for %d inputs: let it return one for each, in their order", len(outcomes), want)
	}
	return outcomes, err
}

// recovered makes a panic an error: one in the JSON of an input or a value is of that one, and not of the whole batch.
func recovered[T any](f func() (T, error)) (v T, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = retry.NewPanicError(p)
		}
	}()
	return f()
}

// encodeOutput encodes what a function returned.
func encodeOutput[Out any](out Out) (json.RawMessage, error) {
	raw, err := domain.Encode(out)
	if err != nil {
		return nil, &activities.OutputError{Err: err}
	}
	return raw, nil
}
