// Package approval is the recipe for a decision by a person. An employee claims expenses. A small claim is paid at
// once. A larger one waits for a manager, who approves it, and it is paid, or rejects it, and the employee gets the
// reason.
//
// The decision is the output of a work item without Run: the caller that completes the item makes it, from a web page or with the
// command "tasq item complete". A rejection without a reason is refused before anything changes. The xor-split reads the
// decision in the same transaction, so a claim is never approved without going to payment.
package approval

import (
	"context"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/builder"
)

// Claim is what an employee wants to be paid for.
type Claim struct {
	Employee string `json:"employee" validate:"required"`
	Purpose  string `json:"purpose"  validate:"required"`
	Cents    int64  `json:"cents"    validate:"gt=0"`
}

// Decision is the manager's. A rejection needs a reason.
type Decision struct {
	Approved bool   `json:"approved"`
	Reason   string `json:"reason,omitempty" validate:"required_unless=Approved true"`
}

// Payment is what the bank gave for an order to pay.
type Payment struct {
	Reference string `json:"reference" validate:"required"`
}

// Rejection is what the employee gets.
type Rejection struct {
	Claim  Claim  `json:"claim"`
	Reason string `json:"reason" validate:"required"`
}

// Office is the world outside: the bank, and the mail to employees.
type Office interface {
	Pay(context.Context, Claim) (Payment, error)
	Notify(context.Context, Rejection) (struct{}, error)
}

// Recipe is the workflow, with the handles of its tasks.
type Recipe struct {
	*builder.Workflow[Claim]
	Approve *builder.TaskRef[Claim, Decision] // in the queue "managers"
	Pay     *builder.TaskRef[Claim, Payment]
	Notify  *builder.TaskRef[Rejection, struct{}]
}

// New defines the workflow. Claims below the limit, in cents, need no manager.
func New(o Office, limit int64) (r *Recipe, err error) {
	b, r := builder.New[Claim]("approval", builder.Describe("a manager decides on an expense claim")), new(Recipe)
	sort := b.Routing("sort", builder.Routing{Split: builder.Xor})
	r.Approve = builder.Task(b, "approve", builder.Work[Claim, Decision]{
		Input: builder.CaseInput(b), Queue: "managers", Split: builder.Xor,
	})
	r.Pay = builder.Task(b, "pay", builder.Work[Claim, Payment]{
		Input: builder.CaseInput(b), Run: o.Pay, Join: builder.Xor,
	})
	r.Notify = builder.Task(b, "notify", builder.Work[Rejection, struct{}]{Input: builder.From(r.rejection), Run: o.Notify})

	b.Path(b.Start(), sort)
	builder.Flow(b, sort, r.Pay).If(builder.Map(builder.CaseInput(b), func(c Claim) bool { return c.Cents < limit }))
	builder.Flow(b, sort, r.Approve).Otherwise()
	builder.Flow(b, r.Approve, r.Pay).When(func(d Decision) bool { return d.Approved })
	builder.Flow(b, r.Approve, r.Notify).Otherwise()
	b.Path(r.Pay, b.End())
	b.Path(r.Notify, b.End())
	r.Workflow, err = b.Build()
	return r, err
}

func (r *Recipe) rejection(_ context.Context, a *activities.Activation) (Rejection, error) {
	c, err := builder.CaseInputOf[Claim](a.Case())
	if err != nil {
		return Rejection{}, err
	}
	d, err := builder.OutputOf(r.Approve, a.Case())
	return Rejection{Claim: c, Reason: d.Reason}, err
}
