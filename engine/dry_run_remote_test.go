package engine_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
)

// The answer to the command dry-run, read with a reader of the database, is the preview of the engine itself; and nothing is done.
func TestADryRunForAnotherProcess(t *testing.T) {
	t.Parallel()
	s := newShipping(t, retry.Policy{})
	e := enginetest.New(t, s)
	id, err := s.Start(t.Context(), e, "book")
	require.NoError(t, err)
	e.Drain()
	before := caseOf(t, e, id)
	for _, c := range []workflow.Command{
		workflow.Resume(id, nil, workflow.By("ann"), workflow.Because("it is back")), workflow.Start("shipping", []byte(`"pen"`)),
		workflow.PauseQueue("mail", workflow.By("ann")), workflow.Remove(id),
	} {
		here, err := e.DryRun(t.Context(), c)
		require.NoError(t, err, c.Kind)
		result, err := e.Do(t.Context(), workflow.DryRun(c))
		require.NoError(t, err, c.Kind)
		raw, err := json.Marshal(result)
		require.NoError(t, err)
		answer, err := engine.RemoteAnswer(store.Answer{Result: raw})
		require.NoError(t, err)
		require.NoError(t, e.View(t.Context(), func(r store.Reader) error {
			there, err := engine.ReadPreview(t.Context(), r, answer.Preview)
			require.NoError(t, err, c.Kind)
			require.Len(t, there.Trees, len(here.Trees), c.Kind)
			for i, tree := range there.Trees {
				require.Len(t, tree.Changes, len(here.Trees[i].Changes), c.Kind)
				for k := range tree.Changes {
					require.IsType(t, here.Trees[i].Changes[k], tree.Changes[k])
				}
				if root := here.Trees[i].Tree.Case(tree.Tree.Root); root != nil {
					require.Equal(t, root.State, tree.Tree.Case(tree.Tree.Root).State)
					require.Equal(t, root.Items.Len(), tree.Tree.Case(tree.Tree.Root).Items.Len())
				}
			}
			require.Len(t, there.Settings, len(here.Settings), c.Kind)
			for i := range there.Settings {
				require.Equal(t, here.Settings[i].Name, there.Settings[i].Name)
			}
			return nil
		}))
	}
	require.Equal(t, before.LastSeq, caseOf(t, e, id).LastSeq)
	_, err = e.Do(t.Context(), workflow.DryRun(workflow.Cancel(id, nil)))
	require.ErrorIs(t, err, workflow.ErrInactive, "the error of the command")
	_, err = e.Do(t.Context(), workflow.DryRun(workflow.DryRun(workflow.Remove(id))))
	require.ErrorIs(t, err, workflow.ErrBadCommand)
	_, err = e.Do(t.Context(), workflow.DryRun(workflow.Start("none", nil)))
	require.ErrorIs(t, err, engine.ErrUnknown)
}

// Within an Update, a dry run sees and leaves what was done before, and reports only the command that it tries.
func TestADryRunWithinAnUpdate(t *testing.T) {
	t.Parallel()
	s := newShipping(t, retry.Policy{})
	e := enginetest.New(t, s)
	id, err := s.Start(t.Context(), e, "book")
	require.NoError(t, err)
	e.Drain()
	require.NoError(t, e.Update(t.Context(), func(tx *engine.Tx) error {
		if _, err := tx.Do(t.Context(), workflow.Resume(id, nil)); err != nil {
			return err
		}
		result, err := tx.Do(t.Context(), workflow.DryRun(workflow.Suspend(id)))
		require.NoError(t, err)
		require.Len(t, result.Preview.Trees, 1)
		require.Contains(t, string(result.Preview.Trees[0].Changes), `"case-suspended"`)
		require.NotContains(t, string(result.Preview.Trees[0].Changes), `"case-resumed"`)
		return nil
	}))
	root := caseOf(t, e, id)
	require.Nil(t, root.Suspended)
}

// A case that changes between the dry run and the reading, as a busy one always does, is shown as it was when the command was tried.
func TestAPreviewOfACaseThatHasChanged(t *testing.T) {
	t.Parallel()
	s := newShipping(t, retry.Policy{})
	e := enginetest.New(t, s)
	id, err := s.Start(t.Context(), e, "book")
	require.NoError(t, err)
	e.Drain()
	result, err := e.Do(t.Context(), workflow.DryRun(workflow.Resume(id, nil)))
	require.NoError(t, err)
	seq := caseOf(t, e, id).LastSeq
	_, err = e.Do(t.Context(), workflow.Resume(id, nil))
	require.NoError(t, err)
	require.Greater(t, caseOf(t, e, id).LastSeq, seq)
	require.NoError(t, e.View(t.Context(), func(r store.Reader) error {
		p, err := engine.ReadPreview(t.Context(), r, result.Preview)
		require.NoError(t, err)
		require.Len(t, p.Trees, 1)
		before, after := p.Trees[0].Before.Case(id), p.Trees[0].Tree.Case(id)
		require.Equal(t, state.CaseFailed, before.State)
		require.Equal(t, seq, before.LastSeq)
		require.Equal(t, state.CaseStarted, after.State)
		_, err = engine.ReadPreview(t.Context(), r, nil)
		require.Error(t, err)
		result.Preview.Trees[0].Seq += 1 << 40
		_, err = engine.ReadPreview(t.Context(), r, result.Preview)
		require.ErrorIs(t, err, store.ErrConflict, "a state that is not stored")
		return nil
	}))
}
