package api

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/tasq-dev/tasq/admin/internal/access"
	"github.com/tasq-dev/tasq/engine/schedules"
	"github.com/tasq-dev/tasq/schedule"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workflow"
)

// newSchedule is the body of a request that adds or changes a schedule. It has the fields of tasq schedule add.
type newSchedule struct {
	Name        string          `json:"name"`
	Workflow    string          `json:"workflow"`        // of the cases
	Input       json.RawMessage `json:"input,omitempty"` // of the cases
	Cron        string          `json:"cron,omitempty"`
	Every       string          `json:"every,omitempty"` // a duration such as 5m, like jitter and grace
	Zone        string          `json:"zone,omitempty"`
	Start       time.Time       `json:"start,omitzero"`
	End         time.Time       `json:"end,omitzero"`
	Jitter      string          `json:"jitter,omitempty"`
	Overlap     string          `json:"overlap,omitempty"`  // "skip" if it is empty
	CatchUp     string          `json:"catch_up,omitempty"` // "none" if it is empty
	CatchUpMost int             `json:"catch_up_most,omitempty"`
	Grace       string          `json:"grace,omitempty"`
	Paused      bool            `json:"paused,omitempty"`
	Reason      string          `json:"reason,omitempty"`
	DryRun      bool            `json:"dryRun,omitempty"` // answer what it would do
}

// scheduled returns the schedule that the body describes. Its error wraps workflow.ErrBadCommand.
func (n *newSchedule) scheduled() (workflow.Scheduled, error) {
	s := schedule.Schedule{Name: n.Name, Cron: n.Cron, Zone: n.Zone, Start: n.Start, End: n.End, CatchUpMost: n.CatchUpMost, Paused: n.Paused}
	err := errors.Join(s.Overlap.UnmarshalText([]byte(cmp.Or(n.Overlap, schedule.OverlapSkip.String()))),
		s.CatchUp.UnmarshalText([]byte(cmp.Or(n.CatchUp, schedule.CatchUpNone.String()))),
		readDuration("every", n.Every, &s.Every), readDuration("jitter", n.Jitter, &s.Jitter), readDuration("grace", n.Grace, &s.Grace))
	out := workflow.Scheduled{Schedule: s, Start: workflow.Start(n.Workflow, n.Input)}
	if err != nil {
		return out, fmt.Errorf("%w: %w", workflow.ErrBadCommand, err)
	}
	if err = out.Check(); errors.Is(err, schedule.ErrInvalid) {
		err = fmt.Errorf("%w: %w", workflow.ErrBadCommand, err)
	}
	return out, err
}

// readDuration parses the text of a field, if there is one.
func readDuration(field, text string, to *time.Duration) (err error) {
	if text == "" {
		return nil
	}
	if *to, err = time.ParseDuration(text); err != nil {
		return fmt.Errorf("%s %q: write a duration such as 90s or 5m", field, text)
	}
	return nil
}

// addSchedule adds a schedule, or changes the one with its name. The user needs the rights to command the schedule and to
// start the workflow.
func (a *API) addSchedule(w http.ResponseWriter, r *http.Request) {
	var n newSchedule
	if err := readBody(w, r, "a schedule", &n); err != nil {
		Problem(w, err)
		return
	}
	s, err := n.scheduled()
	if err != nil {
		Problem(w, err)
		return
	}
	if u := access.UserOf(r.Context()); !allow(w, u, schedules.Name, n.Name) || !allow(w, u, string(workflow.KindStart), n.Workflow) {
		return
	}
	if n.DryRun {
		command, err := schedules.AddCommand(r.Context(), a.Backend, s, scheduleOptions(r, n.Reason)...)
		if err != nil {
			Problem(w, err)
			return
		}
		a.dryRun(w, r, command)
		return
	}
	if _, err := schedules.Add(r.Context(), a.Backend, s, scheduleOptions(r, n.Reason)...); err != nil {
		Problem(w, err)
		return
	}
	var d *schedules.Description
	err = a.Backend.View(r.Context(), func(v store.Reader) error {
		i, err := schedules.Find(r.Context(), store.ViewerOf(v), n.Name)
		if err == nil {
			d, err = maskedSchedule(r.Context(), v, i, a.Backend.Now(), a.mask(r))
		}
		return err
	})
	if err != nil {
		Problem(w, err)
		return
	}
	answer(w, http.StatusOK, d)
}
