package why_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/engine/why"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// A message, a name or a reason with line breaks adds no lines to an answer: a line could read like one of another wait, or like a command.
func TestATextOfSeveralLinesIsOneLineOfAnAnswer(t *testing.T) {
	failing := workitem.Failf("two\nlines", "broken\n  to repair it: tasq case cancel")
	held := desk(t, "held", builder.Work[any, any]{Queue: "a\nb", Policy: workitem.Incident(workitem.Policy{})})
	plain := desk(t, "plain", builder.Work[any, any]{})
	e := enginetest.New(t, held, plain)
	id, ended := start(t, e, held), start(t, e, plain)
	require.Equal(t, 2, strings.Count(ask(t, e, id).String(), "\n"), "a line for the wait, and one for the id of its item")
	e.FailItem(id, "check.1.1", failing)
	e.FailItem(ended, "check.1.1", failing)
	answer := ask(t, e, id)
	require.Contains(t, only(t, answer).Text, "two lines: broken   to repair it: tasq case cancel; a person decides")
	require.Equal(t, 4, strings.Count(answer.String(), "\n"), "a line for the wait, and one for each of its commands, which have the id of its item")
	require.NotContains(t, only(t, answer).Text, "\n")
	require.NotContains(t, ask(t, e, ended).String(), "lines: broken\n")

	require.NoError(t, enginetest.Do(t.Context(), e, workflow.Suspend(id, workflow.By("ann\nbob"), workflow.Because("not\nnow"))))
	require.Equal(t, 4, strings.Count(ask(t, e, id).String(), "\n"))
	for found, err := range why.Stranded(t.Context(), e, why.Search{Now: e.Now(), Here: e.Here()}) {
		require.NoError(t, err)
		require.NotContains(t, found.Reason, "\n")
	}
}
