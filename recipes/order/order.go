// Package order is the recipe for work that must not be done twice. A customer is charged, gets a mail, and the order
// is saved. If saving fails, the whole is retried, but no customer is charged again or gets a second mail.
//
// Each part is a step: its result is recorded in the database. The next attempt is a new work item, which
// takes over the completed steps of the previous one (activities.Resume). After a crash, the same attempt
// resumes. No record can say whether an interrupted call had reached the other side, so the calls to the bank and the
// mail server carry an idempotency key. The books are our own: there, the step and its
// record are one transaction.
package order

import (
	"context"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/domain"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/step"
)

// The steps, in their order.
const (
	StepCharge  = "charge-customer"
	StepConfirm = "send-confirmation"
	StepSave    = "save-order"
)

// Order is what a customer wants.
type Order struct {
	ID    string `json:"id"    validate:"required"`
	Email string `json:"email" validate:"required"`
	Cents int64  `json:"cents" validate:"gt=0"`
}

// Receipt is the result of a case: what the bank and the mail server gave for the order.
type Receipt struct {
	Order   string `json:"order"   validate:"required"`
	Charge  string `json:"charge"  validate:"required"`
	Message string `json:"message" validate:"required"`
}

// Shop is what an order needs of the world. Charge and Confirm are called at least once, and do what they do once for
// each key; they return the same again for the same key. An error is followed by another attempt of the order, unless
// it is marked by workitem.Fatal.
type Shop interface {
	Charge(ctx context.Context, key string, o Order) (charge string, err error)
	Confirm(ctx context.Context, key string, o Order) (message string, err error)
	// Save writes the order into the shop's books. It runs in a transaction, which an error undoes.
	Save(ctx context.Context, db domain.DB, r Receipt) error
}

// Recipe is the workflow, with the handle of its task.
type Recipe struct {
	*builder.Workflow[Order]
	Place *builder.TaskRef[Order, Receipt]
}

// New defines the workflow. The policy says how often an order is tried.
func New(s Shop, p retry.Policy) (r *Recipe, err error) {
	b, r := builder.New[Order]("order", builder.Describe("an order is charged once, though saving it fails")), new(Recipe)
	r.Place = builder.Task(b, "place", builder.Work[Order, Receipt]{
		Input:                  builder.CaseInput(b),
		Run:                    func(ctx context.Context, o Order) (Receipt, error) { return place(ctx, s, o) },
		OnWorkItemStateChanged: activities.Resume(p),
	})
	b.Path(b.Start(), r.Place, b.End())
	b.Result(builder.Output(r.Place))
	r.Workflow, err = b.Build()
	return r, err
}

func place(ctx context.Context, s Shop, o Order) (Receipt, error) {
	charge, err := step.Do(ctx, StepCharge, func(ctx context.Context) (string, error) {
		return s.Charge(ctx, step.Key(ctx, StepCharge), o)
	})
	if err != nil {
		return Receipt{}, err
	}
	message, err := step.Do(ctx, StepConfirm, func(ctx context.Context) (string, error) {
		return s.Confirm(ctx, step.Key(ctx, StepConfirm), o)
	})
	if err != nil {
		return Receipt{}, err
	}
	return step.Tx(ctx, StepSave, func(ctx context.Context, db domain.DB) (Receipt, error) {
		r := Receipt{Order: o.ID, Charge: charge, Message: message}
		return r, s.Save(ctx, db, r)
	})
}
