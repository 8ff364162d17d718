package builder

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// Ended describes how a run ended, for a completion handler.
type Ended[Out any] struct {
	Case    activities.CaseInfo
	State   workflow.RunState // completed, failed or canceled
	Value   Out               // once completed
	Failure *workitem.Failure // why it failed, or was canceled; nil without a reason
}

// Completion is the argument of a completion handler. With it the handler can run SQL, start other runs and remove
// the ended run, all in the transaction in which the run ends.
type Completion[Out any] struct {
	InTx
	Ended[Out]
	d *workflow.Definition
}

// Run is the handle of the run that has ended.
func (c *Completion[Out]) Run() Run[Out] { return Run[Out]{ID: c.Case.ID, d: c.d} }

// HandlerRef is the handle of a completion handler. V is the type of the value that the caller passes when it
// starts a run.
type HandlerRef[V any] struct{ h *handler }

// LaterRef is the handle of a completion handler that a job calls, see [LaterHandler].
type LaterRef[V any] struct{ h *handler }

// AnyHandler is a *HandlerRef or a *LaterRef of any type.
type AnyHandler interface{ declared() *handler }

func (r *HandlerRef[V]) declared() *handler {
	if r == nil {
		return nil
	}
	return r.h
}

func (r *LaterRef[V]) declared() *handler {
	if r == nil {
		return nil
	}
	return r.h
}

// handler is a declared handler without its types.
type handler struct {
	name     string
	pos      net.Pos
	out      reflect.Type
	spec     func(*workflow.Definition) *workflow.Handler
	call     *workflow.Call // of one that a job calls
	missing  bool           // it has no function
	problems []func(d *draft)
}

// Handler declares a completion handler: a function that is called in the transaction in which a run ends, exactly
// once, whether the run completed, failed or was canceled. It is not called for an attempt that is retried. The name
// is part of every workflow that [Handles] it. The function receives the ended run, and the value of [OnComplete].
//
//	saved := builder.Handler("saved", func(ctx context.Context, c *builder.Completion[Receipt], order Order) error {
//		return orders.Put(ctx, c.DB(), order.ID, order.With(c.State, c.Value))
//	})
//
// If the handler fails, only its own changes are rolled back, and the end of the run stands. A job then calls the
// handler again, with backoff, up to ten times in all; after that the job is listed as failed. The function must be
// short, since other transactions wait for it.
func Handler[Out, V any](name string, f func(context.Context, *Completion[Out], V) error) *HandlerRef[V] {
	h := newHandler[Out, V](name, caller(), f == nil)
	accept := acceptor[V]()
	h.spec = func(d *workflow.Definition) *workflow.Handler {
		run := func(ctx context.Context, c activities.CaseInfo, value json.RawMessage) error {
			tx, ok := ctx.Value(txKey{}).(InTx)
			if !ok {
				return fmt.Errorf("handler %s: its context carries no transaction: %w", name, errNoEngine)
			}
			ended, v, err := endedOf[Out, V](c, value)
			if err != nil {
				return fmt.Errorf("handler %s: %w", name, err)
			}
			return f(ctx, &Completion[Out]{InTx: tx, Ended: ended, d: d}, v)
		}
		return &workflow.Handler{Accept: accept, Run: run}
	}
	return &HandlerRef[V]{h}
}

// LaterHandler declares a completion handler that runs in a worker after the run has ended, outside any transaction,
// for work that takes long or uses the network. It is called at least once: again after a failure, according to its
// retry policy, and after a crash. A job that gives up is listed as failed.
func LaterHandler[Out, V any](
	name string, f func(context.Context, Ended[Out], V) error, o JobOptions,
) *LaterRef[V] {
	h := newHandler[Out, V](name, caller(), f == nil)
	if err := o.Retry.Validate(); err != nil {
		h.problems = append(h.problems, func(d *draft) {
			d.problem(BadRetry, name, h.pos, "the retry policy of completion handler %q is invalid: %s", name, oneLine(err))
		})
	}
	accept := acceptor[V]()
	h.spec = func(*workflow.Definition) *workflow.Handler { return &workflow.Handler{Accept: accept} }
	run := func(ctx context.Context, w *activities.Work) error {
		ended, v, err := endedOf[Out, V](w.Case, w.Input)
		if err != nil {
			return workitem.Fatal(fmt.Errorf("handler %s: %w", name, err))
		}
		return f(context.WithValue(ctx, workKey{}, w), ended, v)
	}
	h.call = &workflow.Call{Queue: o.Queue, Retry: o.Retry, Run: run, Decode: decoderOf[V](),
		Limits: usesOf(o.Limits), Hours: o.Hours}
	h.problems = append(h.problems, func(d *draft) {
		if o.FairBy.in != nil {
			d.problem(BadFairKey, name, h.pos, "completion handler %q is given FairBy, and has no input of its own; leave it out", name)
		}
		d.checkQueue(fmt.Sprintf("completion handler %q", name), name, h.pos, o.Queue)
		d.checkNeeds(fmt.Sprintf("completion handler %q", name), name, h.pos, reflect.TypeFor[V](), o.Limits)
	})
	return &LaterRef[V]{h}
}

func newHandler[Out, V any](name string, pos net.Pos, missing bool) *handler {
	h := &handler{name: name, pos: pos, out: reflect.TypeFor[Out](), missing: missing}
	h.problems = append(h.problems, func(d *draft) {
		d.checkName("completion handler", name, pos)
		checkType[Out](d, fmt.Sprintf("the result that completion handler %q takes", name), name, pos)
		checkType[V](d, fmt.Sprintf("the value of completion handler %q", name), name, pos)
		if missing {
			d.problem(NilFunction, name, pos, "completion handler %q has no function", name)
		}
	})
	return h
}

func endedOf[Out, V any](c activities.CaseInfo, value json.RawMessage) (e Ended[Out], v V, err error) {
	e = Ended[Out]{Case: c, State: workflow.RunState(c.State.String()), Failure: c.Failure}
	if e.State == workflow.RunCompleted {
		if e.Value, err = restore[Out](c.Output); err != nil {
			return e, v, fmt.Errorf("result of case %s (%s): %w", c.ID, c.Workflow, err)
		}
	}
	v, err = restore[V](value)
	return e, v, err
}

// Handles declares the completion handlers of the workflow; the start of a case chooses among them with [OnComplete] and
// [OnCompleteLater]. For a function, or a workflow with a typed result, the result type of the handler must be the same, or
// json.RawMessage.
func Handles(handlers ...AnyHandler) Option {
	return func(d *draft) {
		for _, given := range handlers {
			var h *handler
			if given != nil {
				h = given.declared()
			}
			d.handle(h)
		}
	}
}

func (d *draft) handle(h *handler) {
	if h == nil {
		d.problem(NilHandle, d.name, d.pos, "a completion handler of workflow %q is nil; declare it before it is used",
			d.name)
		return
	}
	for _, old := range d.handlers {
		if old.name == h.name {
			d.problem(net.DuplicateName, h.name, h.pos, "there are two completion handlers named %q", h.name)
			d.other(old.pos)
			return
		}
	}
	for _, p := range h.problems {
		p(d)
	}
	d.handlers = append(d.handlers, h)
}

// checkHandlers finds handlers that do not fit the rest of the workflow.
func (d *draft) checkHandlers() []net.Problem {
	var c problems
	for _, h := range d.handlers {
		if d.out != nil && !untyped(h.out) && h.out != d.out {
			c.problem(BadType, h.name, h.pos, "completion handler %q takes %s, and workflow %q gives %s",
				h.name, h.out, d.name, d.out)
			c.other(d.pos)
		}
		for _, j := range d.jobs {
			if j.name == h.name {
				c.problem(net.DuplicateName, h.name, h.pos, "job %q has the name of a completion handler", h.name)
				c.other(j.pos)
			}
		}
	}
	return c.found
}

// handlersOf puts the handlers into a definition.
func (d *draft) handlersOf(def *workflow.Definition) {
	for _, h := range d.handlers {
		if def.Handlers == nil {
			def.Handlers = make(map[string]*workflow.Handler, len(d.handlers))
		}
		def.Handlers[h.name] = h.spec(def)
		if h.call == nil {
			continue
		}
		if def.Calls == nil {
			def.Calls = make(map[string]*workflow.Call, 1)
		}
		def.Calls[h.name] = h.call
	}
}

// OnComplete registers a completion handler for the run that is started. The handler is called with the value in the
// transaction in which the run ends. The workflow must declare the handler with [Handles]. Several handlers are called in
// the order of their options; [Only] restricts a handler to some outcomes.
func OnComplete[V any](h *HandlerRef[V], value V, opts ...HandlerOption) workflow.Option {
	return handlerCall("OnComplete", h.declared(), value, opts)
}

// OnCompleteLater is like [OnComplete] for a handler that a job calls after the transaction, see [LaterHandler].
func OnCompleteLater[V any](h *LaterRef[V], value V, opts ...HandlerOption) workflow.Option {
	return handlerCall("OnCompleteLater", h.declared(), value, opts)
}

// HandlerOption changes when a handler is called.
type HandlerOption func(*workflow.HandlerCall)

// Only restricts a handler to these outcomes: workflow.RunCompleted, workflow.RunFailed,
// workflow.RunCanceled. Any other state is an error when the run is started.
func Only(outcomes ...workflow.RunState) HandlerOption {
	return func(t *workflow.HandlerCall) {
		for _, o := range outcomes {
			t.Only = append(t.Only, string(o))
		}
	}
}

var errNoHandler = errors.New("the handler is nil; declare it before it is used")

func handlerCall[V any](what string, h *handler, value V, opts []HandlerOption) workflow.Option {
	return workflow.OptionFunc(func(c *workflow.Command) error {
		if h == nil {
			return fmt.Errorf("%s: %w: %w", what, workflow.ErrBadCommand, errNoHandler)
		}
		raw, err := encode(value)
		if err != nil {
			return fmt.Errorf("%s %s: %w", what, h.name, err)
		}
		call := workflow.HandlerCall{Handler: h.name, Value: raw}
		for _, opt := range opts {
			if opt != nil {
				opt(&call)
			}
		}
		c.Options.OnComplete = append(c.Options.OnComplete, call)
		return nil
	})
}
