package api

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/tasq-dev/tasq/admin/internal/access"
	"github.com/tasq-dev/tasq/admin/internal/mask"
	"github.com/tasq-dev/tasq/admin/internal/source"
	"github.com/tasq-dev/tasq/engine/schedules"
	"github.com/tasq-dev/tasq/engine/why"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workflow"
)

func (a *API) queues(w http.ResponseWriter, r *http.Request) {
	out := page[source.Queue]{Rows: []source.Queue{}}
	err := a.Backend.View(r.Context(), func(v store.Reader) error {
		found, whole, err := source.Queues(r.Context(), v, source.MaxCounted)
		for i := range found {
			found[i].PausedKeys = a.mask(r).PausedKeys(found[i].Queue, found[i].PausedKeys)
		}
		out.Rows, out.Cut = append(out.Rows, found...), !whole
		return err
	})
	if err != nil {
		Problem(w, err)
		return
	}
	answer(w, http.StatusOK, out)
}

// limits asks the program that runs the functions, which alone knows the current usage. The cases that hold slots are
// in the database.
func (a *API) limits(w http.ResponseWriter, r *http.Request) {
	result, err := a.Backend.Do(r.Context(), workflow.Limits())
	if err != nil {
		Problem(w, err)
		return
	}
	list := []workflow.LimitInfo{}
	err = a.Backend.View(r.Context(), func(v store.Reader) error {
		all, err := why.ReadLimits(r.Context(), v, result.Limits)
		list = append(list, a.mask(r).Limits(all)...)
		return err
	})
	if err != nil {
		Problem(w, err)
		return
	}
	answer(w, http.StatusOK, page[workflow.LimitInfo]{Rows: list})
}

func (a *API) schedules(w http.ResponseWriter, r *http.Request) {
	out := page[*schedules.Description]{Rows: []*schedules.Description{}}
	err := a.Backend.View(r.Context(), func(v store.Reader) error {
		found, err := schedules.List(r.Context(), store.ViewerOf(v))
		for _, i := range found {
			d, err := maskedSchedule(r.Context(), v, i, a.Backend.Now(), a.mask(r))
			if err != nil {
				return err
			}
			out.Rows = append(out.Rows, d)
		}
		return err
	})
	if err != nil {
		Problem(w, err)
		return
	}
	answer(w, http.StatusOK, out)
}

// maskedSchedule describes a schedule with its input masked.
func maskedSchedule(ctx context.Context, v store.Reader, i *schedules.Info, now time.Time, m mask.Mask) (*schedules.Description, error) {
	d, err := i.Describe(ctx, v, now)
	if err == nil {
		d.Input = m.Payload("case", d.Starts, d.Input)
	}
	return d, err
}

func (a *API) oneSchedule(w http.ResponseWriter, r *http.Request) {
	var d *schedules.Description
	err := a.Backend.View(r.Context(), func(v store.Reader) error {
		i, err := schedules.Find(r.Context(), store.ViewerOf(v), r.PathValue("name"))
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

// scheduleCommand is the body of a command on a schedule.
type scheduleCommand struct {
	Do     string    `json:"do"` // "pause", "resume", "run", "backfill" or "remove"
	Reason string    `json:"reason,omitempty"`
	From   time.Time `json:"from,omitzero"` // of a backfill
	To     time.Time `json:"to,omitzero"`
	DryRun bool      `json:"dryRun,omitempty"` // answer what it would do
}

// errMore is the error of a body with more than one value.
var errMore = errors.New("unexpected data after it; send one command at a time")

// scheduleOptions returns the options of a command on a schedule: the user of the request, the reason and the
// idempotency key.
func scheduleOptions(r *http.Request, reason string) []workflow.Option {
	opts := []workflow.Option{workflow.By(access.UserOf(r.Context()).Name)}
	if reason != "" {
		opts = append(opts, workflow.Because(reason))
	}
	if key := r.Header.Get("Idempotency-Key"); key != "" {
		opts = append(opts, workflow.Key(key))
	}
	return opts
}

func (a *API) onSchedule(w http.ResponseWriter, r *http.Request) {
	var c scheduleCommand
	if err := readBody(w, r, "a schedule command", &c); err != nil {
		Problem(w, err)
		return
	}
	name := r.PathValue("name")
	if !allow(w, access.UserOf(r.Context()), schedules.Name, name) {
		return
	}
	if c.DryRun {
		command, err := schedules.CommandFor(r.Context(), a.Backend, name, c.Do, c.From, c.To, scheduleOptions(r, c.Reason)...)
		if err != nil {
			Problem(w, err)
			return
		}
		var starts []string
		i, err := schedules.Find(r.Context(), a.Backend, name)
		if err == nil {
			starts, err = i.Would(c.Do, c.From, c.To, a.Backend.Now())
		}
		if err != nil {
			Problem(w, err)
			return
		}
		a.dryRun(w, r, command, starts...)
		return
	}
	if err := source.OnSchedule(r.Context(), a.Backend, name, c.Do, c.From, c.To, scheduleOptions(r, c.Reason)...); err != nil {
		Problem(w, err)
		return
	}
	answer(w, http.StatusOK, struct{}{})
}
