package schedule_test

import (
	"fmt"
	"time"

	"github.com/tasq-dev/tasq/schedule"
)

// A digest on weekdays at eight in Berlin, whatever the clocks do.
func ExampleCron() {
	digest, err := schedule.Cron("0 8 * * mon-fri", "Europe/Berlin")
	if err != nil {
		fmt.Println(err)
		return
	}
	friday := time.Date(2030, 3, 29, 12, 0, 0, 0, time.UTC)
	n := 0
	for tick := range digest.After(friday) {
		fmt.Println(tick.Format("Mon 2 Jan 15:04 MST"), "=", tick.UTC().Format("15:04 MST"))
		if n++; n == 2 {
			break
		}
	}
	// Output:
	// Mon 1 Apr 08:00 CEST = 06:00 UTC
	// Tue 2 Apr 08:00 CEST = 06:00 UTC
}

// What runs schedules keeps one time for each. Here it was down from one to half past four.
func ExampleTimetable_Due() {
	hourly, err := schedule.Schedule{Name: "report", Cron: "@hourly", CatchUp: schedule.CatchUpAll, CatchUpMost: 2}.Compile()
	if err != nil {
		fmt.Println(err)
		return
	}
	last := time.Date(2030, 1, 1, 1, 0, 0, 0, time.UTC) // from the store
	now := time.Date(2030, 1, 1, 4, 30, 0, 0, time.UTC)
	due := hourly.Due(last, now)
	for _, tick := range due.Ticks {
		fmt.Println("begin", tick.Format(time.TimeOnly))
	}
	fmt.Println("left out some:", due.LeftOut)
	fmt.Println("store", due.Last.Format(time.TimeOnly), "and ask again at", due.Next.Format(time.TimeOnly))
	// Output:
	// begin 03:00:00
	// begin 04:00:00
	// left out some: true
	// store 04:00:00 and ask again at 05:00:00
}

// Only at night, which goes over midnight.
func ExampleParseWindow() {
	night, err := schedule.ParseWindow("22:00-06:00", "Europe/Berlin")
	if err != nil {
		fmt.Println(err)
		return
	}
	noon := time.Date(2030, 1, 1, 12, 0, 0, 0, night.Location())
	open := night.Open(noon)
	fmt.Println(night.Contains(noon), open.Format("Jan 2 15:04"), night.Close(open).Format("Jan 2 15:04"))
	// Output: false Jan 1 22:00 Jan 2 06:00
}
