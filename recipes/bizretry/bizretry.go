// Package bizretry is the recipe for retrying what a business partner refused. A subscription is renewed: the
// bank is asked for the money. Two things can fail, and they need different backoffs. If the bank cannot be
// reached, the retry follows after seconds. If the bank declines, the customer gets a letter, and days to
// correct it. When the last attempt is declined, the case does not fail, because this is an expected
// outcome: the subscription is suspended.
//
// Each kind of failure has its own policy, which filters by the failure's code. The attempts of both are counted
// together, since they are attempts at the same thing.
package bizretry

import (
	"context"
	"errors"
	"time"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/workitem"
)

// Declined is the code of a refusal by the bank: return workitem.Failf(Declined, "no funds").
const Declined = "declined"

// Renewal is a subscription that is due.
type Renewal struct {
	Customer string `json:"customer" validate:"required"`
	Cents    int64  `json:"cents"    validate:"gt=0"`
}

// Receipt is what the bank gives for a payment.
type Receipt struct {
	Reference string `json:"reference" validate:"required"`
}

// Letter informs a customer that the bank declined.
type Letter struct {
	Customer string `json:"customer" validate:"required"`
	Attempt  int    `json:"attempt"` // which one was declined; the tone depends on it
	Reason   string `json:"reason"`
}

// Company is the world outside: the bank, the mail, and the service that customers subscribe to.
type Company interface {
	Charge(context.Context, Renewal) (Receipt, error)
	Write(context.Context, Letter) error
	Suspend(context.Context, Renewal) (struct{}, error)
}

// Recipe is the workflow, with the handles of its tasks.
type Recipe struct {
	*builder.Workflow[Renewal]
	Charge  *builder.TaskRef[Renewal, Receipt]
	Suspend *builder.TaskRef[Renewal, struct{}]
}

// New defines the workflow.
func New(c Company) (r *Recipe, err error) {
	b, r := builder.New[Renewal]("bizretry", builder.Describe("a renewal is charged, with patience")), new(Recipe)
	const day = 24 * time.Hour
	refused := retry.Table(3*day, 5*day, 7*day) // four attempts in all
	refused.Filters = []retry.Filter{declined}
	trouble := retry.Exponential(12, time.Second)
	trouble.MaxWait, trouble.Filters = time.Hour, []retry.Filter{func(f retry.Failure) bool { return !declined(f) }}
	soon := retry.Exponential(8, time.Second)

	letter := builder.Job(b, "letter", c.Write, builder.JobOptions{Retry: soon})
	r.Charge = builder.Task(b, "charge", builder.Work[Renewal, Receipt]{
		Input: builder.CaseInput(b), Run: c.Charge, Split: builder.Xor,
		Policy: workitem.ContinueOnFailure(), // the last refusal completes the task, and the flows decide
		OnWorkItemStateChanged: activities.All(
			write(letter), activities.Retry(refused), activities.Retry(trouble),
		),
	})
	r.Suspend = builder.Task(b, "suspend", builder.Work[Renewal, struct{}]{
		Input: builder.CaseInput(b), Run: c.Suspend, OnWorkItemStateChanged: activities.Retry(soon),
	})
	b.Path(b.Start(), r.Charge)
	builder.Flow(b, r.Charge, b.End()).Otherwise()
	builder.Flow(b, r.Charge, r.Suspend).WithoutOutput()
	b.Path(r.Suspend, b.End())
	r.Workflow, err = b.Build()
	return r, err
}

// declined recognises a refusal. What was stored of an error is a failure, so filters of an activity go by its code.
func declined(f retry.Failure) bool {
	failure, ok := errors.AsType[*workitem.Failure](f.Err)
	return ok && failure.Code == Declined
}

// write answers a refusal with a letter. It is detached, so that it is sent although the refusal may end the task.
func write(letter *builder.JobRef[Letter]) func(context.Context, *activities.Change) error {
	return func(_ context.Context, c *activities.Change) error {
		if c.To != workitem.Failed || c.Item.Failure == nil || c.Item.Failure.Code != Declined {
			return nil
		}
		renewal, err := builder.CaseInputOf[Renewal](c.Case())
		if err != nil {
			return err
		}
		_, err = letter.Detached(c, 0, Letter{renewal.Customer, c.Item.Attempt, c.Item.Failure.Message})
		return err
	}
}
