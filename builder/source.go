package builder

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/domain"
	"github.com/tasq-dev/tasq/net"
)

// Source says where a payload of type T comes from: [CaseInput], [Output], [From], [FromCase], or [Map] of another one. The zero value is no
// source.
type Source[T any] struct{ s sourceOf }

// AnySource is a [Source] of any type.
type AnySource interface{ source() sourceOf }

func (s Source[T]) source() sourceOf { return s.s }

// sourceOf is a source without its type. It reads JSON, so that a payload which goes from task to task unchanged is not
// decoded on the way.
type sourceOf struct {
	read  func(context.Context, *activities.Activation, *activities.Case) (json.RawMessage, error)
	where where
	of    *node  // the task whose output it is
	lacks bool   // no output is a value of its type
	d     *draft // whose case input it is
	pos   net.Pos

	mapped bool // by code
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
	read := func(_ context.Context, a *activities.Activation, c *activities.Case) (json.RawMessage, error) {
		return infoOf(a, c).Input, nil
	}
	return Source[C]{sourceOf{read: read, d: b.d}}
}

// Output is the output of the work item of a task that completed last. Before the first has completed it is nil if it
// is an interface, a map or a slice. Of any other type, reading it then is an error, which rolls the command back. So
// where a case may come there without that task, as a result does if another way leads to the end, use From or
// FromCase, and ask CaseInfo.Outputs whether there is one.
func Output[In, Out any](t *TaskRef[In, Out]) Source[Out] {
	n := t.node()
	if n == nil {
		return Source[Out]{}
	}
	return outputSource[Out](n)
}

func outputSource[Out any](n *node) Source[Out] {
	read := func(_ context.Context, a *activities.Activation, c *activities.Case) (json.RawMessage, error) {
		raw, err := outputOf[Out](infoOf(a, c), n.name)
		if err != nil && a == nil {
			return nil, fmt.Errorf("%w; a result that not every case has is made by builder.FromCase", err)
		}
		if err != nil {
			return nil, fmt.Errorf("%w; an input that may be missing is made by builder.From", err)
		}
		return raw, nil
	}
	return Source[Out]{sourceOf{read: read, of: n, lacks: mayLack(reflect.TypeFor[Out]()), d: n.d}}
}

// Map is a source computed from another one, as builder.Map(builder.Output(draft), func(d Draft) string { return d.Title }).
// It can be used where the other one can.
func Map[T, U any](s Source[T], f func(T) U) Source[U] {
	if s.s.read == nil || f == nil {
		return Source[U]{}
	}
	return Source[U]{mapped(s.s, f)}
}

func mapped[T, U any](s sourceOf, f func(T) U) sourceOf {
	of := s.read
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

// From computes the input of a task as the task is enabled, or the condition of a flow as its task completes, in the
// transaction.
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

// FromCase computes the result of a case as the case completes, in the transaction.
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

// OutputOf reads the output that a task of the case gave last, for callbacks: builder.OutputOf(draft, a.Case()). It
// is an error if the task has given none.
func OutputOf[In, Out any](t *TaskRef[In, Out], c activities.CaseInfo) (Out, error) {
	var none Out
	raw, err := outputOf[Out](c, t.Name())
	if err != nil {
		return none, err
	}
	return restore[Out](raw)
}

// CaseInputOf reads the input of the case, for callbacks: builder.CaseInputOf[Prompt](a.Case()).
func CaseInputOf[C any](c activities.CaseInfo) (C, error) { return restore[C](c.Input) }

func infoOf(a *activities.Activation, c *activities.Case) activities.CaseInfo {
	if a != nil {
		return a.Case()
	}
	return c.Case()
}

// outputOf reads what a task gave last. Nothing is an output only of types that may lack one; otherwise it means that
// the task has not completed.
func outputOf[Out any](c activities.CaseInfo, task string) (json.RawMessage, error) {
	raw := c.Outputs(task)
	if raw == nil && !mayLack(reflect.TypeFor[Out]()) {
		return nil, fmt.Errorf("task %s of case %s (%s) has given no output", task, c.ID, c.Workflow)
	}
	return raw, nil
}
