package store

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/tasq-dev/tasq/workitem"
)

// Rate is how many work items of a task ended, and how long they took from their start to their end.
type Rate struct {
	Workflow string
	Task     string
	Hour     time.Time // the hour in which they ended, by its beginning in UTC; zero if all hours are one
	Done     int       // items that completed
	Failed   int       // items that failed, each attempt of its own
	P50      time.Duration
	P95      time.Duration // of those that completed; zero if none has
}

// RateFilter selects what [Rates] looks at; a zero field selects all.
type RateFilter struct {
	Workflow string
	Task     string
	Since    time.Time // items created at or after
	Before   time.Time // items created before
	Hourly   bool      // one Rate for each hour
	Max      int       // at most so many items are looked at, the newest first; 0 is MaxRated
}

// MaxRated is how many items [Rates] looks at by default.
const MaxRated = 100_000

// Rates counts the work items that ended by workflow, task and, if asked, hour, sorted by that, the newest hour first. A percentile is the
// duration that at least so many of the completed items did not exceed. It costs a look at each item of the filter, ended or not, up to
// the bound; all is false if there were more, and the oldest of them are missing then.
func Rates(ctx context.Context, v Viewer, f RateFilter) (rates []Rate, all bool, err error) {
	var groups rateGroups
	all, err = groups.read(ctx, v, f)
	if f.Hourly {
		return groups.hours.rates(), all, err
	}
	return groups.tasks.rates(), all, err
}

// TaskAndHourRates is [Rates] by task, and by task and hour, of one look at the items. Hourly of the filter has no meaning.
func TaskAndHourRates(ctx context.Context, v Viewer, f RateFilter) (tasks, hours []Rate, all bool, err error) {
	var groups rateGroups
	all, err = groups.read(ctx, v, f)
	return groups.tasks.rates(), groups.hours.rates(), all, err
}

// rateGroups are the items that ended, by task, and by task and hour.
type rateGroups struct{ tasks, hours rateGroup }

type rateKey struct {
	workflow, task string
	hour           time.Time
}

type rateGroup map[rateKey]*ended

// ended is what is known of the items of a group.
type ended struct {
	failed int
	took   []time.Duration
}

// read looks at the items of a filter; false if there are more than its bound.
func (g *rateGroups) read(ctx context.Context, v Viewer, f RateFilter) (all bool, err error) {
	most := f.Max
	if most <= 0 {
		most = MaxRated
	}
	g.tasks, g.hours = make(rateGroup), make(rateGroup)
	seen := 0
	items := ItemFilter{Page: Page{Desc: true, Limit: most + 1}, Workflow: f.Workflow, Task: f.Task, Since: f.Since, Before: f.Before}
	for it, err := range AllItems(ctx, v, items) {
		if err != nil {
			return false, err
		}
		if seen++; seen > most {
			return false, nil
		}
		if it.State == workitem.Completed || it.State == workitem.Failed {
			g.tasks.add(rateKey{it.Workflow, it.Task, time.Time{}}, it.Item)
			g.hours.add(rateKey{it.Workflow, it.Task, it.Ended.UTC().Truncate(time.Hour)}, it.Item)
		}
	}
	return true, nil
}

func (g rateGroup) add(k rateKey, it *workitem.Item) {
	e := g[k]
	if e == nil {
		e = new(ended)
		g[k] = e
	}
	if it.State == workitem.Failed {
		e.failed++
		return
	}
	e.took = append(e.took, took(it))
}

func (g rateGroup) rates() (rates []Rate) {
	for k, e := range g {
		slices.Sort(e.took)
		rates = append(rates, Rate{Workflow: k.workflow, Task: k.task, Hour: k.hour, Done: len(e.took), Failed: e.failed,
			P50: percentile(e.took, 50), P95: percentile(e.took, 95)})
	}
	slices.SortFunc(rates, func(a, b Rate) int {
		return cmp.Or(cmp.Compare(a.Workflow, b.Workflow), cmp.Compare(a.Task, b.Task), b.Hour.Compare(a.Hour))
	})
	return rates
}

// took is how long an item took that has completed.
func took(it *workitem.Item) time.Duration {
	if it.Started.IsZero() {
		return 0
	}
	return max(it.Ended.Sub(it.Started), 0)
}

// percentile is the smallest of sorted durations that at least so many of a hundred do not exceed.
func percentile(sorted []time.Duration, of int) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[max((len(sorted)*of+99)/100, 1)-1]
}
