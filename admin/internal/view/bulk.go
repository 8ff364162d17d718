package view

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/tasq-dev/tasq/admin/internal/access"
	"github.com/tasq-dev/tasq/admin/internal/api"
	"github.com/tasq-dev/tasq/admin/internal/selection"
	"github.com/tasq-dev/tasq/engine/bulk"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// withBulk answers with the list of bulk actions or, if an action or rows are chosen, with the form of one.
func (h *forms) withBulk(list http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if q := r.URL.Query(); q.Has("kind") || q.Has(selection.IDs) {
			h.bulkForm(w, r)
			return
		}
		list(w, r)
	}
}

// bulkForm answers with the form of a bulk action.
func (h *forms) bulkForm(w http.ResponseWriter, r *http.Request) {
	r.Form = r.URL.Query()
	r.Form.Set("once", newKey())
	h.showBulk(w, r, http.StatusOK, nil)
}

// bulkAction returns a bulk action by its word; false if there is none, or the user may not execute it, and the request
// is answered.
func (h *forms) bulkAction(w http.ResponseWriter, r *http.Request) (action, bool) {
	a := actions[r.Form.Get("kind")]
	if r.Form.Get("kind") == "" {
		h.say(w, r, http.StatusOK, "No action is chosen", "Go back to the list, and choose one of the buttons below it.")
		return a, false
	}
	if !selection.Bulk(a.kind, a.act) {
		h.say(w, r, http.StatusNotFound, "There is no such action", "")
		return a, false
	}
	if h.Bulk == nil {
		h.say(w, r, http.StatusNotFound, "Bulk actions are not available",
			"The engine was opened without the workflow of package bulk. The command tasq incident has bulk actions.")
		return a, false
	}
	if !access.UserOf(r.Context()).Allowed(string(a.kind), "") {
		h.say(w, r, http.StatusForbidden, "You may not do this", "The pages are read-only, or you do not have the right for this command.")
		return a, false
	}
	a.fields = slices.DeleteFunc(slices.Clone(a.fields), func(f field) bool { return f.Name == "confirm" }) // the number is typed instead
	return a, true
}

func (h *forms) showBulk(w http.ResponseWriter, r *http.Request, status int, problem error) {
	a, ok := h.bulkAction(w, r)
	if !ok {
		return
	}
	sel, err := h.choose(r, &a, r.Form.Get("until"))
	switch {
	case errors.Is(err, selection.ErrTooLarge):
		h.say(w, r, http.StatusBadRequest, "The selection is invalid", err.Error())
		return
	case err != nil:
		h.answer(w, r, h.failed(&Request{Context: r.Context(), Request: r}, err))
		return
	}
	if !h.saidEmpty(w, r, &a, sel) {
		p := h.bulkConfirmation(r.Form, &a, sel)
		if problem != nil {
			p.Error = problem.Error()
		}
		p.focus(false)
		h.answer(w, r, &Page{Title: p.Title, Status: status, Parts: []Part{{ID: "act", Template: "act", Data: p}}})
	}
}

// saidEmpty answers a request whose selection has no targets with the reason. It reports whether it has done so.
func (h *forms) saidEmpty(w http.ResponseWriter, r *http.Request, a *action, sel *chosen) bool {
	ids := sel.Filter[selection.IDs]
	switch {
	case len(sel.Targets) > 0:
		return false
	case sel.Denied > 0:
		h.deniedAll(w, r, a, sel)
	case len(ids) == 1 && ids[0] == "":
		h.say(w, r, http.StatusOK, "Nothing is ticked", "Go back, and tick the rows that the action is for.")
	case sel.Lacking.N > 0:
		h.say(w, r, http.StatusOK, "This cannot be done at the moment", sel.lack())
	case len(sel.Restarted) > 0:
		h.allRestarted(w, r, a, sel)
	default:
		h.say(w, r, http.StatusOK, "Nothing matches any more", "The selected objects have been handled or have ended meanwhile.")
	}
	return true
}

// bulkConfirmation is the form that confirms a bulk action on the selected targets, with the values of a form that was sent.
func (h *forms) bulkConfirmation(form url.Values, a *action, sel *chosen) actPage {
	title := a.do + ": " + counted(len(sel.Targets), sel.What)
	p := actPage{Title: title, Action: h.Link("/bulk"), Draft: "bulk " + form.Get("kind"), Do: title,
		Danger: a.danger, Back: sel.Back, Crumbs: []Link{{Text: capital(sel.What) + "s", Href: sel.Back}, {Text: a.do}},
		About: a.about + " Each is done by itself, under your name; what is refused is listed. It continues after a restart of the program. What begins to match later is not included."}
	p.Hidden = append(p.Hidden, Link{Text: "kind", Href: form.Get("kind")}, Link{Text: "once", Href: form.Get("once")})
	for _, name := range slices.Sorted(maps.Keys(sel.Filter)) {
		for _, value := range sel.Filter[name] {
			p.Hidden = append(p.Hidden, Link{Text: a.inForm(name), Href: value})
		}
	}
	p.Hidden = append(p.Hidden, Link{Text: "until", Href: sel.Until})
	if p.Also = h.again(form, a, sel); a.forced(form) {
		p.Hidden = append(p.Hidden, Link{Text: forceParam, Href: "true"})
		p.About += " What was restarted or forked already is restarted again."
	}
	if bulk.OfCases(a.kind) {
		p.About += " Only root cases are selected, since an action on a case includes its child cases, and no bulk actions."
	}
	if sel.Denied > 0 {
		p.About += fmt.Sprintf(" Left out: %s more, since you do not have the right %q there.", counted(sel.Denied, sel.What), a.kind)
	}
	if sel.Lacking.N > 0 {
		p.About += " Left out: " + sel.lack()
	}
	if len(sel.Restarted) > 0 {
		p.About += " Left out: " + sel.restarted()
	}
	fields := slices.Clone(a.fields)
	if n := len(sel.Targets); n > 1 || a.kind == workflow.KindRemove { // one target needs only the button, as on its own page
		fields = append(fields, field{Name: "confirm", Label: fmt.Sprintf("Type the number %d to confirm", n), Required: true})
	}
	for _, f := range fields {
		f.Value = form.Get(f.Name)
		switch {
		case f.Name == "route":
		case f.Advanced:
			p.Advanced, p.Unfolded = append(p.Advanced, f), p.Unfolded || f.Value != ""
		default:
			p.Fields = append(p.Fields, f)
		}
	}
	return p
}

// confirmed reports whether the user has typed the number of targets. One target needs no confirmation, except for a removal.
func (a *action) confirmed(targets int, typed string) bool {
	return typed == strconv.Itoa(targets) && targets > 0 || typed == "" && targets == 1 && a.kind != workflow.KindRemove
}

// startBulk starts a bulk action on the selected targets for which the user has the right.
func (h *forms) startBulk(w http.ResponseWriter, r *http.Request) {
	if !h.posted(w, r, selection.IDs, "state", "label") {
		return
	}
	a, ok := h.bulkAction(w, r)
	if !ok {
		return
	}
	sel, err := h.choose(r, &a, r.Form.Get("until"))
	if err == nil && len(sel.Targets) == 0 && sel.Denied > 0 {
		h.deniedAll(w, r, &a, sel)
		return
	}
	if err == nil && !a.confirmed(len(sel.Targets), r.Form.Get("confirm")) {
		err = fmt.Errorf("%s match now; type that number to confirm", counted(len(sel.Targets), sel.What))
	}
	if err != nil {
		h.refusedBulk(w, r, http.StatusUnprocessableEntity, err)
		return
	}
	u := access.UserOf(r.Context())
	values := url.Values{a.target: {sel.Targets[0]}, "payload": {r.Form.Get("payload")}}
	for _, f := range append(slices.Clone(policyFields), codeField, messageField, fromStepField) {
		values.Set(f.Name, r.Form.Get(f.Name))
	}
	template, err := a.command(values, u.Name)
	b := bulk.Action{Kind: a.kind, Do: a.act, Payload: template.Payload, Reason: r.Form.Get("reason"), Actor: u.Name, Retry: template.Retry, FromStep: template.FromStep,
		Force: a.forced(r.Form)}
	if err == nil && template.Reason != nil && (a.act == workitem.Fail || a.act == workitem.Cancel) { // with its code
		b.Payload, err = json.Marshal(template.Reason)
	}
	var run workitem.CaseID
	if err == nil {
		run, err = h.runBulk(r, b, sel.Targets)
	}
	if err != nil {
		status, _ := api.StatusOf(err)
		h.refusedBulk(w, r, status, err)
		return
	}
	h.toBulk(w, r, run)
}

// toBulk redirects to the progress of a bulk action that has started.
func (h *forms) toBulk(w http.ResponseWriter, r *http.Request, run workitem.CaseID) {
	http.Redirect(w, r, h.Link("/bulk/"+run.String(), "done", "bulk"), http.StatusSeeOther)
}

// refusedBulk answers with the form and its error, unless the form was sent twice: the first request may have changed
// what matches, so the answer is its action.
func (h *forms) refusedBulk(w http.ResponseWriter, r *http.Request, status int, problem error) {
	var begun workitem.CaseID
	once := r.Form.Get("once")
	err := h.bounded(r, func(ctx context.Context) (err error) {
		begun, err = selection.Begun(ctx, h.Backend, once)
		return err
	})
	if once != "" && err == nil && !begun.IsZero() {
		h.toBulk(w, r, begun)
		return
	}
	h.showBulk(w, r, status, problem)
}

// deniedAll answers that the user has the right for none of the targets.
func (h *forms) deniedAll(w http.ResponseWriter, r *http.Request, a *action, sel *chosen) {
	h.Log.Warn("tasq pages: a command is refused", "kind", a.kind, "targets", sel.Denied, "user", access.UserOf(r.Context()).Name)
	h.say(w, r, http.StatusForbidden, "You may not do this to any of them",
		fmt.Sprintf("%s match, and you do not have the right %q for any.", counted(sel.Denied, sel.What), a.kind))
}

func (h *forms) runBulk(r *http.Request, a bulk.Action, targets []string) (workitem.CaseID, error) {
	opts := []workflow.Option{workflow.By(a.Actor)}
	if once := r.Form.Get("once"); once != "" {
		opts = append(opts, workflow.Key(once), workflow.Label(selection.OnceLabel, once))
	}
	run, err := h.Bulk.Start(r.Context(), h.Backend, a, targets, opts...)
	return run.ID, err
}
