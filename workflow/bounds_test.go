package workflow_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// What not every database can keep is refused on each, before anything is done.
func TestACommandHasWhatEachStoreCanKeep(t *testing.T) {
	long := strings.Repeat("x", workflow.MaxName+1)
	start := func(o workflow.Option) workflow.Command { return workflow.Start("w", nil, o) }
	for name, c := range map[string]workflow.Command{
		"actor": start(workflow.By(long)),
		"queue": workflow.PauseQueue(long),
		"code":  workflow.Cancel(workitem.CaseID{1}, workitem.Failf(long[:workitem.MaxCode+1], "words")),
	} {
		t.Run(name, func(t *testing.T) { require.ErrorIs(t, c.Check(), workflow.ErrBadCommand) })
	}
	for name, c := range map[string]workflow.Command{
		"actor": start(workflow.By(long[1:])),
		"queue": workflow.PauseQueue(long[1:]),
		"code":  workflow.Cancel(workitem.CaseID{1}, workitem.Failf(long[:workitem.MaxCode], "words")),
	} {
		t.Run("not "+name, func(t *testing.T) { require.NoError(t, c.Check()) })
	}
}
