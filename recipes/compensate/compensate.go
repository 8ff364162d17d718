// Package compensate is the recipe for a saga: if a later step fails, the earlier ones are undone. A trip needs a flight, a hotel
// and a car, booked one after the other with three independent companies. If one booking
// fails, the bookings before it are canceled, the latest first, and the case completes without a trip.
//
// No transaction spans three companies, so a compensation is work like any other, drawn in the net: a failed booking leads
// to the cancellation of the one before. Its policy lets the task complete although its item failed. A
// cancellation is retried for days, since the booking would be paid otherwise; if the last attempt fails, the case fails,
// and a person has to look.
package compensate

import (
	"context"
	"time"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/workitem"
)

// Trip is what a traveller wants.
type Trip struct {
	Traveller string `json:"traveller" validate:"required"`
	City      string `json:"city"      validate:"required"`
	Nights    int    `json:"nights"    validate:"min=1"`
}

// Booking is what a company gives for an order.
type Booking struct {
	Reference string `json:"reference" validate:"required"`
}

// Outcome is the result of a case.
type Outcome struct {
	Booked bool `json:"booked"` // all of it; otherwise nothing is
}

// Company takes bookings, and takes them back. Book returns a [workitem.Fatal] error if it has nothing; other errors
// are tried again. Both must bear being called twice for one work item, which builder.WorkFrom names.
type Company interface {
	Book(context.Context, Trip) (Booking, error)
	Cancel(context.Context, Booking) (struct{}, error)
}

// Recipe is the workflow, with the handles of its tasks.
type Recipe struct {
	*builder.Workflow[Trip]
	Flight, Hotel, Car        *builder.TaskRef[Trip, Booking]
	CancelHotel, CancelFlight *builder.TaskRef[Booking, struct{}]
}

// New defines the workflow.
func New(flight, hotel, car Company) (r *Recipe, err error) {
	b, r := builder.New[Trip]("compensate", builder.Describe("a trip is booked whole, or not at all")), new(Recipe)
	book := func(name string, c Company) *builder.TaskRef[Trip, Booking] {
		return builder.Task(b, name, builder.Work[Trip, Booking]{
			Input: builder.CaseInput(b), Run: c.Book, Split: builder.Xor,
			Policy:                 workitem.ContinueOnFailure(),
			OnWorkItemStateChanged: activities.Retry(retry.Exponential(4, time.Second)),
		})
	}
	days := retry.Exponential(200, time.Second)
	days.MaxWait, days.MaxElapsed = time.Hour, 7*24*time.Hour
	undo := func(of *builder.TaskRef[Trip, Booking], c Company, join builder.Rule) *builder.TaskRef[Booking, struct{}] {
		return builder.Task(b, "cancel-"+of.Name(), builder.Work[Booking, struct{}]{
			Input: builder.Output(of), Run: c.Cancel, Join: join, OnWorkItemStateChanged: activities.Retry(days),
		})
	}
	r.Flight, r.Hotel, r.Car = book("flight", flight), book("hotel", hotel), book("car", car)
	r.CancelHotel = undo(r.Hotel, hotel, builder.And)
	r.CancelFlight = undo(r.Flight, flight, builder.Xor) // after the hotel failed, or was canceled

	b.Path(b.Start(), r.Flight)
	builder.Flow(b, r.Flight, r.Hotel).Otherwise()
	builder.Flow(b, r.Flight, b.End()).WithoutOutput()
	builder.Flow(b, r.Hotel, r.Car).Otherwise()
	builder.Flow(b, r.Hotel, r.CancelFlight).WithoutOutput()
	builder.Flow(b, r.Car, b.End()).Otherwise()
	builder.Flow(b, r.Car, r.CancelHotel).WithoutOutput()
	b.Path(r.CancelHotel, r.CancelFlight, b.End())
	b.Result(builder.FromCase(func(c *activities.Case) (Outcome, error) {
		return Outcome{Booked: c.Case().Outputs(r.Car.Name()) != nil}, nil
	}))
	r.Workflow, err = b.Build()
	return r, err
}
