package activities

import (
	"context"
	"time"

	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/workitem"
)

// Retry answers a failed item with a fresh one, due after the policy's backoff, until the policy gives up. Attempts are
// counted in all: retry.Exponential(5, time.Second) tries five times, and waits 1 s, 2 s, 4 s and 8 s in between. An
// item whose failure is not retryable (see [workitem.Fatal]) is not tried again. A policy that is invalid, or of no
// attempts, is a problem of Build; see [Refused].
//
// The policy's filters are asked in the worker that ran the item, with the error itself, the typed input and the name
// of the task; the failure is stored with their answer. That takes a policy which Build can see: one that is given to
// OnWorkItemStateChanged directly, or through [All]. A failure without a Go error, such as one that a person reports,
// and the failures of a policy that an activity of your own calls, are shown to the filters as the *workitem.Failure
// that is stored: use [retry.OnCode] for these.
//
//	OnWorkItemStateChanged: activities.Retry(retry.Exponential(5, time.Second)),
func Retry(p retry.Policy) func(context.Context, *Change) error { return again(p, (*Change).Again) }

// Resume is like [Retry], and the fresh item goes on where the failed one stopped: the steps that its run had finished
// (see package step) are taken over, so that what was done is not done again. A customer who was charged by the first
// attempt is not charged by the second, which failed only to save the order:
//
//	OnWorkItemStateChanged: activities.Resume(retry.Exponential(5, time.Second)),
//
// Steps that failed, or still waited, are done anew.
func Resume(p retry.Policy) func(context.Context, *Change) error { return again(p, (*Change).Resume) }

func again(
	p retry.Policy, anew func(*Change, context.Context, time.Duration) (*workitem.Item, error),
) func(context.Context, *Change) error {
	r := &ready{refusal: checkRetry(p), retries: []retry.Policy{p}}
	r.answer = func(ctx context.Context, c *Change) error {
		if c.Item == nil || c.To != workitem.Failed || c.Item.Failure != nil && !c.Item.Failure.Retryable {
			return nil
		}
		wait, again := next(p, c)
		if !again {
			return nil
		}
		_, err := anew(c, ctx, wait)
		return err
	}
	return r.made()
}

// next asks a policy about a failed item. Its filters have been asked before if the failure says so; otherwise they see
// the failure itself.
func next(p retry.Policy, c *Change) (wait time.Duration, again bool) {
	f := failureOf(c)
	if c.Item.Failure != nil && c.Item.Failure.Filtered {
		p.Filters = nil
	}
	return p.Next(f)
}

// failureOf describes the failure of an item to a policy.
func failureOf(c *Change) retry.Failure {
	first := c.Item
	if chain := predecessors(c.Items(), c.Item); len(chain) > 0 {
		first = chain[len(chain)-1]
	}
	f := retry.Failure{
		Attempt: c.Item.Attempt, Elapsed: c.Now().Sub(first.Created), Name: c.function.NameOr(c.Task()),
		Input: c.function.Typed(c.Item.Input),
	}
	if c.Item.Failure != nil {
		f.Err = c.Item.Failure
	}
	return f
}

// Timeout fails an item, with the code "timeout", that is still live so long after it became due: the task's activities
// and its policy answer it as they answer any failure, so that [Retry] makes a fresh item, and without an answer the case
// fails. An item that was never started is started first, without the Start callback of its task, since no work begins.
// The time must be above zero. For items that are to be dropped without a failure see [CancelAfter].
//
// A callback that returns an error undoes the timeout, which is then tried again, ten times in all within some minutes.
// After that the item fails without the callbacks of its own (Fail, and its hooks; OnWorkItemStateChanged too, if that is
// what refuses): the failure has the last error in its details, and the journal an incident.
func Timeout(after time.Duration) Timer { return endItem("timeout", after, workitem.Fail) }

// CancelAfter cancels an item that is still live so long after it became due. Canceling the last item of a task completes
// the task under the default policy, without an output: what reads that output must take an optional value, and the
// split of the task needs a flow for it, or Build refuses the workflow. The time must be above zero. Callbacks that
// return an error delay it as they delay a [Timeout].
func CancelAfter(after time.Duration) Timer { return endItem("cancel", after, workitem.Cancel) }

func endItem(name string, after time.Duration, a workitem.Action) Timer {
	t := Timer{Name: name, After: after, Does: a}
	reason := t.Late()
	t.Item = func(_ context.Context, it *Item) error { return it.fx.End(it.Item, a, reason) }
	return t
}

// TimeoutTask fails every item that is still live so long after the task was enabled, as [Timeout] does.
func TimeoutTask(after time.Duration) Timer { return endItems("task-timeout", after, workitem.Fail) }

// CancelTaskAfter cancels every item that is still live so long after the task was enabled, as [CancelAfter] does.
func CancelTaskAfter(after time.Duration) Timer {
	return endItems("task-cancel", after, workitem.Cancel)
}

func endItems(name string, after time.Duration, a workitem.Action) Timer {
	t := Timer{Name: name, After: after, Does: a}
	t.Task = func(_ context.Context, act *Activation) error {
		for _, it := range act.Items() {
			if err := act.fx.End(it, a, t.Late()); err != nil {
				return err
			}
		}
		return nil
	}
	return t
}

// Escalate calls do, in a transaction, when an item is still live so long after it became due: to schedule an alarm, to
// note it in a record, or to ask for an action. Give each escalation of a task its own name. To make another item for
// another person, use a [Timer] of the task, whose [Activation] can.
func Escalate(name string, after time.Duration, do func(context.Context, *Item) error) Timer {
	return Timer{Name: name, After: after, Item: do}
}

// All combines answers: they run in order, and the first error ends them. Nil ones are left out. Several
// retries in it need filters by which no two accept the same failure: each makes an item of its own. One failure is
// stored, without the answers of all of them, so their filters see the *workitem.Failure: use [retry.OnCode].
func All[S any](answers ...func(context.Context, S) error) func(context.Context, S) error {
	all := func(ctx context.Context, s S) error {
		for _, answer := range answers {
			if answer == nil {
				continue
			}
			if err := answer(ctx, s); err != nil {
				return err
			}
		}
		return nil
	}
	if r := combine(answers); r != nil {
		r.answer = any(all).(func(context.Context, *Change) error) // only an S that is a *Change has ready-made ones
		return any(r.made()).(func(context.Context, S) error)
	}
	return all
}
