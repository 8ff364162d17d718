package store

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/tasq-dev/tasq/workitem"
)

// Rate counts the ended work items of a task, with their durations from start to end; or the ended cases of a workflow, with their
// durations from creation to end.
type Rate struct {
	Workflow string
	Task     string    // "" for cases
	Hour     time.Time // the hour in which they ended, by its beginning in UTC; zero if all hours are one
	Done     int       // those that completed
	Failed   int       // those that failed, each attempt of an item of its own
	P50      time.Duration
	P95      time.Duration // of those that completed; zero if none has
}

// RateFilter selects what [Rates] counts; a zero field selects all.
type RateFilter struct {
	Workflow string
	Task     string    // of the work items; ignored for cases
	Since    time.Time // what ended in the hour of this time, or later
	Before   time.Time // what ended in an hour that begins before this time
	Hourly   bool      // one Rate for each hour
	Cases    bool      // cases, instead of work items
}

// Rates counts ended work items by workflow, task and, with Hourly, hour, in that order, the newest hour first; or ended cases by workflow.
// Percentiles are accurate to 6 %, since they are computed from the counts of Ended, a histogram of durations by hour, without reading
// items or cases.
func Rates(ctx context.Context, v Viewer, f RateFilter) ([]Rate, error) {
	all, err := endedBy(ctx, v, f)
	return ratesOf(all, func(e Ended) time.Time { return e.Hour }), err
}

// TaskAndHourRates returns Rates by task, and by task and hour. Hourly of the filter is ignored.
func TaskAndHourRates(ctx context.Context, v Viewer, f RateFilter) (tasks, hours []Rate, err error) {
	f.Hourly = true
	all, err := endedBy(ctx, v, f)
	tasks = ratesOf(all, func(Ended) time.Time { return time.Time{} })
	return tasks, ratesOf(all, func(e Ended) time.Time { return e.Hour }), err
}

func endedBy(ctx context.Context, v Viewer, f RateFilter) (all []Ended, err error) {
	err = v.View(ctx, func(r Reader) error {
		all, err = r.Ended(ctx, f)
		return err
	})
	return all, err
}

// ratesOf are the rates of what ended, by the hour that is taken of it.
func ratesOf(all []Ended, hour func(Ended) time.Time) []Rate {
	g := make(rateGroup)
	for _, e := range all {
		g.add(rateKey{e.Workflow, e.Task, hour(e)}, e)
	}
	return g.rates()
}

type rateKey struct {
	workflow, task string
	hour           time.Time
}

type rateGroup map[rateKey]*rateCounts

// rateCounts is what is known of the items or cases of a group.
type rateCounts struct {
	done, failed int64
	took         map[int]int64 // those that completed, by class
}

func (g rateGroup) add(k rateKey, e Ended) {
	c := g[k]
	if c == nil {
		c = &rateCounts{took: make(map[int]int64)}
		g[k] = c
	}
	if e.State == workitem.Failed {
		c.failed += e.N
		return
	}
	c.done += e.N
	c.took[e.Took] += e.N
}

func (g rateGroup) rates() (rates []Rate) {
	for k, c := range g {
		rates = append(rates, Rate{Workflow: k.workflow, Task: k.task, Hour: k.hour, Done: int(c.done), Failed: int(c.failed),
			P50: c.percentile(50), P95: c.percentile(95)})
	}
	slices.SortFunc(rates, func(a, b Rate) int {
		return cmp.Or(cmp.Compare(a.Workflow, b.Workflow), cmp.Compare(a.Task, b.Task), b.Hour.Compare(a.Hour))
	})
	return rates
}

// percentile is the middle of the lowest class up to which so many of a hundred are.
func (c *rateCounts) percentile(of int64) time.Duration {
	wanted := max((c.done*of+99)/100, 1)
	for _, class := range slices.Sorted(maps.Keys(c.took)) {
		if wanted -= c.took[class]; wanted <= 0 {
			return TookOf(class)
		}
	}
	return 0
}
