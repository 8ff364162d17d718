package engine_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// An observer gets what the journal gets, in its order: each command once, also those of one transaction, and none that failed.
func TestAnObserverLearnsOfEveryCommit(t *testing.T) {
	type change struct {
		root  workitem.CaseID
		event string // its type
	}
	ctx := t.Context()
	w := oneTask("observed")
	e := enginetest.New(t, w)
	var observed []change
	require.NoError(t, engine.Observe(ctx, e.Engine, func(root workitem.CaseID, events []state.Change) {
		for _, event := range events {
			observed = append(observed, change{root, fmt.Sprintf("%T", event)})
		}
	}))

	first := start(t, e, w, prompt{Text: "first"})
	require.Error(t, enginetest.Do(ctx, e, workflow.Act(workitem.ID{1}, workitem.Start, nil)))
	require.Error(t, e.Update(ctx, func(tx *engine.Tx) error {
		_, err := w.Start(ctx, tx, prompt{Text: "undone"})
		return errors.Join(err, errors.New("refused"))
	}))
	require.NoError(t, e.Update(ctx, func(tx *engine.Tx) error {
		if _, err := w.Start(ctx, tx, prompt{Text: "second"}, workflow.Key("k")); err != nil {
			return err
		}
		_, err := tx.Do(ctx, workflow.Cancel(first, nil, workflow.Key("c")))
		return err
	}))

	var committed []change
	for entry, err := range store.AllEntries(ctx, e, store.JournalFilter{}) {
		require.NoError(t, err)
		for _, event := range entry.Changes {
			committed = append(committed, change{entry.Root, fmt.Sprintf("%T", event)})
		}
	}
	require.NotEmpty(t, committed)
	require.Equal(t, committed, observed)
}
