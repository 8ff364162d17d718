package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/bulk"
	"github.com/tasq-dev/tasq/internal/scenario"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// Beside the program that owns the database, an action on many is one durable action of that program, which the command pauses, resumes and
// cancels. Without it, the command does the rest.
func TestABulkActionOfTheOwner(t *testing.T) {
	t.Parallel()
	onEachStore(t, bulkOfTheOwner)
}

func bulkOfTheOwner(t *testing.T, db store.Opener, at string) {
	parsed, err := scenario.ParseNotation(posOf("test"), "workflow bill\n start s\n end e\n task charge policy=incident\n flow s -> charge\n flow charge -> e\n")
	require.NoError(t, err)
	defs, _, err := scenario.Compile(parsed, nil)
	require.NoError(t, err)
	repairs := bulk.New(engine.Code)
	e, err := engine.Open(t.Context(), db, defs[0], repairs)
	require.NoError(t, err)
	closed := false
	defer func() {
		if !closed {
			require.NoError(t, e.Close())
		}
	}()
	repairs.Serve(e)
	do := func(c workflow.Command) workflow.Result {
		t.Helper()
		result, err := e.Do(t.Context(), c)
		require.NoError(t, err)
		return result
	}
	fail := func() (items []string) {
		for range 3 {
			started := do(workflow.Start("bill", nil))
			for it, err := range store.AllItems(t.Context(), e, store.ItemFilter{Case: started.Case}) {
				require.NoError(t, err)
				do(workflow.Act(it.ID, workitem.Start, nil))
				do(workflow.Fail(it.ID, &workitem.Failure{Code: "no-funds"}))
				items = append(items, it.ID.String())
			}
		}
		return items
	}
	actions := func() (all []bulk.Info) {
		t.Helper()
		for line := range strings.Lines(ran(t, at, "bulk", "list", "-o", "json")) {
			var i bulk.Info
			require.NoError(t, json.Unmarshal([]byte(line), &i))
			all = append(all, i)
		}
		return all
	}
	fail()
	require.Equal(t, "3 incidents done, 0 refused\n", ran(t, at, "incident", "retry", "--all", "--by", "ann", "--reason", "it is back"))
	require.Len(t, actions(), 1, "it is an action of the owner")
	require.Equal(t, 3, actions()[0].Done)
	require.Equal(t, "it is back", actions()[0].Reason)

	items := fail()
	first, err := workitem.ParseID(items[0])
	require.NoError(t, err)
	do(workflow.Skip(first, []byte(`{}`)))
	do(workflow.PauseQueue(bulk.Name)) // actions wait
	run, err := repairs.Start(t.Context(), e, bulk.Action{Kind: workflow.KindRetry}, items)
	require.NoError(t, err)
	canceled, err := repairs.Start(t.Context(), e, bulk.Action{Kind: workflow.KindRetry}, items)
	require.NoError(t, err)
	require.Contains(t, ran(t, at, "bulk", "pause", run.ID.String(), "--reason", "wait"), "retry, paused: 0 of 3 done, 0 refused")
	require.Contains(t, ran(t, at, "bulk", "cancel", canceled.ID.String()), "retry, canceled: 0 of 3 done, 0 refused")
	do(workflow.ResumeQueue(bulk.Name))
	require.NoError(t, e.Close())
	closed = true
	require.Contains(t, ran(t, at, "bulk", "show", run.ID.String()), "paused")
	require.Contains(t, ran(t, at, "why", run.ID.String()), "(wait)")
	out := ran(t, at, "bulk", "resume", run.ID.String())
	require.Contains(t, out, "retry, completed: 2 of 3 done, 1 refused")
	require.Contains(t, out, items[0])
	require.Contains(t, out, "it has not failed for good")
	code, _, errs := tasq(t, at, "bulk", "pause", run.ID.String())
	require.Equal(t, ExitRefused, code, errs)
	code, _, errs = tasq(t, at, "bulk", "show", items[0])
	require.Equal(t, ExitNotFound, code, errs)
}
