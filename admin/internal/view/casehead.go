package view

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tasq-dev/tasq/engine/bulk"
	"github.com/tasq-dev/tasq/engine/why"
	"github.com/tasq-dev/tasq/internal/printable"
	"github.com/tasq-dev/tasq/store/state"
)

// caseHead is the top of the page of a case, an item or a job.
type caseHead struct {
	Crumbs  []Link
	Title   string
	ID      string
	JSON    string
	State   Cell
	Badges  []badge
	Meta    []Cell
	Buttons []Link
	Failure string
	Lack    *lack
	Past    *pastState
}

type badge struct{ Class, Text string }

// pastState is the past state that a page shows: its place in the history, its time, and the link to the present one.
type pastState struct {
	Place   string
	Time    time.Time
	Now     string
	Changes string // the page with what differs from now
}

func (c *casePage) head() caseHead {
	id := c.c.ID.String()
	h := caseHead{Title: c.c.Workflow + version(c.c.Version), ID: id, State: stateOf(c.c.State.String()), JSON: c.Link("/api/v1/cases/" + id),
		Crumbs: []Link{{Text: "Cases", Href: c.Link("/cases")}, {Text: c.c.Workflow + version(c.c.Version), Href: c.definitionLink(c.c.Workflow, c.c.Fingerprint)}}}
	if !c.c.Parent.IsZero() {
		h.Crumbs = append(h.Crumbs, Link{Text: "part of " + short(c.c.Parent.String()), Href: c.Link("/cases/" + c.c.Parent.String())})
		h.Title += " " + c.c.Label()
	}
	h.Crumbs = append(h.Crumbs, Link{Text: short(id)})
	h.Badges = badges(c.answer)
	if c.c.Suspended != nil {
		h.Badges = append(h.Badges, badge{"suspended", "suspended"})
	}
	identity := c.r.Mask.Case(c.c)
	if identity.Key != "" { // the business key is what people know the case by
		h.Title = printable.Line(identity.Key)
	}
	h.Meta = c.meta(identity)
	h.Failure = failureText(c.c.Failure)
	if c.past {
		e := c.window.at()
		h.Past = &pastState{Place: c.window.place(), Time: e.At, Now: c.caseLink(),
			Changes: c.Link("/cases/"+id+"/differences", "from", strconv.FormatInt(e.Seq, 10))}
		h.Buttons = c.forkButton()
	}
	return h
}

// meta is what is said of the case below its title. identity is the case as the user may see it.
func (c *casePage) meta(identity *state.Case) (all []Cell) {
	for _, name := range slices.Sorted(maps.Keys(identity.Labels)) {
		all = append(all, labeled(name, text(printable.Line(identity.Labels[name]))))
	}
	if c.c.Workflow == bulk.Name && c.c.Parent.IsZero() {
		all = append(all, labeled("bulk action", link("progress", c.Link("/bulk/"+c.c.ID.String()))))
	}
	all = append(all, labeled("started", at(c.c.Created)))
	if by := c.window.entries[0].By; by != "" && c.window.earlier == nil {
		all = append(all, labeled("by", text(by)))
	}
	if !c.c.Ended.IsZero() {
		all = append(all, labeled("ended", at(c.c.Ended)), labeled("took", took(c.c.Created, c.c.Ended)))
	}
	if !c.c.Predecessor.IsZero() {
		all = append(all, labeled(c.origin(), idLink(c.c.Predecessor.String(), c.Link("/cases/"+c.c.Predecessor.String()))))
	}
	if as := c.answer.RestartedAs; !as.IsZero() {
		all = append(all, labeled("restarted as", idLink(as.String(), c.Link("/cases/"+as.String()))))
	}
	for _, data := range payloads(payloadPart{Title: "input", Raw: identity.Input}, payloadPart{Title: "result", Raw: identity.Output}) {
		all = append(all, labeled(data.Title, payload(data.Raw)))
	}
	return all
}

// origin says how the case was made from its predecessor.
func (c *casePage) origin() string {
	if c.window.earlier == nil && strings.HasPrefix(c.window.entries[0].Command, "case fork ") {
		return "fork of"
	}
	return "restart of"
}

// badges counts what needs attention.
func badges(a *why.Answer) []badge {
	var retries, incidents int
	stuck := false
	for _, w := range a.Waits {
		switch w.Kind {
		case why.Retry:
			retries++
		case why.Incident:
			incidents++
		case why.Stuck: // no incident: the page Incidents does not list it
			stuck = true
		}
	}
	var all []badge
	if incidents > 0 {
		all = append(all, badge{"incident", counted(incidents, "incident")})
	}
	if stuck {
		all = append(all, badge{"stuck", "cannot go on"})
	}
	if retries > 0 {
		all = append(all, badge{"retry", fmt.Sprintf("%d waiting for another attempt", retries)})
	}
	return all
}
