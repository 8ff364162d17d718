package schedules

import (
	"fmt"
	"strings"
	"time"

	"github.com/tasq-dev/tasq/internal/printable"
	"github.com/tasq-dev/tasq/schedule"
)

// listedTicks is how many ticks the words of Would name.
const listedTicks = 5

// Would says in words what a command of [CommandFor] on the schedule would start: the ticks of the period of a "backfill", the run of "run",
// and the next tick after "resume", "pause" and "remove". It is nil for any other command.
func (i *Info) Would(what string, from, to, now time.Time) ([]string, error) {
	table, err := i.Schedule.Compile()
	if err != nil {
		return nil, err
	}
	ticks := i.Next(now, 1)
	next := "no further tick"
	if len(ticks) > 0 {
		next = "the tick of " + tickTime(ticks[0])
	}
	switch what {
	case doPause:
		if i.Schedule.Paused {
			return []string{"it is paused already"}, nil
		}
		return []string{"no run starts from now on, also " + next + " does not"}, nil
	case doResume:
		if !i.Schedule.Paused {
			return []string{"it is not paused"}, nil
		}
		words := []string{"the next run is that of " + next}
		if len(ticks) == 0 {
			words = []string{"no run starts: there is " + next}
		}
		if n := len(i.Waiting); n > 0 {
			words = append(words, printable.Plural(n, "tick")+" that waited before start, too")
		}
		return words, nil
	case doRun:
		return []string{"a run of " + i.Start.Workflow + " starts now"}, nil
	case doRemove:
		return []string{"no run starts from now on; " + next + " is dropped, and " + printable.Plural(len(i.Waiting), "tick") + " that wait"}, nil
	case doBackfill:
		var filled []time.Time // in the zone of the schedule
		for tick := range table.Between(from, to) {
			if filled = append(filled, tick); len(filled) > MaxBackfill {
				break
			}
		}
		return []string{i.wouldFill(filled)}, nil
	}
	return nil, nil
}

// wouldFill says which ticks a backfill starts.
func (i *Info) wouldFill(ticks []time.Time) string {
	var some []string
	for _, t := range ticks[:min(len(ticks), listedTicks)] {
		some = append(some, tickTime(t))
	}
	list := strings.Join(some, ", ")
	switch n := len(ticks); {
	case n == 0:
		return "no run starts: the period has no tick"
	case n > MaxBackfill:
		return fmt.Sprintf("it is refused: the period has more than %d ticks; backfill a shorter one", MaxBackfill)
	case n > listedTicks:
		list += fmt.Sprintf(" and %d more", n-listedTicks)
	}
	how := "one after the other"
	if i.Schedule.Overlap == schedule.OverlapAllow {
		how = "all at once"
	}
	if i.Schedule.Paused {
		how += ", once the schedule is resumed"
	}
	return fmt.Sprintf("%s of %s, %s, but for ticks that have a run: %s", printable.Plural(len(ticks), "run"), i.Start.Workflow, how, list)
}

func tickTime(t time.Time) string { return t.Format("2006-01-02 15:04:05 MST") }
