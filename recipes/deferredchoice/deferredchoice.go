// Package deferredchoice is the recipe for a choice that the first actor makes, and not the process. A
// company has made a customer an offer. The customer may accept it; the company may withdraw it; if neither does, it
// expires.
//
// The offer is a token in one condition with three tasks behind it. All three are enabled, each with its work item;
// the first to start takes the token, and the items of the others are canceled in the same transaction. So an offer
// is never both accepted and withdrawn: the second of two simultaneous clicks gets an error that says that it came too late.
package deferredchoice

import (
	"context"
	"time"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/retry"
)

// Offer is what the customer was offered.
type Offer struct {
	Customer string `json:"customer" validate:"required"`
	What     string `json:"what"     validate:"required"`
	Cents    int64  `json:"cents"    validate:"gt=0"`
}

// Signature is what the customer gives.
type Signature struct {
	Name string `json:"name" validate:"required"`
}

// Withdrawal is the company's.
type Withdrawal struct {
	Reason string `json:"reason" validate:"required"`
}

// Recipe is the workflow, with the handles of its tasks.
type Recipe struct {
	*builder.Workflow[Offer]
	Send     *builder.TaskRef[Offer, struct{}]
	Accept   *builder.TaskRef[Offer, Signature]  // in the queue "customers"
	Withdraw *builder.TaskRef[Offer, Withdrawal] // in the queue "sales"
	Lapse    *builder.TaskRef[struct{}, struct{}]
	Deliver  *builder.TaskRef[Offer, struct{}] // in the queue "warehouse"
}

// Valid is how long an offer is good for as a rule.
const Valid = 14 * 24 * time.Hour

// New defines the workflow. The function sends the offer to the customer; it lapses so long after that.
func New(send func(context.Context, Offer) (struct{}, error), valid time.Duration) (r *Recipe, err error) {
	b := builder.New[Offer]("deferredchoice", builder.Describe("an offer is accepted, withdrawn, or lapses"))
	open, r := b.Condition("open"), new(Recipe)
	r.Send = builder.Task(b, "send", builder.Work[Offer, struct{}]{
		Input: builder.CaseInput(b), Run: send, OnWorkItemStateChanged: activities.Retry(retry.Exponential(8, time.Second)),
	})
	r.Accept = builder.Task(b, "accept", builder.Work[Offer, Signature]{
		Input: builder.CaseInput(b), Queue: "customers",
	})
	r.Withdraw = builder.Task(b, "withdraw", builder.Work[Offer, Withdrawal]{
		Input: builder.CaseInput(b), Queue: "sales",
	})
	r.Lapse = builder.Task(b, "lapse", builder.Work[struct{}, struct{}]{
		Timers: []activities.Timer{{Name: "lapse", After: valid, Item: lapse}},
	})
	r.Deliver = builder.Task(b, "deliver", builder.Work[Offer, struct{}]{
		Input: builder.CaseInput(b), Queue: "warehouse",
	})
	b.Path(b.Start(), r.Send, open)
	b.Path(open, r.Accept, r.Deliver, b.End())
	b.Path(open, r.Withdraw, b.End())
	b.Path(open, r.Lapse, b.End())
	r.Workflow, err = b.Build()
	return r, err
}

// lapse does the work of its task by itself when the time has come.
func lapse(_ context.Context, it *activities.Item) error {
	if err := it.Start(); err != nil {
		return err
	}
	return it.Complete(nil)
}
