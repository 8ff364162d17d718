package approval_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/recipes/approval"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/sqlite"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// office pays, and prints its messages to employees.
type office struct{}

func (office) Pay(_ context.Context, c approval.Claim) (approval.Payment, error) {
	return approval.Payment{Reference: fmt.Sprintf("SEPA-%d", c.Cents)}, nil
}

func (office) Notify(_ context.Context, r approval.Rejection) (struct{}, error) {
	fmt.Printf("Dear %s, we do not pay for %q: %s\n", r.Claim.Employee, r.Claim.Purpose, r.Reason)
	return struct{}{}, nil
}

// A manager finds a claim in the queue, and rejects it.
func Example() {
	ctx := context.Background()
	recipe := must(approval.New(office{}, 50_00))
	e := must(engine.Open(ctx, sqlite.Memory(), recipe))
	defer e.Close()
	id := must(recipe.Start(ctx, e, approval.Claim{Employee: "Ann", Purpose: "gold pen", Cents: 900_00}))

	queue := "managers"
	for item, err := range store.AllItems(ctx, e, store.ItemFilter{Queue: &queue}) {
		if err != nil {
			log.Fatal(err)
		}
		claim := must(recipe.Approve.InputOf(item.Item))
		fmt.Printf("%s asks for %d cents\n", claim.Employee, claim.Cents)
		if err := recipe.Approve.Start(ctx, e, item.ID, workflow.By("Bob")); err != nil {
			log.Fatal(err)
		}
		verdict := approval.Decision{Reason: "a plain one writes too"}
		if err := recipe.Approve.Complete(ctx, e, item.ID, verdict, workflow.By("Bob")); err != nil {
			log.Fatal(err)
		}
	}
	c := must(e.Wait(ctx, id))
	fmt.Println("the case is", c.State)
	// Output:
	// Ann asks for 90000 cents
	// Dear Ann, we do not pay for "gold pen": a plain one writes too
	// the case is completed
}

func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}

// decide starts a case and makes the decision, if one is asked for. It returns the work items.
func decide(t *testing.T, c approval.Claim, d approval.Decision) (items []string, failure error) {
	t.Helper()
	recipe, err := approval.New(office{}, 50_00)
	require.NoError(t, err)
	enginetest.Sound(t, recipe)
	e := enginetest.New(t, recipe)
	id, err := recipe.Start(t.Context(), e, c)
	if err != nil {
		return nil, err
	}
	if c.Cents >= 50_00 {
		item := e.StartItem(id, "approve")
		failure = recipe.Approve.Complete(t.Context(), e, item.ID, d)
	}
	e.Drain()
	return e.States(id), failure
}

func TestASmallClaimNeedsNoManager(t *testing.T) {
	items, err := decide(t, approval.Claim{Employee: "Ann", Purpose: "tram", Cents: 3_20}, approval.Decision{})
	require.NoError(t, err)
	require.Equal(t, []string{"pay.1.1 completed"}, items)
}

func TestAnApprovedClaimIsPaid(t *testing.T) {
	train := approval.Claim{Employee: "Ann", Purpose: "train", Cents: 50_00}
	items, err := decide(t, train, approval.Decision{Approved: true})
	require.NoError(t, err)
	require.Equal(t, []string{"approve.1.1 completed", "pay.1.1 completed"}, items)
}

func TestARejectionNeedsAReason(t *testing.T) {
	items, err := decide(t, approval.Claim{Employee: "Ann", Purpose: "yacht", Cents: 1e9}, approval.Decision{})
	require.ErrorContains(t, err, "reason")
	require.Equal(t, []string{"approve.1.1 started"}, items, "nothing has moved")
}

func TestAClaimForNothingIsRefused(t *testing.T) {
	_, err := decide(t, approval.Claim{Employee: "Ann", Purpose: "nothing"}, approval.Decision{})
	require.ErrorContains(t, err, "cents")
}

// A claim that two managers decide at once is decided once.
func TestTheSecondDecisionComesTooLate(t *testing.T) {
	recipe, err := approval.New(office{}, 0)
	require.NoError(t, err)
	e := enginetest.New(t, recipe)
	id, err := recipe.Start(t.Context(), e, approval.Claim{Employee: "Ann", Purpose: "train", Cents: 1})
	require.NoError(t, err)
	item := e.Item(id, "approve")
	enginetest.CompleteItem(e, id, "approve", approval.Decision{Approved: true})
	err = recipe.Approve.Complete(t.Context(), e, item.ID, approval.Decision{Reason: "no"})
	late := (*workitem.TransitionError)(nil)
	require.True(t, errors.As(err, &late), "%v", err)
}
