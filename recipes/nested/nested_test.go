package nested_test

import (
	"context"
	"fmt"
	"log"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/recipes/nested"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/sqlite"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

var order = nested.Order{Customer: "Ann", Parcels: []nested.Parcel{
	{Content: "books", Cents: 30_00}, {Content: "a lamp", Cents: 45_00}, {Content: "tea", Cents: 8_00},
}}

// work does every work item of a queue, wherever in the tree of the order it is. A parcel with this content is lost.
func work(ctx context.Context, e *engine.Engine, r *nested.Recipe, root workitem.CaseID, queue, lost string) error {
	live := []workitem.State{workitem.Initialized}
	for it, err := range store.AllItems(ctx, e, store.ItemFilter{Root: root, Queue: &queue, States: live}) {
		if err != nil {
			return err
		}
		if err := enginetest.Do(ctx, e, workflow.Act(it.ID, workitem.Start, nil)); err != nil {
			return err
		}
		switch it.Task {
		case r.HandOver.Name():
			parcel, err := r.HandOver.InputOf(it.Item)
			if err != nil {
				return err
			}
			if parcel.Content == lost {
				err = r.HandOver.Fail(ctx, e, it.ID, workitem.Failf("lost", "fell off the van"))
			} else {
				err = r.HandOver.Complete(ctx, e, it.ID, nested.Handover{Tracking: "T-" + parcel.Content})
			}
			if err != nil {
				return err
			}
		default:
			if err := enginetest.Do(ctx, e, workflow.Act(it.ID, workitem.Complete, nil)); err != nil {
				return err
			}
		}
	}
	return nil
}

// Three parcels; the lamp is lost on its way, and not billed.
func Example() {
	ctx := context.Background()
	recipe := must(nested.New())
	e := must(engine.Open(ctx, sqlite.Memory(), recipe))
	defer e.Close()
	id := must(recipe.Start(ctx, e, order))
	for _, queue := range []string{"warehouse", "carrier"} {
		if err := work(ctx, e, recipe, id, queue, "a lamp"); err != nil {
			log.Fatal(err)
		}
	}
	tree := must(store.TreeOf(ctx, e, id))
	tree.Each(func(c *state.Case) {
		if c.ParentTask == "" {
			fmt.Println(c.Workflow, c.State)
		} else {
			fmt.Println(" ", c.Workflow, c.Label(), c.State)
		}
	})
	for it, err := range store.AllItems(ctx, e, store.ItemFilter{Root: id, Task: "bill"}) {
		if err != nil {
			log.Fatal(err)
		}
		bill := must(recipe.Bill.InputOf(it.Item))
		fmt.Println("bill for", bill.Shipped, bill.Cents)
	}
	// Output:
	// nested started
	//   parcel ship.1.1 completed
	//   parcel ship.1.2 failed
	//   parcel ship.1.3 completed
	// bill for [books tea] 3800
}

func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}

func start(t *testing.T) (*enginetest.Engine, *nested.Recipe, workitem.CaseID) {
	t.Helper()
	recipe, err := nested.New()
	require.NoError(t, err)
	enginetest.Sound(t, recipe)
	e := enginetest.New(t, recipe)
	id, err := recipe.Start(t.Context(), e, order)
	require.NoError(t, err)
	return e, recipe, id
}

func TestAnOrderIsBilledWhenAllParcelsHaveEnded(t *testing.T) {
	e, recipe, id := start(t)
	require.NoError(t, work(t.Context(), e.Engine, recipe, id, "warehouse", ""))
	c, err := e.Case(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, state.CaseStarted, c.State)
	require.NoError(t, work(t.Context(), e.Engine, recipe, id, "carrier", ""))
	require.NoError(t, work(t.Context(), e.Engine, recipe, id, "accounts", ""))
	c, err = e.Wait(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, state.CaseCompleted, c.State)
}

// The order reads what its parcels gave: the one that was lost gave nothing.
func TestTheBillIsMadeOfWhatTheParcelsGave(t *testing.T) {
	e, recipe, id := start(t)
	tree, err := store.TreeOf(t.Context(), e, id)
	require.NoError(t, err)
	for i, parcel := range tree.Case(id).Children {
		e.StartItem(parcel, "pack.1.1")
		enginetest.CompleteItem(e, parcel, "pack", struct{}{})
		if i == 1 {
			e.FailItem(parcel, "hand-over", workitem.Failf("lost", "fell off the van"))
			continue
		}
		enginetest.CompleteItem(e, parcel, "hand-over.1.1", nested.Handover{Tracking: fmt.Sprint("T-", i)})
		require.Equal(t, fmt.Sprint("T-", i), enginetest.OutputOf[nested.Handover](e, parcel, "hand-over.1.1").Tracking)
	}
	bill, err := recipe.Bill.InputOf(e.Item(id, "bill"))
	require.NoError(t, err)
	require.Equal(t, nested.Bill{Customer: "Ann", Shipped: []string{"books", "tea"}, Cents: 38_00}, bill)
}

func TestACanceledOrderCancelsItsParcels(t *testing.T) {
	e, recipe, id := start(t)
	require.NoError(t, work(t.Context(), e.Engine, recipe, id, "warehouse", ""))
	require.NoError(t, enginetest.Do(t.Context(), e, workflow.Cancel(id, nil)))
	tree, err := store.TreeOf(t.Context(), e, id)
	require.NoError(t, err)
	require.Equal(t, 4, tree.Len())
	tree.Each(func(c *state.Case) { require.Equal(t, state.CaseCanceled, c.State, c.Workflow) })
}

func TestAnOrderWithoutParcelsIsRefused(t *testing.T) {
	recipe, err := nested.New()
	require.NoError(t, err)
	e := enginetest.New(t, recipe)
	_, err = recipe.Start(t.Context(), e, nested.Order{Customer: "Ann"})
	require.ErrorContains(t, err, "parcels")
}
