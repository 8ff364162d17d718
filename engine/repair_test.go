package engine_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/engine/why"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/step"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// shipping is a workflow whose function charges in a step, and then asks a supplier who may be down.
type shipping struct {
	*builder.Workflow[string]
	order   *builder.TaskRef[string, string]
	down    atomic.Bool
	charged atomic.Int32
}

func newShipping(t testing.TB, policy retry.Policy) *shipping {
	t.Helper()
	s := new(shipping)
	s.down.Store(true)
	b := builder.New[string]("shipping")
	s.order = builder.Task(b, "order", builder.Work[string, string]{
		Input: builder.CaseInput(b), OnWorkItemStateChanged: retrying(policy),
		Run: func(ctx context.Context, item string) (string, error) {
			_, err := step.Do(ctx, "charge", func(context.Context) (int32, error) { return s.charged.Add(1), nil })
			if err == nil && s.down.Load() && item != "stock" {
				err = &workitem.Failure{Code: "supplier-down", Retryable: true}
			}
			return "sent " + item, err
		},
	})
	send := builder.Task(b, "send", builder.Work[string, string]{Input: builder.Output(s.order)})
	b.Path(b.Start(), s.order, send, b.End())
	var err error
	s.Workflow, err = b.Build()
	require.NoError(t, err)
	return s
}

func retrying(p retry.Policy) func(context.Context, *activities.Change) error {
	if p.Attempts == 0 {
		return nil
	}
	return activities.Resume(p)
}

// notes lists the reasons in the journal, each with who gave it.
func notes(t testing.TB, e *enginetest.Engine, root workitem.CaseID) (list []string) {
	t.Helper()
	for entry, err := range store.AllEntries(t.Context(), e, store.JournalFilter{Root: root}) {
		require.NoError(t, err)
		for _, c := range entry.Changes {
			if n, ok := c.(*state.Noted); ok && n.Code == state.NoteReason {
				list = append(list, entry.By+" "+strings.Fields(entry.Command)[1]+": "+n.Text)
			}
		}
	}
	return list
}

func caseOf(t testing.TB, e *enginetest.Engine, id workitem.CaseID) *state.Case {
	t.Helper()
	c, err := e.Case(t.Context(), id)
	require.NoError(t, err)
	return c
}

func TestAFailedCaseGoesOnWhereItFailed(t *testing.T) {
	t.Parallel()
	s := newShipping(t, retry.Constant(2, time.Minute))
	e := enginetest.New(t, s)
	id, err := s.Start(t.Context(), e, "book")
	require.NoError(t, err)
	e.Advance(time.Hour)
	require.Equal(t, state.CaseFailed, caseOf(t, e, id).State)

	resume := workflow.Resume(id, nil, workflow.By("ann"), workflow.Because("supplier is back"), workflow.Key("r1"))
	result, err := e.Do(t.Context(), resume)
	require.NoError(t, err)
	require.Equal(t, id, result.Case)
	e.Drain()
	require.Equal(t, []string{"order.1.1 failed", "order.1.2 failed", "order.1.3 failed"}, e.States(id),
		"the attempts of the policy are used up: the supplier is still down")

	s.down.Store(false)
	again, err := e.Do(t.Context(), resume)
	require.NoError(t, err)
	require.Equal(t, result, again, "the key has its answer, and nothing happens")
	e.Drain()
	require.Equal(t, state.CaseFailed, caseOf(t, e, id).State)
	require.NoError(t, enginetest.Do(t.Context(), e, workflow.Resume(id, nil)))
	e.Drain()
	require.Equal(t, []string{"order.1.1 failed", "order.1.2 failed", "order.1.3 failed", "order.1.4 completed", "send.1.1 initialized"},
		e.States(id))
	require.EqualValues(t, 1, s.charged.Load(), "the step that was done stays done")
	last := e.Item(id, "order.1.4")
	require.Equal(t, 4, last.Attempt)
	require.Equal(t, e.Item(id, "order.1.3").ID, last.Predecessor)
	enginetest.CompleteItem(e, id, "send", "on its way")
	c := caseOf(t, e, id)
	require.Equal(t, state.CaseCompleted, c.State)
	require.Nil(t, c.Failure)
	require.Equal(t, []string{"ann resume: supplier is back"}, notes(t, e, id))
	_, err = e.Do(t.Context(), workflow.Resume(id, nil))
	require.ErrorIs(t, err, workflow.ErrNotFailed)
	require.Equal(t, "not-failed", engine.Code(err))
}

func TestAFailedCaseGoesOnWithAnotherInput(t *testing.T) {
	t.Parallel()
	s := newShipping(t, retry.Policy{})
	e := enginetest.New(t, s)
	id, err := s.Start(t.Context(), e, "book")
	require.NoError(t, err)
	e.Drain()
	require.NoError(t, enginetest.Do(t.Context(), e, workflow.Resume(id, []byte(`"stock"`))))
	e.Drain()
	require.Equal(t, "sent stock", enginetest.OutputOf[string](e, id, "order.1.2"))
	require.Error(t, enginetest.Do(t.Context(), e, workflow.Resume(id, []byte(`5`))))

	other, err := s.Start(t.Context(), e, "pen")
	require.NoError(t, err)
	e.Drain()
	require.Error(t, enginetest.Do(t.Context(), e, workflow.Resume(other, []byte(`5`))), "the input is no text")
	require.Equal(t, state.CaseFailed, caseOf(t, e, other).State, "a command that is refused does nothing")
	require.NoError(t, s.order.RetryWith(t.Context(), e, e.Item(other, "order.1.1").ID, "stock"))
	e.Drain()
	require.Equal(t, "sent stock", enginetest.OutputOf[string](e, other, "order.1.2"))
}

func TestAnAttemptIsMadeNow(t *testing.T) {
	t.Parallel()
	s := newShipping(t, retry.Constant(3, time.Hour))
	e := enginetest.New(t, s)
	id, err := s.Start(t.Context(), e, "book")
	require.NoError(t, err)
	e.Drain()
	waits := e.Item(id, "order")
	require.NoError(t, s.order.Retry(t.Context(), e, waits.ID, workflow.By("ann"), workflow.Because("now")))
	e.Drain()
	require.Equal(t, []string{"order.1.1 failed", "order.1.2 failed", "order.1.3 initialized"}, e.States(id))
	require.Equal(t, []string{"ann retry: now"}, notes(t, e, id))
	s.down.Store(false)
	require.NoError(t, s.order.Retry(t.Context(), e, e.Item(id, "order").ID))
	e.Drain()
	require.Equal(t, "sent book", enginetest.OutputOf[string](e, id, "order.1.3"))
	err = s.order.Retry(t.Context(), e, waits.ID)
	require.ErrorIs(t, err, workflow.ErrNotFailed)
}

func TestWorkIsSkippedWithAnOutput(t *testing.T) {
	t.Parallel()
	s := newShipping(t, retry.Constant(2, time.Hour))
	e := enginetest.New(t, s)
	failed, err := s.Start(t.Context(), e, "book")
	require.NoError(t, err)
	e.Advance(2 * time.Hour)
	waits, err := s.Start(t.Context(), e, "pen")
	require.NoError(t, err)
	e.Drain()
	for id, label := range map[workitem.CaseID]string{failed: "order.1.2", waits: "order.1.2"} {
		require.NoError(t, s.order.Skip(t.Context(), e, e.Item(id, label).ID, "by courier", workflow.By("bob"), workflow.Because("by phone")))
		e.Drain()
		require.JSONEq(t, `"by courier"`, string(e.Item(id, "send").Input))
		require.Equal(t, []string{"bob skip: by phone"}, notes(t, e, id))
	}
	require.Equal(t, []string{"order.1.1 failed", "order.1.2 failed", "order.1.3 completed", "send.1.1 initialized"}, e.States(failed))
	require.Equal(t, []string{"order.1.1 failed", "order.1.2 completed", "send.1.1 initialized"}, e.States(waits))
}

// once is a policy that does not try again.
var once = builder.Retry(func(p *retry.Policy) { p.Attempts = 1 })

// A completion handler that was not called for the failure is called only for the end after the resume.
func TestCompletionHandlersAfterAResume(t *testing.T) {
	t.Parallel()
	var ends []string
	broken, down := true, true
	told := builder.Handler("told", func(_ context.Context, c *builder.Completion[int], _ struct{}) error {
		if broken {
			return errors.New("not now")
		}
		ends = append(ends, string(c.State))
		return nil
	})
	f := builder.MustFunc("work", func(context.Context, int) (int, error) {
		if down {
			return 0, errors.New("down")
		}
		return 7, nil
	}, builder.Handles(told), builder.Keep(time.Hour), once)
	e := enginetest.New(t, f)
	run, err := f.Run(t.Context(), e, 1, builder.OnComplete(told, struct{}{}))
	require.NoError(t, err)
	e.Drain()
	require.Equal(t, state.CaseFailed, caseOf(t, e, run.ID).State)
	broken, down = false, false
	require.NoError(t, run.Resume(t.Context(), e))
	e.Drain()
	v, err := run.Result(t.Context(), e)
	require.NoError(t, err)
	require.Equal(t, 7, v)
	require.Equal(t, []string{"completed"}, ends)
	e.Advance(time.Minute)
	require.Equal(t, []string{"completed"}, ends, "the call that had failed is not made")
}

// The time that a failed case is kept ends with its failure: a resumed one is not removed.
func TestAResumedCaseIsKept(t *testing.T) {
	t.Parallel()
	f := builder.MustFunc("work", func(ctx context.Context, n int) (int, error) {
		if w, _ := builder.WorkFrom(ctx); w.Attempt == 1 {
			return 0, errors.New("down")
		}
		return step.Await[int](ctx, "later")
	}, builder.Keep(time.Hour), once)
	e := enginetest.New(t, f)
	id, err := f.Start(t.Context(), e, 1)
	require.NoError(t, err)
	e.Advance(30 * time.Minute)
	require.NoError(t, enginetest.Do(t.Context(), e, workflow.Resume(id, nil)))
	e.Advance(3 * time.Hour)
	require.Equal(t, state.CaseStarted, caseOf(t, e, id).State)
	require.NoError(t, enginetest.Do(t.Context(), e, workflow.Send(id, "later", 5)))
	e.Drain()
	require.Equal(t, state.CaseCompleted, caseOf(t, e, id).State)
}

// A task whose policy is an incident stays open when its attempts are used up: the run says that it is stuck, and by
// what, and continues when a person has decided.
func TestAttemptsThatAreUsedUpAreAnIncident(t *testing.T) {
	t.Parallel()
	down := true
	b := builder.New[int]("order")
	ask := builder.Task(b, "ask", builder.Work[int, int]{Input: builder.CaseInput(b), Policy: workitem.Incident(workitem.All()),
		Retry: retry.Constant(3, time.Minute), Run: func(_ context.Context, n int) (int, error) {
			if down {
				return 0, workitem.Failf("supplier-down", "no answer")
			}
			return n, nil
		}})
	b.Path(b.Start(), ask, b.End())
	w, err := b.Build()
	require.NoError(t, err)
	e := enginetest.New(t, w)
	id, err := w.Start(t.Context(), e, 7)
	require.NoError(t, err)
	e.Advance(time.Hour)
	require.Equal(t, []string{"ask.1.1 failed", "ask.1.2 failed", "ask.1.3 failed"}, e.States(id))
	c := caseOf(t, e, id)
	require.Equal(t, state.CaseStarted, c.State)
	last := e.Item(id, "ask.1.3").ID
	var found []*store.Incident
	for i, err := range store.Incidents(t.Context(), e, store.IncidentFilter{Kind: state.IncidentAttempts, Code: new("supplier-down")}) {
		require.NoError(t, err)
		found = append(found, i)
	}
	require.Len(t, found, 1)
	require.Equal(t, last, found[0].Item)
	require.Equal(t, c.Created.Add(2*time.Minute), found[0].Since)
	info, err := e.RunInfo(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, workflow.RunStuck, info.State)
	require.Equal(t, last, info.Stuck)
	require.Equal(t, "supplier-down", info.Failure.Code)
	answer, err := e.Why(t.Context(), id)
	require.NoError(t, err)
	require.Len(t, answer.Waits, 1)
	require.Equal(t, why.Incident, answer.Waits[0].Kind)
	require.Contains(t, answer.Waits[0].Text, "item ask.1.3 is an incident: supplier-down: no answer; a person decides")

	e.Crash()
	down = false
	require.NoError(t, ask.Retry(t.Context(), e, last))
	e.Drain()
	require.Equal(t, state.CaseCompleted, caseOf(t, e, id).State)

	down = true
	id, err = w.Start(t.Context(), e, 8)
	require.NoError(t, err)
	e.Advance(time.Hour)
	require.NoError(t, ask.GiveUp(t.Context(), e, e.Item(id, "ask.1.3").ID, workflow.Because("too late")))
	c = caseOf(t, e, id)
	require.Equal(t, state.CaseFailed, c.State)
	require.Equal(t, "supplier-down", c.Failure.Code)
	require.Zero(t, c.Jobs.Len())
}

// A case that failed continues from a task before the one that failed: its work is done again, and the history has who
// and why.
func TestACaseGoesOnFromAnEarlierTask(t *testing.T) {
	t.Parallel()
	e := enginetest.New(t, compiled(t, "workflow line\n start s\n end e\n task A\n task B\n flow s -> A\n flow A -> B\n flow B -> e\n")...)
	id, err := enginetest.Start(t.Context(), e, "line", nil)
	require.NoError(t, err)
	enginetest.CompleteItem(e, id, "A", 1)
	e.FailItem(id, "B", &workitem.Failure{Code: "wrong"})
	require.Equal(t, state.CaseFailed, caseOf(t, e, id).State)
	move := workflow.Move(id, "B", "A", workflow.By("ann"), workflow.Because("A was wrong"), workflow.Key("m1"))
	require.NoError(t, enginetest.Do(t.Context(), e, move))
	require.NoError(t, enginetest.Do(t.Context(), e, move), "its key has its answer")
	require.Equal(t, []string{"A.1.1 completed", "B.1.1 failed", "B.1.2 canceled", "A.2.1 initialized"}, e.States(id))
	require.Equal(t, []string{"ann move: A was wrong"}, notes(t, e, id))
	e.Crash()
	enginetest.CompleteItem(e, id, "A", 2)
	enginetest.CompleteItem(e, id, "B", 3)
	require.Equal(t, state.CaseCompleted, caseOf(t, e, id).State)
	e.Check()
}

// The input of read is the output of write, which has none before it completes.
func TestAMoveThatFailsTheCaseIsRefused(t *testing.T) {
	t.Parallel()
	b := builder.New[string]("draft")
	write := builder.Task(b, "write", builder.Work[string, string]{Input: builder.CaseInput(b)})
	read := builder.Task(b, "read", builder.Work[string, string]{Input: builder.Output(write)})
	b.Path(b.Start(), write, read, b.End())
	w, err := b.Build()
	require.NoError(t, err)
	e := enginetest.New(t, w)
	id, err := w.Start(t.Context(), e, "nets")
	require.NoError(t, err)
	err = enginetest.Do(t.Context(), e, workflow.Move(id, "write", "read"))
	require.ErrorIs(t, err, workflow.ErrDeadEnd)
	require.ErrorContains(t, err, "it would fail at once (no-output: ")
	require.Equal(t, []string{"write.1.1 initialized"}, e.States(id))
	require.NoError(t, enginetest.Do(t.Context(), e, workflow.Move(id, "write", "read", workflow.Force())))
	require.Equal(t, state.CaseFailed, caseOf(t, e, id).State)
	e.Check()
}

// A case that was stranded by hand is found with the reason, and one act repairs it.
func TestAStrandedCaseIsFoundAndRepaired(t *testing.T) {
	t.Parallel()
	e := enginetest.New(t, compiled(t, repaired)...)
	stranded := func() (all []why.StrandedCase) {
		for s, err := range why.Stranded(t.Context(), e, why.Search{Here: e.Here(), Now: e.Now()}) {
			require.NoError(t, err)
			all = append(all, s)
		}
		return all
	}
	_, err := enginetest.Start(t.Context(), e, "flat", nil)
	require.NoError(t, err)
	deep, err := enginetest.Start(t.Context(), e, "deep", nil)
	require.NoError(t, err)
	enginetest.CompleteItem(e, deep, "Z", 1)
	require.Empty(t, stranded())
	require.NoError(t, enginetest.Do(t.Context(), e, workflow.Move(deep, "S", "S->J")))
	require.ErrorIs(t, enginetest.Do(t.Context(), e, workflow.Move(deep, "T", "S->J")), workflow.ErrDeadEnd)
	require.Empty(t, stranded(), "what is refused has changed nothing")
	require.NoError(t, enginetest.Do(t.Context(), e, workflow.Move(deep, "T", "S->J", workflow.Force())))
	all := stranded()
	require.Len(t, all, 1)
	require.Equal(t, deep, all[0].Case)
	require.Equal(t, why.CauseDeadEnd, all[0].Cause)
	require.Contains(t, all[0].Reason, "nothing can happen with tokens in S->J")
	require.NoError(t, enginetest.Do(t.Context(), e, workflow.Move(deep, "S->J", "T->J")))
	require.Empty(t, stranded())
	e.Check()
}
