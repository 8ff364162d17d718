package activities

import (
	"context"
	"time"

	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/workitem"
)

// Retry replaces a failed item with a new one, due after the policy's backoff, until the policy gives up. The number of
// attempts includes the first: retry.Exponential(5, time.Second) makes five attempts, with waits of 1 s, 2 s, 4 s and 8
// s. A failure that is not retryable (see workitem.Fatal) is not retried. An invalid policy, or one of no attempts, is
// a problem of Build; see [Refused].
//
// The policy's filters are called in the worker that ran the item, with the Go error, the typed input and the name of
// the task; their result is stored with the failure. This requires that Build can see the policy: Retry must be passed
// to OnWorkItemStateChanged directly, or through All. In all other cases the filters see the stored *workitem.Failure:
// if a failure has no Go error, such as one that a person reports, and if your own activity calls Retry. Use
// retry.OnCode for these. A filter that panics there is an error of the activity, so the command is rolled back.
//
//	OnWorkItemStateChanged: activities.Retry(retry.Exponential(5, time.Second)),
func Retry(p retry.Policy) func(context.Context, *Change) error { return again(p, (*Change).Again) }

// Resume is like [Retry], but the new item continues where the failed one stopped: it takes over the steps that the
// failed run had completed (see package step). For example, a customer who was charged by the first attempt, which
// then failed to save the order, is not charged again by the second:
//
//	OnWorkItemStateChanged: activities.Resume(retry.Exponential(5, time.Second)),
//
// Steps that failed, or were still waiting, are executed again.
func Resume(p retry.Policy) func(context.Context, *Change) error { return again(p, (*Change).Resume) }

func again(
	p retry.Policy, anew func(*Change, context.Context, time.Duration) (*workitem.Item, error),
) func(context.Context, *Change) error {
	r := &ready{refusal: checkRetry(p), retries: []retry.Policy{p}}
	r.answer = func(ctx context.Context, c *Change) error { return c.again(ctx, p, anew) }
	return r.made()
}

// again replaces a failed item if the policy says so.
func (c *Change) again(
	ctx context.Context, p retry.Policy, anew func(*Change, context.Context, time.Duration) (*workitem.Item, error),
) error {
	if c.Item == nil || c.To != workitem.Failed {
		return nil
	}
	c.decided = true
	if c.Item.Failure != nil && !c.Item.Failure.Retryable {
		return nil
	}
	own, err := RetryOfItem(c.Item)
	if err != nil {
		return err
	}
	wait, again, err := next(p, own, c)
	if again {
		_, err = anew(c, ctx, wait)
	}
	return err
}

// next asks a policy, with the changes of a repair, about a failed item. Its filters have been asked before if the failure says
// so; otherwise they see the failure itself. The engine checks changes with the policy that the task is known to have; if they do
// not fit another one, which only a callback knows, that one counts anew. A filter that panics here, in the transaction, is an
// error like a panic of any other callback.
func next(p retry.Policy, own *ItemRetry, c *Change) (wait time.Duration, again bool, err error) {
	f := failureOf(c, own)
	if changed := own.Of(p); changed.Validate() == nil {
		p = changed
	}
	if c.Item.Failure != nil && c.Item.Failure.Filtered {
		p.Filters = nil
	}
	if accepted, broken := p.Judge(f); broken != nil {
		return 0, false, &filterPanic{broken}
	} else if !accepted {
		return 0, false, nil
	}
	p.Filters = nil
	wait, again = p.Next(f)
	return wait, again, nil
}

// filterPanic is the error of an activity one of whose filters panicked. It has the code and the details of a panic.
type filterPanic struct{ *retry.FilterError }

// Unwrap returns the PanicError, which wraps the value if that is an error.
func (e *filterPanic) Unwrap() error { return e.Panic }

// failureOf describes the failure of an item to a policy. What was before the repair that gave the item its policy does not
// count.
func failureOf(c *Change, own *ItemRetry) retry.Failure {
	first := c.Item
	for _, before := range predecessors(c.Items(), c.Item) {
		if own != nil && own.Attempt(before) < 1 {
			break
		}
		first = before
	}
	f := retry.Failure{
		Attempt: own.Attempt(c.Item), Elapsed: c.Now().Sub(first.Created), Name: c.function.NameOr(c.Task()),
		Input: c.function.Typed(c.Item.Input),
	}
	if c.Item.Failure != nil {
		f.Err = c.Item.Failure
	}
	return f
}

// Timeout fails an item that has not ended this long after it became due, with the code "timeout". The task's activities
// and policy handle it like any failure: Retry creates a new item, and without a retry the case fails. An item that was
// never started is started first, without the Start callback of its task, since no work starts. The time must be
// positive. To drop items without a failure use [CancelAfter].
//
// If a callback returns an error, the timeout is rolled back and retried, ten times in all within some minutes. After
// that the item fails without calling its callbacks (Fail and the hooks of the item, and OnWorkItemStateChanged if that
// returned the error). The details of the failure contain the last error, and an incident is recorded.
func Timeout(after time.Duration) Timer { return endItem("timeout", after, workitem.Fail) }

// CancelAfter cancels an item that has not ended this long after it became due. Under the default policy, canceling the
// last item of a task completes the task without an output: Build then requires that readers of the output use an
// optional value, and that a split has a flow for this case. The time must be positive. Callbacks that return an error
// delay the cancellation as they delay a Timeout.
func CancelAfter(after time.Duration) Timer { return endItem("cancel", after, workitem.Cancel) }

func endItem(name string, after time.Duration, a workitem.Action) Timer {
	t := Timer{Name: name, After: after, Does: a}
	reason := t.Late()
	t.Item = func(_ context.Context, it *Item) error { return it.fx.End(it.Item, a, reason) }
	return t
}

// TimeoutTask fails every item that has not ended this long after the task was enabled, as Timeout does.
func TimeoutTask(after time.Duration) Timer { return endItems("task-timeout", after, workitem.Fail) }

// CancelTaskAfter cancels every item that has not ended this long after the task was enabled, as CancelAfter does.
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

// Escalate calls do, in a transaction, if an item has not ended this long after it became due: to schedule an alert, to
// update a record, or to request an action. Give each escalation of a task its own name. To create another item for
// another person, use a Timer of the task, which gets an Activation.
func Escalate(name string, after time.Duration, do func(context.Context, *Item) error) Timer {
	return Timer{Name: name, After: after, Item: do}
}

// All combines activities: they are called in order until the first error. Nil activities are skipped. If several
// of them are retries, at most one may accept a failure, since each creates an item; give them disjoint filters.
// With several retries, the filters see the stored *workitem.Failure and not the Go error, so use retry.OnCode.
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
