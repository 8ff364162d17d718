package view

import (
	"fmt"
	"net/http"
	"net/url"

	"github.com/tasq-dev/tasq/workflow"
)

// forceParam is the parameter of the form of a bulk restart that also selects the cases that were restarted already.
const forceParam = "force"

// forced reports whether a form of a bulk action has the parameter.
func (a *action) forced(form url.Values) bool {
	return a.kind == workflow.KindRestart && form.Get(forceParam) == "true"
}

// restarted says which targets are left out since they were restarted already.
func (c *chosen) restarted() string {
	first := c.Restarted[0]
	return fmt.Sprintf("%s, which had been restarted or forked already; the first, %s, as %s.", counted(len(c.Restarted), c.What), first.Case, first.Successor)
}

// again returns the link to the form of a bulk restart that includes what was restarted already, or from there the one that leaves it out;
// nil if there is no difference.
func (h *forms) again(form url.Values, a *action, sel *chosen) *Link {
	switch {
	case a.forced(form):
		return &Link{Text: "Leave out what was restarted already", Href: h.restartLink(a, sel, false)}
	case len(sel.Restarted) > 0:
		return &Link{Text: fmt.Sprintf("Restart %s again, too", counted(len(sel.Restarted), sel.What)), Href: h.restartLink(a, sel, true)}
	}
	return nil
}

// restartLink returns the address of the form of a bulk restart on the same selection. What began to match after the page was opened is
// not included.
func (h *forms) restartLink(a *action, sel *chosen, force bool) string {
	v := url.Values{"kind": {string(workflow.KindRestart)}, "until": {sel.Until}}
	for name, values := range sel.Filter {
		v[a.inForm(name)] = values
	}
	if force {
		v.Set(forceParam, "true")
	}
	return h.Prefix + "/bulk?" + v.Encode()
}

// allRestarted answers that all targets of a bulk restart were restarted already.
func (h *forms) allRestarted(w http.ResponseWriter, r *http.Request, a *action, sel *chosen) {
	title := "All of these were restarted already"
	m := message{Title: title, Lines: []string{capital(sel.restarted())}, Links: []Link{*h.again(r.Form, a, sel), {Text: "Back", Href: sel.Back}}}
	h.answer(w, r, &Page{Title: title, Status: http.StatusOK, Parts: []Part{{ID: "message", Template: "message", Data: m}}})
}
