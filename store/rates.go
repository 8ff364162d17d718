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

	// Of the ended work items that had been started: from when they were due to their start, see [Waited].
	Started   int
	WaitedP50 time.Duration
	WaitedP95 time.Duration
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
func Rates(ctx context.Context, v Viewer, f RateFilter) (rates []Rate, err error) {
	err = v.View(ctx, func(r Reader) error {
		all, err := r.Ended(ctx, f)
		rates = RatesOf(all, ByHour)
		return err
	})
	return rates, err
}

// RatesOf returns rates of what Ended has counted, by [ByHour], [ByTask] or [ByWorkflow].
func RatesOf(all []Ended, by func(Ended) Ended) []Rate {
	g := make(rateGroup)
	for _, e := range all {
		e = by(e)
		g.add(rateKey{e.Workflow, e.Task, e.Hour}, e)
	}
	return g.rates()
}

// ByHour counts by workflow, task and hour, as far as the counts have them.
func ByHour(e Ended) Ended { return e }

// ByTask counts the hours together.
func ByTask(e Ended) Ended {
	e.Hour = time.Time{}
	return e
}

// ByWorkflow counts the hours and the tasks together.
func ByWorkflow(e Ended) Ended {
	e.Task = ""
	return ByTask(e)
}

type rateKey struct {
	workflow, task string
	hour           time.Time
}

type rateGroup map[rateKey]*rateCounts

// rateCounts is what is known of the items or cases of a group.
type rateCounts struct {
	failed int64
	took   histogram // those that completed
	waited histogram // those that were started
}

// histogram is the number of durations by class.
type histogram map[int]int64

// An item that waited a minute and then completed is in two counts: its wait has the state started.
func (g rateGroup) add(k rateKey, e Ended) {
	c := g[k]
	if c == nil {
		c = &rateCounts{took: make(histogram), waited: make(histogram)}
		g[k] = c
	}
	switch e.State {
	case workitem.Failed:
		c.failed += e.N
	case workitem.Started:
		c.waited[e.Took] += e.N
	default:
		c.took[e.Took] += e.N
	}
}

func (g rateGroup) rates() (rates []Rate) {
	for k, c := range g {
		done, started := c.took.sum(), c.waited.sum()
		rates = append(rates, Rate{Workflow: k.workflow, Task: k.task, Hour: k.hour, Done: int(done), Failed: int(c.failed),
			P50: c.took.percentile(50, done), P95: c.took.percentile(95, done),
			Started: int(started), WaitedP50: c.waited.percentile(50, started), WaitedP95: c.waited.percentile(95, started)})
	}
	slices.SortFunc(rates, func(a, b Rate) int {
		return cmp.Or(cmp.Compare(a.Workflow, b.Workflow), cmp.Compare(a.Task, b.Task), b.Hour.Compare(a.Hour))
	})
	return rates
}

func (h histogram) sum() (n int64) {
	for _, in := range h {
		n += in
	}
	return n
}

// percentile is the middle of the lowest class up to which so many of a hundred are, of the given sum.
// The rank is rounded up: of ten durations, the 95th percentile is the tenth, and the 50th is the fifth. It is at
// least 1, so that one duration is each of its percentiles.
func (h histogram) percentile(of, sum int64) time.Duration {
	wanted := max((sum*of+99)/100, 1)
	for _, class := range slices.Sorted(maps.Keys(h)) {
		if wanted -= h[class]; wanted <= 0 {
			return TookOf(class)
		}
	}
	return 0
}
