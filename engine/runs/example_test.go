package runs_test

import (
	"context"
	"fmt"
	"time"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/engine/runs"
	"github.com/tasq-dev/tasq/engine/schedules"
	"github.com/tasq-dev/tasq/limit"
	"github.com/tasq-dev/tasq/schedule"
	"github.com/tasq-dev/tasq/store/sqlite"
	"github.com/tasq-dev/tasq/workflow"
)

func check(err error) {
	if err != nil {
		panic(err)
	}
}

// Mail is one of many e-mails.
type Mail struct{ Customer, To string }

// Example_emails sends many e-mails: 100 a minute in all, five at once for each customer, one a day to each address; and a digest at 08:00 in Berlin on
// weekdays.
func Example_emails() {
	ctx, clock := context.Background(), enginetest.NewClock() // a program leaves the clock out
	mail := builder.MustFunc("mail", func(_ context.Context, m Mail) (string, error) { return "sent to " + m.To, nil },
		builder.Limits(
			builder.Takes(limit.Calls(100, time.Minute), 0),
			builder.TakesBy(limit.Resource("customer", 5), 1, func(m Mail) string { return m.Customer }),
		))
	digest := builder.MustFunc("digest", func(ctx context.Context, _ struct{}) (string, error) { return "sent", nil })
	s := schedules.New(engine.Code, builder.Schedule(
		schedule.Schedule{Name: "digest", Cron: "0 8 * * mon-fri", Zone: "Europe/Berlin"}, digest, struct{}{}))

	e, err := engine.Config{Clock: clock}.Open(ctx, sqlite.Memory(), mail, digest, s)
	check(err)
	defer e.Close()
	_, err = s.Serve(ctx, e)
	check(err)

	var mails []Mail
	for i := range 10_000 {
		mails = append(mails, Mail{Customer: fmt.Sprint("customer ", i%7), To: fmt.Sprintf("%d@example.org", i)})
	}
	daily := func(m Mail) []workflow.Option {
		return []workflow.Option{workflow.BusinessKey(m.To), workflow.OncePer(workflow.Day, "Europe/Berlin"), workflow.IfTaken(workflow.Return)}
	}
	handles, err := runs.Start(ctx, e, mail, mails, daily)
	check(err)
	again, err := runs.Start(ctx, e, mail, mails, daily)
	check(err)
	fmt.Println(len(handles), "runs, and the same again:", again[0].ID == handles[0].ID)

	check(clock.Advance(ctx, e, 8*time.Hour))
	receipts, err := runs.All(ctx, e, handles...)
	check(err)
	fmt.Println(len(receipts), "mails, the last", receipts[9_999])
	tick, err := schedules.Find(ctx, e, "digest")
	check(err)
	fmt.Println("the digest of", tick.Latest.Tick.Format(time.RFC1123))
	// Output:
	// 10000 runs, and the same again: true
	// 10000 mails, the last sent to 9999@example.org
	// the digest of Tue, 01 Jan 2030 07:00:00 UTC
}
