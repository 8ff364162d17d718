package builder

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/domain"
	"github.com/tasq-dev/tasq/net"
)

// Source is a source of payloads of type T: [CaseInput], [Output], [From], [FromCase], or [Map] of another source. The zero value is no
// source.
type Source[T any] struct{ s sourceOf }

// AnySource is a [Source] of any type.
type AnySource interface{ source() sourceOf }

func (s Source[T]) source() sourceOf { return s.s }

// sourceOf is a source without its type. It reads JSON, so that a payload which goes from task to task unchanged is not
// decoded on the way.
type sourceOf struct {
	read  func(context.Context, *activities.Activation, *activities.Case) (json.RawMessage, error)
	plain func(activities.CaseInfo) (json.RawMessage, error) // the same, if that is no code of the user's; nil if it is
	where where
	of    *node  // the task whose output it is
	d     *draft // whose case input it is
	pos   net.Pos

	mapped   bool // by code
	optional bool // the output may be missing
}

// where says in which callbacks a source can be read.
type where uint8

const (
	anywhere where = iota
	inTask         // needs an activation
	inCase         // needs the case itself
)

// String names the source as the document does.
func (s sourceOf) String() string {
	name := "code"
	switch {
	case s.of != nil:
		name = "output of " + s.of.name
		if s.optional {
			name = "optional " + name
		}
	case s.where == anywhere:
		name = "case"
	}
	if s.mapped {
		return "code on " + name
	}
	return name
}

// use is a task's input that has a source.
type use struct {
	by *node
	sourceOf
}

// CaseInput is the input of the case.
func CaseInput[C any](b *Builder[C]) Source[C] {
	if b == nil {
		return Source[C]{}
	}
	return Source[C]{plainSource(func(c activities.CaseInfo) (json.RawMessage, error) { return c.Input, nil }, sourceOf{d: b.draft()})}
}

// plainSource completes a source that is read without code of the user's.
func plainSource(read func(activities.CaseInfo) (json.RawMessage, error), s sourceOf) sourceOf {
	s.plain = read
	s.read = func(_ context.Context, a *activities.Activation, c *activities.Case) (json.RawMessage, error) {
		return read(infoOf(a, c))
	}
	return s
}

// Output is the output of the task's work item that completed last. Build rejects it where a case can arrive without an
// output, because the task was skipped or completed without one, and shows a run in which that happens; see [NoOutput]
// and [OptionalOutput].
func Output[In, Out any](t *TaskRef[In, Out]) Source[Out] {
	n := t.node()
	if n == nil {
		return Source[Out]{}
	}
	return outputSource[Out](n)
}

func outputSource[Out any](n *node) Source[Out] {
	read := func(c activities.CaseInfo) (json.RawMessage, error) { return outputOf(c, n.name) }
	return Source[Out]{plainSource(read, sourceOf{of: n, d: n.d})}
}

// Optional is a value that may be missing. As a payload it is an object with the field "value", or without it.
type Optional[T any] struct {
	Value *T `json:"value,omitempty"` // nil if it is missing
}

// Get returns the value, and whether there is one.
func (o Optional[T]) Get() (T, bool) {
	if o.Value == nil {
		var none T
		return none, false
	}
	return *o.Value, true
}

// OptionalOutput is like [Output] for a task that may have no output: it was skipped, it timed out, or its policy let it
// complete without one.
func OptionalOutput[In, Out any](t *TaskRef[In, Out]) Source[Optional[Out]] {
	n := t.node()
	if n == nil {
		return Source[Optional[Out]]{}
	}
	read := func(_ context.Context, a *activities.Activation, c *activities.Case) (json.RawMessage, error) {
		v, err := OptionalOutputOf(t, infoOf(a, c))
		if err != nil {
			return nil, err
		}
		return domain.Encode(v)
	}
	return Source[Optional[Out]]{sourceOf{read: read, of: n, optional: true, d: n.d}}
}

// OptionalOutputOf is like [OutputOf] for a task that may have no output.
func OptionalOutputOf[In, Out any](t *TaskRef[In, Out], c activities.CaseInfo) (Optional[Out], error) {
	raw, err := lastOutput(c, t.Name())
	if raw == nil {
		return Optional[Out]{}, err
	}
	v, err := restore[Out](raw)
	return Optional[Out]{Value: &v}, err
}

// Map is a source that is computed from another one, such as builder.Map(builder.Output(draft), func(d Draft) string {
// return d.Title }). It can be used wherever s can.
func Map[T, U any](s Source[T], f func(T) U) Source[U] {
	if s.s.read == nil || f == nil {
		return Source[U]{}
	}
	return Source[U]{mapped(s.s, f)}
}

func mapped[T, U any](s sourceOf, f func(T) U) sourceOf {
	of := s.read
	s.plain = nil
	s.read = func(ctx context.Context, a *activities.Activation, c *activities.Case) (json.RawMessage, error) {
		raw, err := of(ctx, a, c)
		if err != nil {
			return nil, err
		}
		v, err := restore[T](raw)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s, err)
		}
		return domain.Encode(f(v))
	}
	s.mapped = true
	return s
}

// From computes the input of a task when the task is enabled, or the condition of a flow when its task completes, in
// the transaction.
func From[T any](f func(context.Context, *activities.Activation) (T, error)) Source[T] {
	if f == nil {
		return Source[T]{}
	}
	read := func(ctx context.Context, a *activities.Activation, _ *activities.Case) (json.RawMessage, error) {
		v, err := f(ctx, a)
		if err != nil {
			return nil, err
		}
		return domain.Encode(v)
	}
	return Source[T]{sourceOf{read: read, where: inTask}}
}

// FromCase computes the result of a case when the case completes, in the transaction.
func FromCase[T any](f func(*activities.Case) (T, error)) Source[T] {
	if f == nil {
		return Source[T]{}
	}
	read := func(_ context.Context, _ *activities.Activation, c *activities.Case) (json.RawMessage, error) {
		v, err := f(c)
		if err != nil {
			return nil, err
		}
		return domain.Encode(v)
	}
	return Source[T]{sourceOf{read: read, where: inCase}}
}

// OutputOf returns the latest output of a task of the case, for use in callbacks: builder.OutputOf(draft,
// a.Case()). It is an error if the task has no output.
func OutputOf[In, Out any](t *TaskRef[In, Out], c activities.CaseInfo) (Out, error) {
	var none Out
	raw, err := outputOf(c, t.Name())
	if err != nil {
		return none, err
	}
	return restore[Out](raw)
}

// CaseInputOf returns the input of the case, for use in callbacks: builder.CaseInputOf[Prompt](a.Case()).
func CaseInputOf[C any](c activities.CaseInfo) (C, error) { return restore[C](c.Input) }

func infoOf(a *activities.Activation, c *activities.Case) activities.CaseInfo {
	if a != nil {
		return a.Case()
	}
	return c.Case()
}

// outputOf reads what a task gave last.
func outputOf(c activities.CaseInfo, task string) (json.RawMessage, error) {
	raw, err := lastOutput(c, task)
	if err == nil && raw == nil {
		return nil, fmt.Errorf("task %s of case %s (%s) %w; read it with builder.OptionalOutput where it may be missing",
			task, c.ID, c.Workflow, activities.ErrNoOutput)
	}
	return raw, err
}

// lastOutput reads what a task gave last; nil if it has given none. A description of a case that was not made by an engine, as one of
// a test's own, may not know of outputs: that is an error.
func lastOutput(c activities.CaseInfo, task string) (json.RawMessage, error) {
	if c.Outputs != nil {
		return c.Outputs(task), nil
	}
	return nil, fmt.Errorf("output of task %s of case %s (%s): CaseInfo.Outputs is nil; use the CaseInfo of a callback, or set it", task, c.ID, c.Workflow)
}
