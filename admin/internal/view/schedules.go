package view

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/tasq-dev/tasq/admin/internal/access"
	"github.com/tasq-dev/tasq/admin/internal/source"
	"github.com/tasq-dev/tasq/engine/schedules"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workflow"
)

// minutes is how the ticks of schedules are shown in a list, in the zone of the schedule.
const minutes = "Mon 2006-01-02 15:04"

// schedules lists the schedules.
func (s *Site) schedules(r *Request) (*Page, error) {
	l := s.listing(r, "/schedules", "Schedules", "schedule", "state", "spec", "zone", "starts", "latest tick", "outcome", "next tick", "in")
	l.head.About = "At each tick of a schedule a case of its workflow starts."
	found, err := schedules.List(r, store.ViewerOf(r.R))
	if err != nil {
		return nil, err
	}
	for _, i := range found {
		d, err := i.Describe(r, r.R, r.Now)
		if err != nil {
			return nil, err
		}
		latest, next, in := text(""), text(""), text("")
		if d.Latest != nil {
			latest = text(zoned(d.Latest.Tick, d))
			if !d.Latest.Case.IsZero() {
				latest = link(zoned(d.Latest.Tick, d), s.Link("/cases/"+d.Latest.Case.String()))
			}
		}
		if len(d.Next) > 0 && d.State != "paused" {
			next, in = text(d.Next[0].Format(minutes)), at(d.Next[0])
		}
		l.table.row("", link(d.Name, s.scheduleLink(d.Name)), stateOf(d.State), text(d.Spec), text(d.Zone),
			link(d.Starts, s.Link("/workflows/"+escapePath(d.Starts))), latest, outcome(d), next, in)
	}
	return l.page("There are no schedules. Programs declare them, or add one with:", "tasq schedule add NAME WORKFLOW --every 5m"), nil
}

func (s *Site) scheduleLink(name string) string { return s.Link("/schedules/" + escapePath(name)) }

// zoned is a tick in the time zone of its schedule.
func zoned(t time.Time, d *schedules.Description) string {
	if zone, err := time.LoadLocation(d.Zone); err == nil {
		t = t.In(zone)
	}
	return t.Format(minutes)
}

func outcome(d *schedules.Description) Cell {
	switch {
	case d.Failure != nil:
		return failure(d.Failure)
	case d.Outcome == "":
		return text("")
	}
	return stateOf(d.Outcome)
}

// scheduleButtons are the words of the commands on a schedule, with the labels of their buttons.
var scheduleButtons = []struct{ word, text string }{{"schedule-run", "Run now…"}, {"schedule-pause", "Pause…"}, {"schedule-resume", "Resume…"},
	{"schedule-backfill", "Backfill…"}, {"schedule-remove", "Remove…"}}

// schedule shows one schedule with its last and next ticks.
func (s *Site) schedule(r *Request) (*Page, error) {
	i, err := schedules.Find(r, store.ViewerOf(r.R), r.PathValue("name"))
	if err != nil {
		return nil, err
	}
	d, err := i.Describe(r, r.R, r.Now)
	if err != nil {
		return nil, err
	}
	top := caseHead{Title: d.Name, ID: d.Case.String(), State: stateOf(d.State), JSON: s.Link("/api/v1/schedules/" + escapePath(d.Name)),
		Crumbs: []Link{{Text: "Schedules", Href: s.Link("/schedules")}, {Text: d.Name}}}
	for _, b := range scheduleButtons {
		if (b.word == "schedule-pause" && d.State == "paused") || (b.word == "schedule-resume" && d.State != "paused") {
			continue
		}
		if a := actions[b.word]; r.User.Allowed(schedules.Name, d.Name) {
			top.Buttons = append(top.Buttons, Link{Text: b.text, Href: s.actLink(b.word, "schedule", d.Name), Danger: a.danger})
		}
	}
	by := "an operator"
	if d.Declared {
		by = "a program"
	}
	b := body{Fields: []Cell{labeled("spec", text(d.Spec)), labeled("zone", text(d.Zone)), labeled("starts", link(d.Starts, s.Link("/workflows/"+escapePath(d.Starts)))),
		labeled("declared by", text(by)), labeled("while a run goes on", text(d.Overlap)), labeled("of what was missed", text(d.CatchUp)),
		labeled("left out since a run went on", number(int64(d.Skipped))), labeled("left out since nothing ran", number(int64(d.Missed)))},
		Failure: failureText(d.Failure), Payloads: payloads(payloadPart{Title: "Input of its cases", Raw: r.Mask.Payload("case", d.Starts, d.Input)})}
	if !d.Overdue.IsZero() {
		b.Fields = append(b.Fields, labeled("overdue since", at(d.Overdue)))
	}
	return &Page{Title: d.Name, Nav: "Schedules", Live: true, Parts: []Part{{ID: "head", Template: "casehead", Data: top},
		{ID: "body", Template: "itembody", Data: b}, {ID: "ticks", Template: "tablepart", Data: s.ticks(d)},
		{ID: "changes", Template: "tablepart", Data: changesOf(d)}}}, nil
}

// ticks returns the ticks before and after now, latest first.
func (s *Site) ticks(d *schedules.Description) *Table {
	t := &Table{ID: "ticks", Title: "Ticks", Head: []string{"tick, " + d.Zone, "when", "run", ""}, Empty: &Empty{Text: "There are no further ticks."}}
	for k := len(d.Next) - 1; k >= 0; k-- {
		word := "next"
		if d.State == "paused" {
			word = "left out while it is paused"
		}
		t.row("", text(d.Next[k].Format(minutes)), at(d.Next[k]), muted(word), text(""))
	}
	for _, tick := range d.Waiting {
		t.row("", text(zoned(tick, d)), at(tick), stateOf("waiting"), text("for a run to end"))
	}
	for _, tick := range d.Last {
		run, then := muted("past"), text("")
		if l := d.Latest; l != nil && l.Tick.Equal(tick) {
			then = outcome(d)
			if !l.Case.IsZero() {
				run = idLink(l.Case.String(), s.Link("/cases/"+l.Case.String()))
			}
		}
		t.row("", text(tick.Format(minutes)), at(tick), run, then)
	}
	return t
}

func changesOf(d *schedules.Description) *Table {
	t := &Table{ID: "changes", Title: "Commands", Head: []string{"at", "command", "by", "reason"}, Empty: &Empty{Text: "No command has changed the schedule."}}
	for k := len(d.Changes) - 1; k >= 0; k-- {
		c := d.Changes[k]
		t.row("", at(c.At), text(c.What), text(c.By), text(c.Reason))
	}
	return t
}

// onSchedule executes a command on a schedule. Such a command depends on the present state of the schedule, so it is
// made when the form is sent.
func (h *forms) onSchedule(w http.ResponseWriter, r *http.Request, a *action) {
	u, name := access.UserOf(r.Context()), r.Form.Get("schedule")
	if !h.allowed(w, r, schedules.Name, name) {
		return
	}
	opts := []workflow.Option{workflow.By(u.Name), workflow.Key(r.Form.Get("key"))}
	if reason := r.Form.Get("reason"); reason != "" {
		opts = append(opts, workflow.Because(reason))
	}
	var from, to time.Time
	var err error
	if a.schedule == "backfill" {
		if from, err = timeOf(r.Form, "from"); err == nil {
			to, err = timeOf(r.Form, "to")
		}
	}
	if err == nil && r.Form.Has("check") {
		var would []string
		if would, err = h.scheduleWould(r, a, name, from, to); err == nil {
			h.showForm(w, r, http.StatusOK, nil, would...)
			return
		}
	}
	if err == nil {
		err = source.OnSchedule(r.Context(), h.Backend, name, a.schedule, from, to, opts...)
	}
	if err != nil {
		h.refusedForm(w, r, err)
		return
	}
	next := "/schedules/" + escapePath(name)
	if a.schedule == "remove" {
		next = "/schedules"
	}
	http.Redirect(w, r, h.Link(next, "done", r.Form.Get("kind")), http.StatusSeeOther)
}

// scheduleWould says what a command on a schedule would start.
func (h *forms) scheduleWould(r *http.Request, a *action, name string, from, to time.Time) (words []string, err error) {
	err = h.bounded(r, func(ctx context.Context) error {
		return h.Backend.View(ctx, func(v store.Reader) error {
			i, err := schedules.Find(ctx, store.ViewerOf(v), name)
			if err == nil {
				words, err = i.Would(a.schedule, from, to, h.Backend.Now())
			}
			return err
		})
	})
	return words, err
}

// timeOf parses a time in a form; without a time zone it is UTC.
func timeOf(form url.Values, name string) (time.Time, error) {
	text := form.Get(name)
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02 15:04", time.DateOnly} {
		if t, err := time.Parse(layout, text); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("%q is not a time such as 2030-01-31T08:00:00+01:00: %w", text, workflow.ErrBadCommand)
}
