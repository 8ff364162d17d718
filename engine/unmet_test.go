package engine_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// A task with several items that its policy fails says how many have completed, how many are needed, and the first errors.
func TestAPolicyThatIsNotMetSaysWhatIsMissing(t *testing.T) {
	ask := func(_ context.Context, s string) (string, error) {
		if s != "yes" {
			return "", workitem.Failf(s, "vote %s", s)
		}
		return s, nil
	}
	own := workitem.NewPolicy("mine", func(o workitem.Outcome) (workitem.Verdict, error) {
		if o.State.Final() && o.Tally.Live() == 0 {
			return workitem.FailTask, nil
		}
		return workitem.Continue, nil
	})
	for name, c := range map[string]struct {
		policy workitem.Policy
		items  []string
		want   string
	}{
		"too few items": {workitem.Quorum(2), []string{"yes"}, "policy: 1 of 1 work items of task vote completed, and 2 are needed"},
		"quorum": {workitem.Quorum(2), []string{"yes", "no", "late"},
			"late: 1 of 3 work items of task vote completed, and 2 are needed: vote.1.2: no: vote no; vote.1.3: late: vote late"},
		"many errors": {workitem.Quorum(3), []string{"a", "yes", "b", "c", "d", "e"},
			"d: 1 of 6 work items of task vote completed, and 3 are needed: vote.1.1: a: vote a; vote.1.3: b: vote b; vote.1.4: c: vote c; and 1 more"},
		"one item":  {workitem.Quorum(1), []string{"no"}, "no: vote no"},
		"threshold": {workitem.Threshold(1), []string{"no", "yes", "late"}, "late: 1 of 3 work items of task vote completed, and at most 1 may fail: vote.1.1: no: vote no; vote.1.3: late: vote late"},
		"all":       {workitem.All(), []string{"yes", "no"}, "no: 1 of 2 work items of task vote completed, and all are needed: vote.1.2: no: vote no"},
		"own":       {own, []string{"yes"}, "policy: 1 of 1 work items of task vote completed, and its policy mine fails it"},
		"default":   {workitem.Default(), []string{"yes", "no"}, "no: vote no"},
	} {
		t.Run(name, func(t *testing.T) {
			b := builder.New[[]string]("poll")
			vote := builder.Task(b, "vote", builder.Work[string, string]{Policy: c.policy, Run: ask, Queue: "votes",
				Items: func(_ context.Context, a *activities.Activation) ([]string, error) {
					return builder.CaseInputOf[[]string](a.Case())
				}})
			b.Path(b.Start(), vote, b.End())
			w := b.MustBuild()
			e := enginetest.Open(t, enginetest.Store(t), engine.Config{Queues: map[string]int{"votes": 1}}, w)
			id, err := w.Start(t.Context(), e, c.items)
			require.NoError(t, err)
			e.Drain()
			ended, err := e.Case(t.Context(), id)
			require.NoError(t, err)
			require.Equal(t, c.want, ended.Failure.String())
		})
	}
}

// The same for child cases, and for items of which the last is canceled.
func TestAPolicyOfChildCasesThatIsNotMetSaysWhatIsMissing(t *testing.T) {
	one := builder.New[string]("one")
	step := builder.Task(one, "step", builder.Work[string, string]{Input: builder.CaseInput(one)})
	one.Path(one.Start(), step, one.End())
	b := builder.New[[]string]("poll")
	vote := builder.Composite(b, "vote", one.MustBuild(), builder.Cases[string]{Policy: workitem.Quorum(2),
		Items: func(_ context.Context, a *activities.Activation) ([]string, error) {
			return builder.CaseInputOf[[]string](a.Case())
		}})
	b.Path(b.Start(), vote, b.End())
	w := b.MustBuild()
	e := enginetest.New(t, w)
	id, err := w.Start(t.Context(), e, []string{"a", "b", "c"})
	require.NoError(t, err)
	children := childrenOf(t, e, id)
	e.FailItem(children[0], "step.1.1", workitem.Failf("no-funds", "the account is empty"))
	require.NoError(t, enginetest.Do(t.Context(), e, workflow.Cancel(children[1], nil)))
	c, err := e.Case(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, "policy: 0 of 3 child cases of task vote completed, and 2 are needed: vote.1.1: no-funds: the account is empty", c.Failure.String())
}
