package schedules_test

import (
	"context"
	"fmt"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/schedules"
	"github.com/tasq-dev/tasq/schedule"
	"github.com/tasq-dev/tasq/store/sqlite"
	"github.com/tasq-dev/tasq/workflow"
)

// A function that is run each night, declared in code.
func Example() {
	ctx := context.Background()
	type Clean struct{ Days int }
	clean := builder.MustFunc("clean", func(ctx context.Context, c Clean) (string, error) {
		w, _ := builder.WorkFrom(ctx)
		tick, _ := workflow.TickOf(w.Case)
		return "cleaned for " + tick.Schedule, nil
	})
	nightly := builder.Schedule(schedule.Schedule{Name: "nightly", Cron: "30 2 * * *", Zone: "Europe/Berlin"}, clean, Clean{Days: 30})
	s := schedules.New(engine.Code, nightly)
	e, err := engine.Open(ctx, sqlite.Memory(), clean, s)
	if err != nil {
		panic(err)
	}
	defer e.Close()
	report, err := s.Serve(ctx, e)
	fmt.Println(report.Added, err)

	// Not only at night.
	fmt.Println(schedules.Run(ctx, e, "nightly", workflow.By("ann")))
	found, err := schedules.Find(ctx, e, "nightly")
	if err != nil {
		panic(err)
	}
	fmt.Println(clean.Of(found.Latest.Case).Result(ctx, e))
	// Output:
	// [nightly] <nil>
	// <nil>
	// cleaned for nightly <nil>
}
