package engine_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/engine/why"
	"github.com/tasq-dev/tasq/internal/record"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// The journal has the reasons that actors give with their commands, and the setting of a queue has that of its pause.
func TestReasonsOfCommandsAreKept(t *testing.T) {
	e := enginetest.New(t, newWitness(t))
	started, err := e.Do(t.Context(), workflow.Start("witness", []byte(`{}`), workflow.By("ann"), workflow.Because("to begin")))
	require.NoError(t, err)
	item := e.Item(started.Case, "t.1.1").ID
	for _, c := range []workflow.Command{
		workflow.Send(started.Case, "news", 1, workflow.By("ann"), workflow.Because("to inform")),
		workflow.Act(item, workitem.Start, nil, workflow.By("ann"), workflow.Because("to work")),
		workflow.PauseQueue("mail", workflow.By("ann"), workflow.Because("the server is down")),
	} {
		require.NoError(t, enginetest.Do(t.Context(), e, c))
	}
	var reasons []string
	for entry, err := range store.AllEntries(t.Context(), e, store.JournalFilter{Root: started.Case, Named: true}) {
		require.NoError(t, err)
		reasons = append(reasons, record.OfAct(entry).Reason)
	}
	require.Equal(t, []string{"to begin", "to inform", "to work"}, reasons)
	require.NoError(t, e.View(t.Context(), func(r store.Reader) error {
		queues, err := why.ReadQueues(context.Background(), r, e.Now())
		require.Len(t, queues, 1)
		require.Equal(t, "ann: the server is down", queues[0].By+": "+queues[0].Reason)
		return err
	}))
}
