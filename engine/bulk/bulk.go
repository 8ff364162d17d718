// Package bulk repairs many cases or work items with one durable function, a case of its own workflow that sends one
// command for each target. Its progress is recorded for each target, so it resumes after a crash, and its case
// can be watched, suspended, resumed and canceled like any other. A suspended action stops before its next target.
//
//	repairs := bulk.New(engine.Code)
//	e, err := engine.Open(ctx, store, order, repairs)
//	run, err := repairs.Start(ctx, e, bulk.Action{Kind: workflow.KindRetry, Reason: "the supplier is back"}, targets)
//	result, err := run.Result(ctx, e)
package bulk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine/internal/host"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/step"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// Name is the name of the workflow, and of the queue of its jobs.
const Name = "tasq-bulk"

// MaxTargets is the maximum number of targets of one action. They are in the input of its case, which may have domain.MaxSize bytes: a
// payload or a reason leaves less room. Start several actions for more targets.
const MaxTargets = 25_000

// maxRefused is the maximum number of refusals in a result, and maxText that of bytes of their errors.
const (
	maxRefused = 1000
	maxText    = 128 << 10
)

// Action is the command that is sent for each target.
type Action struct {
	// Kind is resume, suspend, cancel, restart, remove or redrive, for cases; retry, skip, give-up, or item with Do, for work items;
	// retry-incident or give-up-incident.
	Kind     workflow.Kind   `json:"kind"`
	Do       workitem.Action `json:"action,omitzero"`    // of the kind item: reset, fail or cancel
	Payload  json.RawMessage `json:"payload,omitempty"`  // a new input for a retry or resume, the output for a skip, the failure or reason of a fail or cancel of items; nil if none
	Reason   string          `json:"reason,omitempty"`   // recorded in the history; the payload of a fail or cancel takes precedence there
	Actor    string          `json:"actor,omitempty"`    // who sends the action
	Retry    *retry.Changes  `json:"retry,omitempty"`    // of a retry or resume: changes of the retry policy; nil for none
	FromStep string          `json:"fromStep,omitempty"` // of a restart: the first step that is executed again; "" repeats no completed step
	Force    bool            `json:"force,omitempty"`    // of a restart: also cases that were restarted or forked already, which are refused otherwise
}

// Input is the input of a case of the workflow.
type Input struct {
	Action
	Targets []string `json:"targets"` // ids of cases, or of work items
}

// Result is the result of an action.
type Result struct {
	Done    int       `json:"done"`              // targets whose command succeeded
	Refused []Refusal `json:"refused,omitempty"` // the others, or the first of them, at most 1000: [InfoOf] has all
	More    int       `json:"more,omitempty"`    // refused targets that are not in Refused
	text    int       // bytes of errors so far
}

// refuse adds a refusal. The result of a function may have domain.MaxSize bytes, which the texts of 25,000 would exceed.
func (r *Result) refuse(one Refusal) {
	if r.text += len(one.Error); r.text > maxText || len(r.Refused) == maxRefused {
		r.More++
		return
	}
	r.Refused = append(r.Refused, one)
}

// Refusal is a target whose command failed.
type Refusal struct {
	Target string `json:"target"`
	Code   string `json:"code"` // as engine.Code returns it
	Error  string `json:"error"`
}

// Bulk is the workflow of bulk actions. An engine that is opened with it executes them, if it has workers for the queue [Name].
type Bulk struct {
	f    *builder.FuncRef[Input, Result]
	code func(error) string
	doer atomic.Pointer[workflow.Doer] // set by Serve; nil for the engine that runs an action
}

// New returns the workflow. code returns the code of an error: engine.Code.
func New(code func(error) string) *Bulk {
	b := &Bulk{code: code}
	b.f = builder.MustFunc(Name, b.run, builder.OnQueue(Name))
	return b
}

// Untyped returns the definition, for engine.Open; nil for a nil Bulk, which Open refuses.
func (b *Bulk) Untyped() *workflow.Definition {
	if b == nil {
		return nil
	}
	return b.f.Untyped()
}

// Serve sets what executes the commands of actions, instead of the engine that runs them. A program need not call it. Only the first call
// counts.
func (b *Bulk) Serve(e workflow.Doer) {
	if e != nil {
		b.doer.CompareAndSwap(nil, &e)
	}
}

// doerOf returns what executes the commands of an action.
func (b *Bulk) doerOf(ctx context.Context) (workflow.Doer, error) {
	if given := b.doer.Load(); given != nil {
		return *given, nil
	}
	if e := host.Of(ctx); e != nil {
		return e, nil
	}
	return nil, errors.New("no engine runs this bulk action, so its commands cannot be executed: open an engine with it, or call Bulk.Serve")
}

// Start starts an action. With [workflow.Key], a repeated call does not start it again.
func (b *Bulk) Start(
	ctx context.Context, e workflow.Doer, a Action, targets []string, opts ...workflow.Option,
) (builder.Run[Result], error) {
	if b == nil {
		return builder.Run[Result]{}, errors.New("start a bulk action: the Bulk is nil; make it by bulk.New, and open the engine with it")
	}
	if err := check(a, targets); err != nil {
		return builder.Run[Result]{}, err
	}
	return b.f.Run(ctx, e, Input{Action: a, Targets: targets}, opts...)
}

func check(a Action, targets []string) error {
	switch {
	case len(targets) == 0:
		return errors.New("no targets to repair: give at least one")
	case len(targets) > MaxTargets:
		return fmt.Errorf("%d targets are too many for one action: give at most %d, and the others to further actions", len(targets), MaxTargets)
	}
	if a.ends() {
		if _, err := builder.DecodeFailure(a.Payload); err != nil {
			return fmt.Errorf("the reason of %s: %w", a.Do, err)
		}
	}
	for _, target := range targets {
		if _, err := a.Command(target, ""); err != nil {
			return err
		}
	}
	return nil
}

// ends reports whether the action fails or cancels work items, so that its payload is the reason.
func (a *Action) ends() bool {
	return a.Kind == workflow.KindAct && (a.Do == workitem.Fail || a.Do == workitem.Cancel)
}

// Command returns the command for one target, with an idempotency key; "" for none.
func (a *Action) Command(target, key string) (workflow.Command, error) {
	id, err := workitem.ParseID(target)
	if err != nil {
		return workflow.Command{}, fmt.Errorf("target %q: %w", target, err)
	}
	c := workflow.Command{Kind: a.Kind, Action: a.Do, Actor: a.Actor, Key: key, Payload: a.Payload, Retry: a.Retry, FromStep: a.FromStep,
		UnlessRestarted: a.Kind == workflow.KindRestart && !a.Force}
	switch {
	case OfCases(a.Kind):
		c.Case = workitem.CaseID(id)
	case a.Kind == workflow.KindRetryIncident, a.Kind == workflow.KindGiveUpIncident:
		c.Job = workitem.JobID(id)
	case a.Kind == workflow.KindAct && !slices.Contains(ItemActions, a.Do):
		return c, fmt.Errorf("there is no bulk action %q on work items; there are %s: %w", a.Do, words(ItemActions, ", "), workflow.ErrBadCommand)
	default:
		c.Item = id
	}
	if a.Reason != "" && (!a.ends() || a.Payload == nil) {
		c = workflow.With(c, workflow.Because(a.Reason))
	}
	return c, c.Check()
}

// keyOf returns the idempotency key of the command that an action sends for a target.
func keyOf(action workitem.CaseID, target string) string {
	return fmt.Sprintf("%s %s %s", Name, action, target)
}

// outcome is the recorded result of the step for a target.
type outcome struct {
	Code  string `json:"code,omitempty"` // "" if the command succeeded
	Error string `json:"error,omitempty"`
}

// again are the codes of errors that do not concern the target: the store failed, or the engine closes.
var again = []string{"commit-failed", "lost", "closed", "undone", "unavailable"}

// run sends the commands one after the other, each as a step, so that a restarted action continues after the last
// recorded target.
func (b *Bulk) run(ctx context.Context, in Input) (Result, error) {
	var result Result
	doer, err := b.doerOf(ctx)
	if err != nil {
		return result, err
	}
	resumed, err := in.resumed(ctx)
	if err != nil {
		return result, err
	}
	w, _ := builder.WorkFrom(ctx)
	for _, target := range in.Targets {
		if err := step.Yield(ctx); err != nil { // the action is paused, or the engine closes
			return result, err
		}
		o, err := step.Do(ctx, target, func(ctx context.Context) (outcome, error) {
			mayBeDone := resumed
			resumed = false // those after the first one without an answer were not begun
			c, err := in.Command(target, keyOf(w.Case.ID, target))
			if err == nil {
				_, err = doer.Do(ctx, c)
			}
			if err == nil {
				return outcome{}, nil
			}
			o := outcome{b.code(err), err.Error()}
			switch {
			case slices.Contains(again, o.Code), ctx.Err() != nil:
				resumed = in.Kind == workflow.KindRemove
				return outcome{}, err
			case mayBeDone && errors.Is(err, store.ErrNotFound): // the command succeeded before the interruption
				return outcome{}, nil
			}
			return o, nil
		})
		switch {
		case err != nil:
			return result, err
		case o.Code == "":
			result.Done++
		default:
			result.refuse(Refusal{target, o.Code, o.Error})
		}
	}
	return result, nil
}

// begun is the name of the step that a removal records before its first command.
const begun = "begun"

// resumed reports whether an action may have executed a command whose outcome it has not recorded, and that is not recognized by its
// idempotency key: a removed case leaves no key.
func (a *Action) resumed(ctx context.Context) (bool, error) {
	if a.Kind != workflow.KindRemove {
		return false, nil
	}
	resumed := true
	_, err := step.Do(ctx, begun, func(context.Context) (outcome, error) {
		resumed = false
		return outcome{}, nil
	})
	return resumed, err
}

// Letters returns the live dead letters as targets of a redrive: those of a workflow, or of all for "", whose failure
// has a code, or any for "". The filter can restrict them further.
func Letters(ctx context.Context, v store.Viewer, f store.CaseFilter, workflowName, code string) ([]string, error) {
	f.RootOnly, f.States, f.Labels = true, []state.CaseState{state.CaseStarted}, workflow.LetterLabels(workflowName, code)
	var targets []string
	for c, err := range store.AllCases(ctx, v, f) {
		if err != nil {
			return nil, err
		}
		targets = append(targets, c.ID.String())
	}
	return targets, nil
}

// Open returns the work items of the matching incidents, as targets of a retry, a skip or a give-up.
func Open(ctx context.Context, v store.Viewer, f store.IncidentFilter) ([]string, error) {
	var targets []string
	for i, err := range store.Incidents(ctx, v, f) {
		if err != nil {
			return nil, err
		}
		if !i.Item.IsZero() {
			targets = append(targets, i.Item.String())
		}
	}
	return targets, nil
}

// OpenJobs returns the matching incidents of timers, scheduled functions, completion handlers and child cases by their own ids, as
// targets of an action of the kind [workflow.KindRetryIncident]; those of child cases also of [workflow.KindGiveUpIncident]. Other incidents are about a work item, which is retried itself.
func OpenJobs(ctx context.Context, v store.Viewer, f store.IncidentFilter) ([]string, error) {
	var targets []string
	for i, err := range store.Incidents(ctx, v, f) {
		if err != nil {
			return nil, err
		}
		if i.Again() {
			targets = append(targets, i.ID.String())
		}
	}
	return targets, nil
}

// Of returns the handle of an action that was started earlier.
func (b *Bulk) Of(id workitem.CaseID) builder.Run[Result] { return b.f.Of(id) }
