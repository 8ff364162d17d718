package fanout_test

import (
	"context"
	"fmt"
	"log"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/recipes/fanout"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/sqlite"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// deliver does the one live work item of a task.
func deliver(ctx context.Context, e *engine.Engine, id workitem.CaseID, task, output string) error {
	states := []workitem.State{workitem.Initialized, workitem.Started}
	for item, err := range store.AllItems(ctx, e, store.ItemFilter{Case: id, Task: task, States: states}) {
		if err != nil {
			return err
		}
		if err := enginetest.Do(ctx, e, workflow.Act(item.ID, workitem.Start, nil)); err != nil {
			return err
		}
		return enginetest.Do(ctx, e, workflow.Act(item.ID, workitem.Complete, []byte(output)))
	}
	return fmt.Errorf("task %s has no work item", task)
}

// A car with an injured driver in it, and no theft: two reports are needed.
func Example() {
	ctx := context.Background()
	recipe := must(fanout.New())
	e := must(engine.Open(ctx, sqlite.Memory(), recipe))
	defer e.Close()
	id := must(recipe.Start(ctx, e, fanout.Claim{Policy: "P-7", Damage: true, Injury: true}))

	for _, task := range []string{"garage", "doctor"} {
		if err := deliver(ctx, e, id, task, `{"finding": "it is bad", "cents": 70000}`); err != nil {
			log.Fatal(err)
		}
		c := must(e.Case(ctx, id))
		decide, _ := c.Net.TaskByName("decide")
		fmt.Println(task, "has reported; decide is", c.Tasks[decide].State)
	}
	for item, err := range store.AllItems(ctx, e, store.ItemFilter{Case: id, Task: "decide"}) {
		if err != nil {
			log.Fatal(err)
		}
		file := must(recipe.Decide.InputOf(item.Item))
		fmt.Println("to decide on", len(file.Reports), "reports and", file.Cents, "cents")
	}
	// Output:
	// garage has reported; decide is disabled
	// doctor has reported; decide is enabled
	// to decide on 2 reports and 140000 cents
}

func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}

func TestEveryChoiceOfReportsIsGathered(t *testing.T) {
	recipe, err := fanout.New()
	require.NoError(t, err)
	enginetest.Sound(t, recipe)
	e := enginetest.New(t, recipe)
	for n := 1; n < 8; n++ {
		claim := fanout.Claim{Policy: "P-7", Damage: n&1 > 0, Injury: n&2 > 0, Theft: n&4 > 0}
		id, err := recipe.Start(t.Context(), e, claim)
		require.NoError(t, err)
		var asked []string
		for _, p := range []struct {
			task   string
			needed bool
		}{{"garage", claim.Damage}, {"doctor", claim.Injury}, {"police", claim.Theft}} {
			if p.needed {
				asked = append(asked, p.task+".1.1 initialized")
			}
		}
		require.ElementsMatch(t, asked, e.States(id))
		for _, item := range asked {
			label, _, _ := strings.Cut(item, " ")
			enginetest.CompleteItem(e, id, label, fanout.Report{Finding: "yes", Cents: 100})
		}
		file, err := recipe.Decide.InputOf(e.Item(id, "decide"))
		require.NoError(t, err)
		require.Len(t, file.Reports, len(asked))
		require.EqualValues(t, 100*len(asked), file.Cents)
		enginetest.CompleteItem(e, id, "decide", fanout.Decision{Cents: 50})
		c, err := e.Wait(t.Context(), id)
		require.NoError(t, err)
		require.Equal(t, state.CaseCompleted, c.State)
		require.JSONEq(t, `{"cents": 50}`, string(c.Output))
	}
}

func TestAClaimOfNothingIsRefused(t *testing.T) {
	recipe, err := fanout.New()
	require.NoError(t, err)
	e := enginetest.New(t, recipe)
	_, err = recipe.Start(t.Context(), e, fanout.Claim{Policy: "P-7"})
	require.ErrorContains(t, err, "theft")
}

func TestTheJoinSaysForWhomItWaits(t *testing.T) {
	recipe, err := fanout.New()
	require.NoError(t, err)
	e := enginetest.New(t, recipe)
	id, err := recipe.Start(t.Context(), e, fanout.Claim{Policy: "P-7", Damage: true, Theft: true})
	require.NoError(t, err)
	enginetest.CompleteItem(e, id, "garage", fanout.Report{Finding: "yes"})
	why, err := e.Why(t.Context(), id)
	require.NoError(t, err)
	decide, _ := why.Task("decide")
	require.Contains(t, decide.Text, "police")
}
