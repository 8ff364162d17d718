package builder

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"time"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/domain"
	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/workflow"
)

// Builder collects the declarations of a workflow whose cases take a C as their input. Make one with [New]. It is not
// safe for concurrent use.
type Builder[C any] struct {
	d     *draft
	built *Workflow[C]
}

// draft returns what the declarations are collected in. It panics if New did not make the builder.
func (b *Builder[C]) draft() *draft {
	if b == nil || b.d == nil {
		panic("tasq: the Builder is nil, or its zero value: make it with builder.New")
	}
	return b.d
}

// draft is a workflow under construction, without its types.
type draft struct {
	name        string
	version     string
	description string
	topics      []string
	pos         net.Pos

	nodes     []*node // start and end first, then in the order of declaration
	flows     []*flow
	lacksFlow bool // a flow has an end that is no node of the workflow
	cancels   []cancellation
	sources   []use
	hooks     activities.CaseHooks
	holds     []holding
	jobs      []*job
	result    *sourceOf
	problems  // found while declaring
	accept    func(json.RawMessage) (json.RawMessage, error)
	plain     bool         // accept calls no method of the user's types
	in        reflect.Type // of what accept takes
	allowed   []net.Code   // findings that do not keep the workflow from being built
	silenced  []net.Code   // warnings that are not wanted

	handlers []*handler
	out      reflect.Type  // of the result; nil if it is not known
	sweep    bool          // cases that have ended are removed
	keep     time.Duration // how long after their end

	deadLetter *workflow.Definition // of which a case that fails starts one; nil for none

	identity  []identifier // by what cases are found
	uniqueKey bool

	def *workflow.Definition // once built
}

// Option is an option of a workflow.
type Option func(*draft)

// Version sets the version of the definition. A case continues with the version that it was started with, so an
// engine can be opened with several versions of one workflow. The default is "".
func Version(v string) Option {
	return func(d *draft) {
		d.version = v
		if err := workflow.CheckName("version", v); err != nil {
			d.problem(BadVersion, d.name, d.pos, "workflow %q: %s", d.name, oneLine(err))
		}
	}
}

// Describe describes the purpose of the workflow in a sentence. It is not part of the fingerprint, so it may be
// reworded.
func Describe(text string) Option { return func(d *draft) { d.description = text } }

// On subscribes the workflow to topics: every broadcast to one of them starts a case, with the value of the broadcast
// as its input. On may be given several times.
func On(topics ...string) Option {
	return func(d *draft) {
		for _, topic := range topics {
			if topic == "" || slices.Contains(d.topics, topic) {
				d.problem(BadTopic, d.name, d.pos, "workflow %q subscribes to the topic %q, which is empty or there twice; "+
					"give each topic once", d.name, topic)
				continue
			}
			if err := workflow.CheckEventName(topic); err != nil {
				d.problem(BadTopic, d.name, d.pos, "workflow %q subscribes to a topic: %s", d.name, oneLine(err))
				continue
			}
			d.topics = append(d.topics, topic)
		}
	}
}

// Forever is an argument of [Keep]: cases are never removed automatically.
const Forever time.Duration = -1

// Keep sets the retention time: how long a case is kept after its end. Then it is removed with its items, jobs, steps, events,
// its part of the journal, and the idempotency keys of its commands, which can be used again. 0 removes it as soon as its
// completion handlers were called, [Forever] never; another negative time is a problem. A case with a failed handler, or with a
// failed detached job, is not removed.
//
// The default is [Forever] for a workflow, and [DefaultKeep] for a function. A case has the retention time of the definition
// with which it ended.
func Keep(d time.Duration) Option {
	return func(draft *draft) {
		if d < 0 && d != Forever {
			draft.problem(NegativeDuration, draft.name, draft.pos, "workflow %q keeps its cases for %s; give zero or more, or builder.Forever", draft.name, d)
		}
		draft.sweep, draft.keep = d >= 0, max(d, 0)
	}
}

// New begins the definition of a workflow. C is the type of a case's input; use struct{} or any for none. The name must
// match [A-Za-z_][A-Za-z0-9_-]*, as all names of a workflow.
func New[C any](name string, opts ...Option) *Builder[C] { return newBuilder[C](name, caller(), opts) }

func newBuilder[C any](name string, pos net.Pos, opts []Option) *Builder[C] {
	d := &draft{name: name, pos: pos, accept: acceptor[C](), plain: domain.IsPlain(reflect.TypeFor[C]()), in: reflect.TypeFor[C]()}
	d.checkName("workflow", name, d.pos)
	checkType[C](d, fmt.Sprintf("the input of workflow %q", name), name, d.pos)
	d.add(&node{name: "start", unique: "start", kind: startNode, pos: d.pos})
	d.add(&node{name: "end", unique: "end", kind: endNode, pos: d.pos})
	for _, opt := range opts {
		if opt != nil {
			opt(d)
		}
	}
	d.checkIdentity(reflect.TypeFor[C](), pos)
	return &Builder[C]{d: d}
}

// Start is the condition that holds the first token of a case. Its name is "start".
func (b *Builder[C]) Start() *ConditionRef { return &ConditionRef{b.draft().nodes[0]} }

// End is the condition whose first token completes the case. Its name is "end".
func (b *Builder[C]) End() *ConditionRef { return &ConditionRef{b.draft().nodes[1]} }

// Condition declares a condition. One with several flows out is a deferred choice: the first task that starts takes the
// token.
func (b *Builder[C]) Condition(name string) *ConditionRef {
	return &ConditionRef{b.draft().declare(name, conditionNode, caller())}
}

// Result sets the source of a completed case's output: builder.CaseInput(b), builder.Output(task), or
// builder.FromCase(f). Without it a case has no output. The function [Result] does the same and returns a typed
// handle.
func (b *Builder[C]) Result(s AnySource) {
	b.draft().setResult(s, caller())
}

// OnInitialized adds a function that is called when a case was created, before its first task is enabled. As with
// the other hooks of a case, several functions are called in the order in which they were added.
func (b *Builder[C]) OnInitialized(f func(context.Context, *activities.Case) error) {
	d := b.draft()
	d.hook(&d.hooks.OnInitialized, "OnInitialized", f, caller())
}

// OnStarted adds a function that is called when the first work of a case has started.
func (b *Builder[C]) OnStarted(f func(context.Context, *activities.Case) error) {
	d := b.draft()
	d.hook(&d.hooks.OnStarted, "OnStarted", f, caller())
}

// OnCompleted adds a function that is called when a case has completed.
func (b *Builder[C]) OnCompleted(f func(context.Context, *activities.Case) error) {
	d := b.draft()
	d.hook(&d.hooks.OnCompleted, "OnCompleted", f, caller())
}

// OnFailed adds a function that is called when a case has failed.
func (b *Builder[C]) OnFailed(f func(context.Context, *activities.Case) error) {
	d := b.draft()
	d.hook(&d.hooks.OnFailed, "OnFailed", f, caller())
}

// OnCanceled adds a function that is called when a case was canceled.
func (b *Builder[C]) OnCanceled(f func(context.Context, *activities.Case) error) {
	d := b.draft()
	d.hook(&d.hooks.OnCanceled, "OnCanceled", f, caller())
}

func (d *draft) hook(
	to *func(context.Context, *activities.Case) error, name string,
	f func(context.Context, *activities.Case) error, pos net.Pos,
) {
	d.frozen(name, pos)
	switch {
	case f == nil:
		d.problem(NilFunction, d.name, pos, "%s of workflow %q is given no function; leave the call out", name, d.name)
	case *to == nil:
		*to = f
	default:
		*to = activities.All(*to, f)
	}
}

// caller is where the function that calls it was called from: the user's line.
func caller() net.Pos {
	_, file, line, _ := runtime.Caller(2)
	return net.Pos{File: file, Line: line}
}

func checkType[T any](d *draft, what, subject string, pos net.Pos) {
	if err := domain.CheckType[T](); err != nil {
		d.problem(BadType, subject, pos, "%s cannot be a payload: %s", what, oneLine(err))
	}
}
