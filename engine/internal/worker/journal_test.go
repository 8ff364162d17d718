package worker

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// What a run records may have ended before its goroutine has the answer: the writer reports both in the order of their
// commits, and the answer must not make the run wait for a step whose end was reported already.
func TestTheEndOfAStepIsReportedBeforeItsRecordIsAcknowledged(t *testing.T) {
	s := &workitem.Step{ID: workitem.StepID{1}, Name: "ship", Kind: workitem.StepCase, State: workitem.StepWaiting}
	j := &Journal{waits: make(map[workitem.StepID]*workitem.Step)}
	var told []workitem.StepState
	j.Watch(func(s *workitem.Step) { told = append(told, s.State) })

	j.Opened(s)
	j.Moved(&state.StepMoved{Step: s.ID, To: workitem.StepDone})
	require.Equal(t, []workitem.StepState{workitem.StepDone}, told)
	j.keepAll([]*workitem.Step{s})
	require.Empty(t, j.known(), "nothing is left to wait for")
}
