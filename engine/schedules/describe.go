package schedules

import (
	"context"
	"encoding/json"
	"time"

	"github.com/tasq-dev/tasq/internal/printable"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workitem"
)

// Description describes a schedule for the command line and the pages. Its JSON form is stable. Times of ticks are in
// the time zone of the schedule.
type Description struct {
	Name     string            `json:"name"`
	Spec     string            `json:"spec"` // the cron expression, or "every 5m"
	Zone     string            `json:"zone"`
	State    string            `json:"state"` // see [Info.Word]
	Overlap  string            `json:"overlap"`
	CatchUp  string            `json:"catch_up"`
	Starts   string            `json:"starts"` // the workflow that it starts
	Input    json.RawMessage   `json:"input,omitempty"`
	Case     workitem.CaseID   `json:"case"`
	Declared bool              `json:"declared"` // by a program
	Last     []time.Time       `json:"last"`     // ticks, latest first
	Next     []time.Time       `json:"next"`
	Waiting  []time.Time       `json:"waiting,omitempty"`
	Latest   *Latest           `json:"latest,omitempty"`
	Outcome  string            `json:"outcome,omitempty"`
	Failure  *workitem.Failure `json:"failure,omitempty"`
	Skipped  int               `json:"skipped,omitempty"`
	Missed   int               `json:"missed,omitempty"`
	Overdue  time.Time         `json:"overdue_since,omitzero"`
	Changes  []Change          `json:"changes,omitempty"`
}

const (
	someTimes    = 5                // number of last and next ticks in a description
	overdueAfter = 10 * time.Second // a tick with a smaller delay is not overdue
)

// Describe returns the description of the schedule at a time.
func (i *Info) Describe(ctx context.Context, r store.Finder, now time.Time) (*Description, error) {
	outcome, failure, err := i.Outcome(ctx, r)
	s := i.Schedule
	d := &Description{Name: s.Name, Spec: s.Cron, Zone: s.Zone, State: i.Word(now), Overlap: s.Overlap.String(), CatchUp: s.CatchUp.String(),
		Starts: i.Start.Workflow, Input: i.Start.Payload, Case: i.Case, Declared: i.Declared != "", Last: i.Past(now, someTimes), Next: i.Next(now, someTimes),
		Waiting: i.Waiting, Latest: i.Latest, Outcome: outcome, Failure: failure, Skipped: i.Skipped, Missed: i.Missed,
		Overdue: i.Overdue(now, overdueAfter), Changes: i.Changes}
	if s.Every != 0 {
		d.Spec = "every " + printable.Duration(s.Every)
	}
	if d.Zone == "" {
		d.Zone = "UTC"
	}
	return d, err
}
