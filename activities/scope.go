package activities

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/tasq-dev/tasq/domain"
	"github.com/tasq-dev/tasq/workitem"
)

// ErrInactive says that a task or a case has ended, so that it accepts no further commands, items or jobs.
var ErrInactive = errors.New("has ended")

// ErrNoOutput says that the output of a task was read that has none, because the task was skipped or completed without
// one. If computing an input, a condition of a flow or the result of a case returns an error that wraps it, the case
// fails with the code "no-output" (see workitem.CodeNoOutput).
var ErrNoOutput = errors.New("has given no output")

// CaseInfo says what a case is. Nothing in it may be changed.
type CaseInfo struct {
	ID         workitem.CaseID
	Root       workitem.CaseID
	Parent     workitem.CaseID // zero for a root case
	ParentTask string          // "" for a root case
	Workflow   string
	Version    string // of the workflow; "" unless its author gave one
	// Fingerprint is that of the definition that the case runs on.
	Fingerprint string
	Input       json.RawMessage // nil if it was started with none
	Options     json.RawMessage // what its caller asked beyond the input, see [Options]; nil if nothing
	Predecessor workitem.CaseID // the run that it restarts; zero if none
	Key         string          // its business key; "" if it has none
	Labels      map[string]string
	State       workitem.State  // where it stands, in the words of a work item: initialized until its first work starts
	Output      json.RawMessage // nil before completion
	Failure     *workitem.Failure
	// Outputs gives the output of the item of a task that completed last; nil if none has, or if the task has since
	// completed without an output. An item that completed with nothing has the output null.
	Outputs func(task string) json.RawMessage
	// Children lists the completed child cases of a composite task, of its latest activation, in the order of their
	// creation. It is known in the transaction only: nil elsewhere.
	Children func(task string) []ChildOutput
}

// ChildOutput is the result of a completed child case.
type ChildOutput struct {
	Case     workitem.CaseID
	Workflow string
	Output   json.RawMessage // nil if its workflow has no result
}

// scope is what all callbacks share.
type scope struct {
	fx   Effects
	at   Place
	now  time.Time
	info CaseInfo
}

// Case describes the case.
func (s *scope) Case() CaseInfo { return s.info }

// Now is the time of the transaction: every row written in it carries this time.
func (s *scope) Now() time.Time { return s.now }

// Actor returns who issued the command that the callback is part of, as set by workflow.By. All callbacks of a command
// see the same actor: those of the action, the hooks that react to it, and those of everything that follows in the
// transaction. It is "" if the caller did not set it, and for commands of the engine itself: claims and results of
// jobs, and timers. A callback that rejects commands without an actor must check Cause, and accept the commands that no
// caller issued.
//
//	Complete: func(_ context.Context, it *activities.Item, v Verdict) error {
//		if it.Cause() == activities.CauseCaller && it.By != "" && it.By != it.Actor() {
//			return fmt.Errorf("%s was started by %s, and not by %s", it.Label(), it.By, it.Actor())
//		}
//		return nil
//	},
func (s *scope) Actor() string { return s.fx.Actor() }

// Cause returns the origin of the command that the callback is part of: a caller, a timer, or a job.
func (s *scope) Cause() Cause { return s.fx.Cause() }

// DB returns the connection for the user's own SQL in the transaction, which is committed with the change, or
// not at all.
func (s *scope) DB() domain.DB { return s.fx.DB() }

// Schedule creates a job: a worker runs a function of the workflow after the transaction has committed. The job belongs
// to the item, activation or case that the callback was called for, and is canceled with it; in a callback that reports
// an end it belongs to the case. A negative time is an error.
func (s *scope) Schedule(n NewJob) (workitem.JobID, error) { return s.fx.OpenJob(s.at, n) }

// Case is a case, as passed to its hooks.
type Case struct{ scope }

// NewCaseScope makes what a hook of a case is given. It is for the kernel.
func NewCaseScope(fx Effects, at Place, now time.Time, info CaseInfo) *Case {
	return &Case{scope{fx: fx, at: at, now: now, info: info}}
}

// Activation is one enabling of a task, as passed to the hooks of the task.
type Activation struct {
	scope
	tally workitem.Tally
}

// NewActivation returns the argument of a task's hook. It is for the kernel.
func NewActivation(fx Effects, at Place, now time.Time, info CaseInfo, tally workitem.Tally) *Activation {
	return &Activation{scope{fx: fx, at: at, now: now, info: info}, tally}
}

// Task is the name of the task.
func (a *Activation) Task() string { return a.at.Task }

// Generation returns how often the task was enabled, including this activation.
func (a *Activation) Generation() int { return a.at.Generation }

// Tally returns the numbers of items of the activation, or of child cases of a composite task, by state.
func (a *Activation) Tally() workitem.Tally { return a.tally }

// Items lists the work items of the activation, oldest first. They must not be changed.
func (a *Activation) Items() []*workitem.Item { return a.fx.Items(a.at.Case, a.at.Task) }

// NewItem creates a work item in the activation, at once. The error wraps [ErrInactive] if the activation has ended.
func (a *Activation) NewItem(ctx context.Context, n NewItem) (*workitem.Item, error) {
	return a.fx.OpenItem(ctx, a.at, n)
}

// NewCase starts a child case of a composite task, at once. The error wraps [ErrInactive] if the activation has ended.
func (a *Activation) NewCase(ctx context.Context, n NewCase) (workitem.CaseID, error) {
	return a.fx.OpenCase(ctx, a.at, n)
}

// Ask requests an action on one of the activation's items, which is executed after the callback has returned. If the
// state of the item forbids the action by then, nothing happens.
func (a *Activation) Ask(item *workitem.Item, action workitem.Action, payload any) error {
	return ask(a.fx, item, action, payload)
}

// Change is the change of state of an item or a child case of an activation.
type Change struct {
	Activation
	Item     *workitem.Item  // in its new state; nil for a child case
	Child    workitem.CaseID // zero for a work item
	Workflow string          // of the child case
	From, To workitem.State  // a child case is initialized until its first work starts

	function Function
	decided  bool // a ready-made activity has decided whether the failed item is retried
}

// NewChange returns the argument of OnWorkItemStateChanged for an activation and the function of its task; the caller
// sets the other fields. It is for the kernel.
func NewChange(a *Activation, f Function) *Change { return &Change{Activation: *a, function: f} }

// Again creates a new item instead of the failed one, with attempt + 1, the same input and a link to its
// predecessor, due after the given time. It is the mechanism of a retry; [Retry] calls it.
func (c *Change) Again(ctx context.Context, after time.Duration) (*workitem.Item, error) {
	return c.replace(ctx, after, false)
}

// Resume is like [Change.Again], and the new item takes over the steps that the failed one had completed.
func (c *Change) Resume(ctx context.Context, after time.Duration) (*workitem.Item, error) {
	return c.replace(ctx, after, true)
}

func (c *Change) replace(ctx context.Context, after time.Duration, keep bool) (*workitem.Item, error) {
	if c.Item == nil {
		return nil, errors.New("only a work item can be retried, and this is a child case")
	}
	return c.NewItem(ctx, NewItem{
		Input: c.Item.Input, After: after, Predecessor: c.Item, Queue: c.Item.Queue, Priority: c.Item.Priority,
		KeepSteps: keep,
	})
}

// Item is a work item, as passed to actions, hooks of items and timers.
type Item struct {
	scope
	*workitem.Item
}

// NewItemScope returns the argument of an action, a hook of an item or a timer. It is for the kernel.
func NewItemScope(fx Effects, at Place, now time.Time, info CaseInfo, it *workitem.Item) *Item {
	return &Item{scope{fx: fx, at: at, now: now, info: info}, it}
}

// Case describes the case that the item belongs to.
func (it *Item) Case() CaseInfo { return it.info }

// Predecessors lists the failed attempts before this one, the latest first.
func (it *Item) Predecessors() []*workitem.Item {
	return predecessors(it.fx.Items(it.at.Case, it.at.Task), it.Item)
}

func predecessors(items []*workitem.Item, of *workitem.Item) []*workitem.Item {
	var chain []*workitem.Item
	want := of.Predecessor
	for i := len(items) - 1; i >= 0 && !want.IsZero(); i-- {
		if items[i].ID == want {
			chain, want = append(chain, items[i]), items[i].Predecessor
		}
	}
	return chain
}

// Start starts the item after the callback has returned.
func (it *Item) Start() error { return ask(it.fx, it.Item, workitem.Start, nil) }

// Complete completes the item with this output after the callback has returned.
func (it *Item) Complete(output any) error { return ask(it.fx, it.Item, workitem.Complete, output) }

// Fail fails the item after the callback has returned.
func (it *Item) Fail(f *workitem.Failure) error { return ask(it.fx, it.Item, workitem.Fail, f) }

// Cancel cancels the item after the callback has returned. The reason may be nil.
func (it *Item) Cancel(reason *workitem.Failure) error {
	return ask(it.fx, it.Item, workitem.Cancel, reason)
}

func ask(fx Effects, it *workitem.Item, a workitem.Action, payload any) error {
	var data json.RawMessage
	switch p := payload.(type) {
	case nil:
	case json.RawMessage:
		data = p
	case *workitem.Failure:
		if p == nil {
			break
		}
		var err error
		if data, err = json.Marshal(p); err != nil {
			return err
		}
	default:
		var err error
		if data, err = domain.Encode(p); err != nil {
			return err
		}
	}
	return fx.Ask(it, a, data)
}
