package compensate_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/recipes/compensate"
	"github.com/tasq-dev/tasq/store/sqlite"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// company says what it does. It answers with err, if there is one, the given number of times.
type company struct {
	name  string
	err   error
	times int
}

func (c *company) Book(_ context.Context, t compensate.Trip) (compensate.Booking, error) {
	if c.err != nil && c.times > 0 {
		c.times--
		fmt.Printf("%s for %s: %v\n", c.name, t.City, c.err)
		return compensate.Booking{}, c.err
	}
	fmt.Printf("%s for %s: booked\n", c.name, t.City)
	return compensate.Booking{Reference: c.name + "-1"}, nil
}

func (c *company) Cancel(_ context.Context, b compensate.Booking) (struct{}, error) {
	fmt.Printf("%s canceled\n", b.Reference)
	return struct{}{}, nil
}

var trip = compensate.Trip{Traveller: "Ann", City: "Rome", Nights: 3}

// There is a flight, and a hotel, and no car.
func Example() {
	ctx := context.Background()
	car := &company{name: "car", err: workitem.Fatal(workitem.Failf("sold-out", "no car is left")), times: 1}
	recipe := must(compensate.New(&company{name: "flight"}, &company{name: "hotel"}, car))
	e := must(engine.Open(ctx, sqlite.Memory(), recipe))
	defer e.Close()
	id := must(recipe.Start(ctx, e, trip))
	c := must(e.Wait(ctx, id))
	fmt.Printf("the case is %s: %s\n", c.State, c.Output)
	// Output:
	// flight for Rome: booked
	// hotel for Rome: booked
	// car for Rome: sold-out: no car is left
	// hotel-1 canceled
	// flight-1 canceled
	// the case is completed: {"booked":false}
}

func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}

func TestEveryStepThatFailsUndoesThoseBefore(t *testing.T) {
	soldOut := workitem.Fatal(errors.New("sold out"))
	for _, c := range []struct {
		name       string
		fails      int // which company; 0 is none
		err        error
		times      int
		after      time.Duration
		want       []string
		wantOutput string
	}{
		{"nothing fails", 0, nil, 0, 0, []string{"flight.1.1 completed", "hotel.1.1 completed", "car.1.1 completed"}, "true"},
		{"no flight", 1, soldOut, 1, 0, []string{"flight.1.1 failed"}, "false"},
		{"no hotel", 2, soldOut, 1, 0, []string{
			"flight.1.1 completed", "hotel.1.1 failed", "cancel-flight.1.1 completed"}, "false"},
		{"no car", 3, soldOut, 1, 0, []string{
			"flight.1.1 completed", "hotel.1.1 completed", "car.1.1 failed", "cancel-hotel.1.1 completed",
			"cancel-flight.1.1 completed"}, "false"},
		{"a hotel that is busy once", 2, errors.New("line is busy"), 1, time.Second, []string{
			"flight.1.1 completed", "hotel.1.1 failed", "hotel.1.2 completed", "car.1.1 completed"}, "true"},
		{"a flight that is busy for ever", 1, errors.New("line is busy"), 99, time.Minute, []string{
			"flight.1.1 failed", "flight.1.2 failed", "flight.1.3 failed", "flight.1.4 failed"}, "false"},
	} {
		t.Run(c.name, func(t *testing.T) {
			companies := []*company{{name: "flight"}, {name: "hotel"}, {name: "car"}}
			if c.fails > 0 {
				companies[c.fails-1].err, companies[c.fails-1].times = c.err, c.times
			}
			recipe, err := compensate.New(companies[0], companies[1], companies[2])
			require.NoError(t, err)
			enginetest.Sound(t, recipe)
			e := enginetest.New(t, recipe)
			id, err := recipe.Start(t.Context(), e, trip)
			require.NoError(t, err)
			e.Advance(c.after)
			k, err := e.Case(t.Context(), id)
			require.NoError(t, err)
			require.Equal(t, state.CaseCompleted, k.State)
			require.JSONEq(t, `{"booked":`+c.wantOutput+`}`, string(k.Output))
			require.Equal(t, c.want, e.States(id))
		})
	}
}
