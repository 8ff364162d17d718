// Package nested is the recipe for a process within a process. An order is sent in several parcels, and each parcel
// has its own life cycle: it is packed, then handed to a carrier. The order runs one child case of the workflow
// "parcel" for each, and continues when all have ended. A lost parcel does not stop the others: it is not
// billed.
//
// Child cases are cases: they can be listed, drawn and canceled separately, and are canceled with their
// order. The order bills the results of the parcels.
package nested

import (
	"context"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/workitem"
)

// Order is what a customer wants.
type Order struct {
	Customer string   `json:"customer" validate:"required"`
	Parcels  []Parcel `json:"parcels"  validate:"required,min=1,dive"`
}

// Parcel is a part of an order.
type Parcel struct {
	Content string `json:"content" validate:"required"`
	Cents   int64  `json:"cents"   validate:"gte=0"`
}

// Handover is the carrier's receipt.
type Handover struct {
	Tracking string `json:"tracking" validate:"required"`
}

// Bill is what the customer has to pay: for what was handed over.
type Bill struct {
	Customer string   `json:"customer" validate:"required"`
	Shipped  []string `json:"shipped"`
	Cents    int64    `json:"cents"`
}

// Shipment is a parcel that was handed over.
type Shipment struct {
	Parcel   Parcel `json:"parcel"`
	Tracking string `json:"tracking"`
}

// Recipe is the workflow of an order, the one of a parcel, and the handles of both their tasks.
type Recipe struct {
	*builder.Workflow[Order]
	Parcel   *builder.Workflow[Parcel]
	Pack     *builder.TaskRef[Parcel, struct{}] // in the queue "warehouse"
	HandOver *builder.TaskRef[Parcel, Handover] // in the queue "carrier"; fail it if the parcel is lost
	Bill     *builder.TaskRef[Bill, struct{}]   // in the queue "accounts"

	shipment *builder.ResultRef[Parcel, Shipment] // of a parcel
}

// New defines both workflows. The engine needs to be opened with the order's only.
func New() (r *Recipe, err error) {
	r = new(Recipe)
	if err := r.parcel(); err != nil {
		return nil, err
	}
	b := builder.New[Order]("nested", builder.Describe("an order goes out in parcels, and is billed"))
	ship := builder.Composite(b, "ship", r.Parcel, builder.Cases[Parcel]{
		Items: func(_ context.Context, a *activities.Activation) ([]Parcel, error) {
			o, err := builder.CaseInputOf[Order](a.Case())
			return o.Parcels, err
		},
		Policy: workitem.ContinueOnFailure(),
	})
	r.Bill = builder.Task(b, "bill", builder.Work[Bill, struct{}]{Input: builder.From(r.bill(ship)), Queue: "accounts"})
	b.Path(b.Start(), ship, r.Bill, b.End())
	r.Workflow, err = b.Build()
	return r, err
}

func (r *Recipe) parcel() (err error) {
	b := builder.New[Parcel]("parcel", builder.Describe("a parcel is packed and handed to a carrier"))
	r.Pack = builder.Task(b, "pack", builder.Work[Parcel, struct{}]{Input: builder.CaseInput(b), Queue: "warehouse"})
	r.HandOver = builder.Task(b, "hand-over", builder.Work[Parcel, Handover]{Input: builder.CaseInput(b), Queue: "carrier"})
	r.shipment = builder.Result(b, builder.FromCase(func(c *activities.Case) (Shipment, error) {
		p, err := builder.CaseInputOf[Parcel](c.Case())
		if err != nil {
			return Shipment{}, err
		}
		h, err := builder.OutputOf(r.HandOver, c.Case())
		return Shipment{Parcel: p, Tracking: h.Tracking}, err
	}))
	b.Path(b.Start(), r.Pack, r.HandOver, b.End())
	r.Parcel, err = b.Build()
	return err
}

// bill adds up what the parcels of the order gave.
func (r *Recipe) bill(ship *builder.CompositeRef) func(context.Context, *activities.Activation) (Bill, error) {
	return func(_ context.Context, a *activities.Activation) (Bill, error) {
		o, err := builder.CaseInputOf[Order](a.Case())
		if err != nil {
			return Bill{}, err
		}
		b := Bill{Customer: o.Customer}
		shipments, err := builder.ChildOutputsOf(ship, r.shipment, a.Case())
		for _, s := range shipments {
			b.Shipped, b.Cents = append(b.Shipped, s.Parcel.Content), b.Cents+s.Parcel.Cents
		}
		return b, err
	}
}
