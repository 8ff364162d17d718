package runs_test

import (
	"context"
	"fmt"
	"time"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/runs"
	"github.com/tasq-dev/tasq/engine/schedules"
	"github.com/tasq-dev/tasq/internal/virtual"
	"github.com/tasq-dev/tasq/limit"
	"github.com/tasq-dev/tasq/schedule"
	"github.com/tasq-dev/tasq/store/sqlite"
	"github.com/tasq-dev/tasq/workflow"
)

// Mail is one of many e-mails.
type Mail struct{ Customer, To string }

// Many e-mails: 100 a minute in all, five at once for each customer, one a day to each address; and a digest at 08:00 in Berlin on
// weekdays.
func Example() {
	ctx, clock := context.Background(), virtual.NewClock() // a program leaves the clock out
	check := func(err error) {
		if err != nil {
			panic(err)
		}
	}
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
	for i := range 1000 {
		mails = append(mails, Mail{Customer: fmt.Sprint("customer ", i%7), To: fmt.Sprintf("%d@example.org", i)})
	}
	berlin, err := time.LoadLocation("Europe/Berlin")
	check(err)
	daily := func(m Mail) []workflow.Option {
		return []workflow.Option{workflow.Key("mail " + m.To + e.Now().In(berlin).Format(" 2006-01-02"))}
	}
	handles, err := runs.Start(ctx, e, mail, mails, daily)
	check(err)
	again, err := runs.Start(ctx, e, mail, mails, daily)
	check(err)
	fmt.Println(len(handles), "runs, and the same again:", again[0].ID == handles[0].ID)

	check(clock.Advance(ctx, e, 8*time.Hour))
	receipts, err := runs.All(ctx, e, handles...)
	fmt.Println(len(receipts), receipts[999], err)
	last, err := schedules.Find(ctx, e, "digest")
	check(err)
	fmt.Println("the digest of", last.Latest.Tick.In(berlin).Format(time.RFC1123))
	// Output:
	// 1000 runs, and the same again: true
	// 1000 sent to 999@example.org <nil>
	// the digest of Tue, 01 Jan 2030 08:00:00 CET
}
