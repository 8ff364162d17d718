package builder

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// ResultRef is the handle of the result of a workflow's cases, of type Out. It starts cases with a typed result, and a
// parent case reads the results of its child cases with it, see [ChildOutput].
type ResultRef[C, Out any] struct{ d *draft }

// Result sets the source of a completed case's output, as [Builder.Result] does, and returns a typed handle of
// it.
//
//	text := builder.Result(b, builder.Output(draft))
//	article := b.MustBuild()
//	...
//	run, err := text.Run(ctx, e, Prompt{Text: "Petri nets"})
//	said, err := run.Result(ctx, e) // a string: the output of draft
func Result[C, Out any](b *Builder[C], s Source[Out]) *ResultRef[C, Out] {
	d := b.draft()
	d.setResult(s, caller())
	d.out = reflect.TypeFor[Out]()
	return &ResultRef[C, Out]{d}
}

// Run starts a case, and returns its handle. With an *engine.Tx the start is part of that transaction. The error wraps
// a *domain.InvalidError if the input breaks its own rules.
func (r *ResultRef[C, Out]) Run(ctx context.Context, e workflow.Doer, input C, opts ...workflow.Option) (Run[Out], error) {
	if r == nil || r.d.def == nil {
		return Run[Out]{}, fmt.Errorf("run a workflow: %w", errNotBuilt)
	}
	id, err := startCase(ctx, e, r.d.def, input, opts)
	if err != nil {
		return Run[Out]{}, fmt.Errorf("run %s: %w", r.d.name, err)
	}
	return r.Of(id), nil
}

// Of returns the handle of the case with an id. It does not check that there is such a case; the methods of
// the handle do.
func (r *ResultRef[C, Out]) Of(id workitem.CaseID) Run[Out] {
	if r == nil {
		return Run[Out]{ID: id}
	}
	return Run[Out]{ID: id, d: r.d.def}
}

// Run starts a case like [Workflow.Start], and returns its handle. The result is JSON; with [ResultRef.Run] it is
// typed.
func (w *Workflow[C]) Run(ctx context.Context, e workflow.Doer, input C, opts ...workflow.Option) (Run[json.RawMessage], error) {
	id, err := w.Start(ctx, e, input, opts...)
	if err != nil {
		return Run[json.RawMessage]{}, err
	}
	return w.Of(id), nil
}

// Of returns the handle of the case with an id, with its result as JSON. It does not check that there is such a
// case; the methods of the handle do.
func (w *Workflow[C]) Of(id workitem.CaseID) Run[json.RawMessage] {
	return Run[json.RawMessage]{ID: id, d: w.Untyped()}
}

// startCase starts a case of a built workflow.
func startCase[C any](
	ctx context.Context, e workflow.Doer, d *workflow.Definition, input C, opts []workflow.Option,
) (workitem.CaseID, error) {
	payload, err := encode(input)
	if err == nil && e == nil {
		err = errNoEngine
	}
	if err != nil {
		return workitem.CaseID{}, err
	}
	c := workflow.Start(d.Name, payload)
	c.Fingerprint = d.Fingerprint
	result, err := e.Do(ctx, workflow.With(c, opts...))
	return result.Case, err
}

// setResult notes what the output of a completed case is.
func (d *draft) setResult(s AnySource, pos net.Pos) {
	d.frozen("a result", pos)
	if s == nil || s.source().read == nil {
		d.problem(NilFunction, d.name, pos, "the result of workflow %q has no source; use builder.Output or another one",
			d.name)
		return
	}
	if d.result != nil {
		d.problem(DuplicateResult, d.name, pos, "the result of workflow %q is given twice", d.name)
		d.other(d.result.pos)
		return
	}
	src := s.source()
	src.pos = pos
	d.result = &src
}
