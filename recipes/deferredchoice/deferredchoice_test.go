package deferredchoice_test

import (
	"context"
	"fmt"
	"log"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/recipes/deferredchoice"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/sqlite"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

var offer = deferredchoice.Offer{Customer: "Ann", What: "a greenhouse", Cents: 4_000_00}

func send(context.Context, deferredchoice.Offer) (struct{}, error) { return struct{}{}, nil }

// The customer accepts a moment before the company withdraws.
func Example() {
	ctx := context.Background()
	recipe := must(deferredchoice.New(send, deferredchoice.Valid))
	e := must(engine.Open(ctx, sqlite.Memory(), recipe))
	defer e.Close()
	id := must(recipe.Start(ctx, e, offer))
	if err := e.Drain(ctx); err != nil {
		log.Fatal(err)
	}
	items := make(map[string]workitem.ID) // by task, as two web pages show them
	for it, err := range store.AllItems(ctx, e, store.ItemFilter{Case: id}) {
		if err != nil {
			log.Fatal(err)
		}
		items[it.Task] = it.ID
	}

	fmt.Println("the customer accepts:", recipe.Accept.Start(ctx, e, items["accept"]))
	if late := recipe.Withdraw.Start(ctx, e, items["withdraw"]); late != nil {
		fmt.Println("the company is too late")
	}
	if err := recipe.Accept.Complete(ctx, e, items["accept"], deferredchoice.Signature{Name: "Ann"}); err != nil {
		log.Fatal(err)
	}
	for it := range store.AllItems(ctx, e, store.ItemFilter{Case: id}) {
		fmt.Println(it.Label(), it.State)
	}
	// Output:
	// the customer accepts: <nil>
	// the company is too late
	// send.1.1 completed
	// accept.1.1 completed
	// withdraw.1.1 canceled
	// lapse.1.1 canceled
	// deliver.1.1 initialized
}

func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}

func TestAnOfferLapses(t *testing.T) {
	recipe, err := deferredchoice.New(send, deferredchoice.Valid)
	require.NoError(t, err)
	enginetest.Sound(t, recipe)
	e := enginetest.New(t, recipe)
	id, err := recipe.Start(t.Context(), e, offer)
	require.NoError(t, err)
	e.Advance(deferredchoice.Valid - time.Second)
	require.Equal(t, []string{
		"send.1.1 completed", "accept.1.1 initialized", "withdraw.1.1 initialized", "lapse.1.1 initialized",
	}, e.States(id))
	e.Advance(time.Second)
	require.Equal(t, []string{
		"send.1.1 completed", "accept.1.1 canceled", "withdraw.1.1 canceled", "lapse.1.1 completed",
	}, e.States(id))
	c, err := e.Wait(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, state.CaseCompleted, c.State)
}

func TestAWithdrawnOfferDoesNotLapse(t *testing.T) {
	recipe, err := deferredchoice.New(send, time.Hour)
	require.NoError(t, err)
	e := enginetest.New(t, recipe)
	id, err := recipe.Start(t.Context(), e, offer)
	require.NoError(t, err)
	e.Drain()
	e.StartItem(id, "withdraw")
	e.Advance(2 * time.Hour)
	enginetest.CompleteItem(e, id, "withdraw", deferredchoice.Withdrawal{Reason: "sold out"})
	require.Equal(t, []string{
		"send.1.1 completed", "accept.1.1 canceled", "withdraw.1.1 completed", "lapse.1.1 canceled",
	}, e.States(id))
}
