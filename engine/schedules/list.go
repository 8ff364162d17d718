package schedules

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// Info is the current state of a schedule.
type Info struct {
	State
	Case  workitem.CaseID `json:"case"`            // its current case, which ends with the next tick or command
	Since time.Time       `json:"since"`           // when that was started
	Ended bool            `json:"ended,omitempty"` // the schedule was removed
	ended request         // the request that ended its current case; the zero value if it has not ended
}

func (i *Info) live() bool { return !i.Ended }

// Word returns the state of the schedule: "active", "paused", "waiting" for runs to end before further ticks begin,
// "failing" if the latest tick could not begin, or "over" if there are no more ticks.
func (i *Info) Word(now time.Time) string {
	switch {
	case i.Schedule.Paused:
		return "paused"
	case len(i.Waiting) > 0:
		return "waiting"
	case i.Latest != nil && i.Latest.Error != nil:
		return "failing"
	case len(i.Next(now, 1)) == 0:
		return "over"
	}
	return "active"
}

// Next returns the next n ticks that have not been processed, in the time zone of the schedule, as if it were not
// paused.
func (i *Info) Next(now time.Time, n int) (ticks []time.Time) {
	table, err := i.Schedule.Compile()
	if err != nil || n <= 0 {
		return nil
	}
	after := now
	if i.Last.After(now) { // the clock was set back
		after = i.Last
	}
	for tick := range table.After(after) {
		if ticks = append(ticks, tick); len(ticks) == n {
			break
		}
	}
	return ticks
}

// Past returns the last n ticks up to a time, latest first, in the time zone of the schedule: those since it was added, or its times were
// changed. It looks back four years at most.
func (i *Info) Past(now time.Time, n int) (ticks []time.Time) {
	table, err := i.Schedule.Compile()
	if err != nil || n <= 0 || i.Last.IsZero() {
		return nil
	}
	for span := time.Minute; len(ticks) < n && span < 4*366*24*time.Hour; span *= 4 {
		ticks = ticks[:0]
		for tick := range table.After(later(now.Add(-span), i.From)) {
			if tick.After(now) {
				break
			}
			ticks = append(ticks, tick)
		}
	}
	slices.Reverse(ticks)
	return ticks[:min(n, len(ticks))]
}

// Overdue returns the time of a tick that has been due for longer than the given duration and has not begun; zero if
// there is none. A cause is that no engine is open, or none with this workflow.
func (i *Info) Overdue(now time.Time, by time.Duration) time.Time {
	table, err := i.Schedule.Compile()
	if err != nil || i.Schedule.Paused || i.Last.IsZero() {
		return time.Time{}
	}
	tick := table.Next(i.Last)
	if tick.IsZero() || now.Sub(table.Begin(tick)) <= by {
		return time.Time{}
	}
	return table.Begin(tick)
}

// List returns the schedules, sorted by name.
func List(ctx context.Context, v store.Viewer) ([]*Info, error) {
	var list []*Info
	for i, err := range all(ctx, v, store.CaseFilter{States: []state.CaseState{state.CaseStarted}}) {
		if err != nil {
			return nil, err
		}
		list = append(list, i)
	}
	slices.SortFunc(list, func(a, b *Info) int { return cmp.Compare(a.Schedule.Name, b.Schedule.Name) })
	return list, nil
}

// Find returns a schedule by name. The error wraps store.ErrNotFound if there is none.
func Find(ctx context.Context, v store.Viewer, name string) (*Info, error) {
	found, err := find(ctx, v, name)
	if err == nil && found.Ended {
		err = fmt.Errorf("schedule %q was removed: %w", name, store.ErrNotFound)
	}
	if err != nil {
		return nil, err
	}
	return found, nil
}

// find is like Find, but also returns a removed schedule whose last case is still stored.
func find(ctx context.Context, v store.Viewer, name string) (*Info, error) {
	live := []state.CaseState{state.CaseStarted}
	for _, states := range [][]state.CaseState{live, nil} {
		for i, err := range all(ctx, v, store.CaseFilter{States: states, Page: store.Page{Desc: true}}) {
			if err != nil {
				return nil, err
			}
			if i.Schedule.Name == name {
				return i, nil
			}
		}
	}
	return nil, fmt.Errorf("there is no schedule %q: %w", name, store.ErrNotFound)
}

// all lists the cases of schedules.
func all(ctx context.Context, v store.Viewer, f store.CaseFilter) iter.Seq2[*Info, error] {
	f.Workflow, f.RootOnly = Name, true
	return func(yield func(*Info, error) bool) {
		for c, err := range store.AllCases(ctx, v, f) {
			i := &Info{}
			if err == nil {
				i, err = infoOf(c)
			}
			if !yield(i, err) || err != nil {
				return
			}
		}
	}
}

// infoOf reads the case of a schedule.
func infoOf(c *state.Case) (*Info, error) {
	i := &Info{Case: c.ID, Since: c.Created, Ended: c.State.Final()}
	if err := json.Unmarshal(c.Input, &i.State); err != nil {
		return nil, fmt.Errorf("the schedule of case %s cannot be read: %w", c.ID, err)
	}
	if c.Failure != nil {
		_ = json.Unmarshal(c.Failure.Details, &i.ended) // details that are no request end the schedule
	}
	return i, nil
}

// Outcome returns the state of the run that began last, and its failure. The state is "" if no run has begun, and
// "removed" if the run is no longer stored.
func (i *Info) Outcome(ctx context.Context, r store.Finder) (string, *workitem.Failure, error) {
	switch {
	case i.Latest == nil:
		return "", nil, nil
	case i.Latest.Case.IsZero():
		return "not started", i.Latest.Error, nil
	}
	found, err := r.Cases(ctx, store.CaseFilter{ID: i.Latest.Case})
	switch {
	case err != nil:
		return "", nil, err
	case len(found) == 0:
		return "removed", nil, nil
	}
	return found[0].State.String(), found[0].Failure, nil
}

// Of returns the state of the schedule that a case belongs to; false if it is not a case of a schedule.
func Of(c activities.CaseInfo) (*State, bool) {
	var s State
	if c.Workflow != Name || json.Unmarshal(c.Input, &s) != nil {
		return nil, false
	}
	return &s, true
}
