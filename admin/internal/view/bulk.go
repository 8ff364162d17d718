package view

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/tasq-dev/tasq/admin/internal/access"
	"github.com/tasq-dev/tasq/admin/internal/api"
	"github.com/tasq-dev/tasq/admin/internal/query"
	"github.com/tasq-dev/tasq/engine/bulk"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// maxTargets bounds the targets of one bulk action of the pages.
const maxTargets = 10_000

// selection is the targets of a bulk action: a filter, up to the newest target that the user has seen. What matches
// later is not included.
type selection struct {
	Targets []string
	Until   string
	Back    string
	What    string
}

// ofCases reports whether the action is on cases; otherwise it is on the items of incidents.
func ofCases(kind workflow.Kind) bool {
	return kind == workflow.KindResume || kind == workflow.KindSuspend || kind == workflow.KindCancel || kind == workflow.KindRedrive
}

// bulkNames are the parameters of the filters.
var bulkNames = []string{"workflow", "task", "incident", "code", "state", "fingerprint", "older", "newer", "key", "label", "suspended"}

// choose finds the targets. until is the newest id that is included, "" for all.
func (s *Site) choose(r *http.Request, kind workflow.Kind, until string) (sel *selection, err error) {
	err = s.bounded(r, func(ctx context.Context) error {
		sel, err = s.matching(ctx, r, kind, until)
		return err
	})
	return sel, err
}

func (s *Site) matching(ctx context.Context, r *http.Request, kind workflow.Kind, until string) (*selection, error) {
	v := url.Values{}
	for _, name := range bulkNames {
		if r.Form.Get(name) != "" {
			v[name] = r.Form[name]
		}
	}
	if ofCases(kind) {
		return s.matchingCases(ctx, v, until)
	}
	v.Set("kind", v.Get("incident"))
	q := query.Of(v, s.Backend.Now())
	f := q.Incidents()
	f.Limit = maxTargets + 1
	sel := &selection{Back: s.Link("/incidents", "workflow", v.Get("workflow"), "task", v.Get("task"), "code", v.Get("code")), What: "incident"}
	if err := q.Err(); err != nil {
		return nil, err
	}
	for i, err := range store.Incidents(ctx, s.Backend, f) {
		if err != nil {
			return nil, err
		}
		target := ""
		switch {
		case kind == workflow.KindRetryIncident && i.Job.Again():
			target = i.ID.String()
		case kind != workflow.KindRetryIncident && !i.Item.IsZero():
			target = i.Item.String()
		}
		if id := i.ID.String(); target != "" && (until == "" || id <= until) {
			sel.Targets, sel.Until = append(sel.Targets, target), max(sel.Until, id)
		}
	}
	return sel, sel.check()
}

func (s *Site) matchingCases(ctx context.Context, v url.Values, until string) (*selection, error) {
	q := query.Of(v, s.Backend.Now())
	f := q.Cases()
	f.RootOnly, f.Limit = true, maxTargets+1
	if err := q.Err(); err != nil {
		return nil, err
	}
	sel := &selection{Back: s.Link("/cases", "workflow", v.Get("workflow"), "state", v.Get("state")), What: "case"}
	for c, err := range store.AllCases(ctx, s.Backend, f) {
		if err != nil {
			return nil, err
		}
		if id := c.ID.String(); until == "" || id <= until {
			sel.Targets, sel.Until = append(sel.Targets, id), id
		}
	}
	return sel, sel.check()
}

var errTooMany = errors.New("too many things match; set a filter that selects less")

func (sel *selection) check() error {
	if len(sel.Targets) > maxTargets {
		return fmt.Errorf("more than %d: %w", maxTargets, errTooMany)
	}
	return nil
}

// bulkForm answers with the form of a bulk action.
func (s *Site) bulkForm(w http.ResponseWriter, r *http.Request) {
	r.Form = r.URL.Query()
	r.Form.Set("once", newKey())
	s.showBulk(w, r, http.StatusOK, nil)
}

// bulkAction returns a bulk action by its word; false if there is none, or the user may not execute it, and the request
// is answered.
func (s *Site) bulkAction(w http.ResponseWriter, r *http.Request) (action, bool) {
	a := actions[r.Form.Get("kind")]
	switch a.kind {
	case workflow.KindRetry, workflow.KindRetryIncident, workflow.KindSkip, workflow.KindGiveUp, workflow.KindResume, workflow.KindSuspend, workflow.KindCancel, workflow.KindRedrive:
	default:
		s.say(w, r, http.StatusNotFound, "There is no such action", "")
		return a, false
	}
	if s.Bulk == nil {
		s.say(w, r, http.StatusNotFound, "Bulk actions are not available",
			"The engine was opened without the workflow of package bulk. The command tasq incident has bulk actions.")
		return a, false
	}
	if !access.UserOf(r.Context()).Allowed(string(a.kind), "") {
		s.say(w, r, http.StatusForbidden, "You may not do this", "The pages are read-only, or you do not have the right for this command.")
		return a, false
	}
	return a, true
}

func (s *Site) showBulk(w http.ResponseWriter, r *http.Request, status int, problem error) {
	a, ok := s.bulkAction(w, r)
	if !ok {
		return
	}
	sel, err := s.choose(r, a.kind, r.Form.Get("until"))
	switch {
	case errors.Is(err, errTooMany):
		s.say(w, r, http.StatusBadRequest, "The selection is invalid", err.Error())
		return
	case err != nil:
		s.answer(w, r, s.failed(&Request{Context: r.Context(), Request: r}, err))
		return
	}
	if len(sel.Targets) == 0 {
		s.say(w, r, http.StatusOK, "Nothing matches any more", "The selected objects have been handled or have ended meanwhile.")
		return
	}
	n := strconv.Itoa(len(sel.Targets))
	title := a.do + ": " + counted(len(sel.Targets), sel.What)
	p := actPage{Title: title, Action: s.Link("/bulk"), Draft: "bulk " + string(a.kind), Do: title,
		Danger: a.danger, Back: sel.Back, Crumbs: []Link{{Text: capital(sel.What) + "s", Href: sel.Back}, {Text: a.do}},
		About: a.about + " Each is done by itself, under your name; what is refused is listed. It goes on if the program is restarted. What comes later does not count."}
	for _, name := range append([]string{"kind", "once"}, bulkNames...) {
		for _, value := range r.Form[name] {
			p.Hidden = append(p.Hidden, Link{Text: name, Href: value})
		}
	}
	p.Hidden = append(p.Hidden, Link{Text: "until", Href: sel.Until})
	fields := slices.Clone(a.fields)
	if len(sel.Targets) > 1 { // one target needs only the button, as on its own page
		fields = append(fields, field{Name: "confirm", Label: "Type the number " + n + " to confirm", Required: true})
	}
	for _, f := range fields {
		if f.Name != "route" {
			f.Value = r.Form.Get(f.Name)
			p.Fields = append(p.Fields, f)
		}
	}
	if problem != nil {
		p.Error = problem.Error()
	}
	s.answer(w, r, &Page{Title: p.Title, Status: status, Parts: []Part{{ID: "act", Template: "act", Data: p}}})
}

// confirmed reports whether the user has typed the number of targets. One target needs no confirmation.
func confirmed(targets int, typed string) bool {
	return typed == strconv.Itoa(targets) && targets > 0 || typed == "" && targets == 1
}

// startBulk starts a bulk action. The user's permission for each target is checked before.
func (s *Site) startBulk(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		s.say(w, r, http.StatusBadRequest, "The form cannot be read", err.Error())
		return
	}
	r.Form = r.PostForm
	a, ok := s.bulkAction(w, r)
	if !ok {
		return
	}
	sel, err := s.choose(r, a.kind, r.Form.Get("until"))
	if err == nil && !confirmed(len(sel.Targets), r.Form.Get("confirm")) {
		err = fmt.Errorf("%s match now; type that number to confirm", counted(len(sel.Targets), sel.What))
	}
	if err != nil {
		s.refusedBulk(w, r, http.StatusUnprocessableEntity, err)
		return
	}
	u := access.UserOf(r.Context())
	for _, target := range sel.Targets {
		if !s.allowedOn(w, r, string(a.kind), target) {
			return
		}
	}
	template, err := a.command(url.Values{a.target: {sel.Targets[0]}, "payload": {r.Form.Get("payload")}}, u.Name)
	var run workitem.CaseID
	if err == nil {
		run, err = s.runBulk(r, bulk.Action{Kind: a.kind, Payload: template.Payload, Reason: r.Form.Get("reason"), Actor: u.Name}, sel.Targets)
	}
	if err != nil {
		status, _ := api.StatusOf(err)
		s.refusedBulk(w, r, status, err)
		return
	}
	s.toBulk(w, r, run)
}

// toBulk redirects to the progress of a bulk action that has started.
func (s *Site) toBulk(w http.ResponseWriter, r *http.Request, run workitem.CaseID) {
	http.Redirect(w, r, s.Link("/bulk/"+run.String(), "done", "bulk"), http.StatusSeeOther)
}

// formLabel is the label of a bulk action with the idempotency key of its form.
const formLabel = "form"

// refusedBulk answers with the form and its error, unless the form was sent twice: the first request may have changed
// what matches, so the answer is its action.
func (s *Site) refusedBulk(w http.ResponseWriter, r *http.Request, status int, problem error) {
	var begun []*state.Case
	once := r.Form.Get("once")
	err := s.bounded(r, func(ctx context.Context) error {
		return s.Backend.View(ctx, func(v store.Reader) (err error) {
			begun, err = v.Cases(ctx, store.CaseFilter{Workflow: bulk.Name, Labels: map[string]string{formLabel: once}, RootOnly: true})
			return err
		})
	})
	if once != "" && err == nil && len(begun) > 0 {
		s.toBulk(w, r, begun[0].ID)
		return
	}
	s.showBulk(w, r, status, problem)
}

func (s *Site) allowedOn(w http.ResponseWriter, r *http.Request, kind, target string) bool {
	if access.UserOf(r.Context()).Allowed(kind, target) {
		return true
	}
	s.Log.Warn("tasq pages: a command is refused", "kind", kind, "target", target)
	s.say(w, r, http.StatusForbidden, "You may not do this to all of them", fmt.Sprintf("You do not have the right %q for %s.", kind, target))
	return false
}

func (s *Site) runBulk(r *http.Request, a bulk.Action, targets []string) (workitem.CaseID, error) {
	opts := []workflow.Option{workflow.By(a.Actor)}
	if once := r.Form.Get("once"); once != "" {
		opts = append(opts, workflow.Key(once), workflow.Label(formLabel, once))
	}
	run, err := s.Bulk.Start(r.Context(), s.Backend, a, targets, opts...)
	return run.ID, err
}
