package view

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/tasq-dev/tasq/admin/internal/selection"
	"github.com/tasq-dev/tasq/engine/bulk"
	"github.com/tasq-dev/tasq/engine/why"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// posts are the routes that change something.
var posts = map[string]func(s *Site, w http.ResponseWriter, r *http.Request){
	"/act":     (*Site).act,
	"/bulk":    (*Site).startBulk,
	"/doctor":  (*Site).check,
	"/presets": (*Site).savePreset,
}

// button returns a link to the form of a command; none if the user may not send it, or if it is rejected for a missing definition.
func (s *Site) button(r *Request, all []Link, text, word, id string) []Link {
	a := actions[word]
	if r.rejects(word) || !r.User.Allowed(string(a.kind), id) {
		return all
	}
	return append(all, Link{Text: text, Href: s.actLink(word, a.target, id), Danger: a.danger})
}

// actLink returns the address of the form of a command.
func (s *Site) actLink(word, param, id string) string { return s.Link("/act", "kind", word, param, id) }

func (s *Site) caseButtons(r *Request, c *state.Case, redrives bool) (all []Link) {
	id := c.ID.String()
	root := c.Parent.IsZero()
	if redrives && redrivable(c) {
		all = s.button(r, all, "Redrive…", "redrive", id)
	}
	switch {
	case !c.State.Final():
		all = s.button(r, all, "Send event…", "send", id)
		if c.Suspended != nil {
			all = s.button(r, all, "Resume…", "resume", id)
		} else {
			all = s.button(r, all, "Suspend…", "suspend", id)
		}
		all = s.button(r, all, "Move a token…", "move", id)
		return s.button(r, all, "Cancel case…", "cancel", id)
	case c.State == state.CaseFailed && !r.lack.Rejects(selection.ResumeFailed, ""):
		all = s.button(r, all, "Resume…", "resume", id)
	}
	if root {
		all = s.button(r, all, "Restart…", "restart", id)
		all = s.button(r, all, "Remove…", "remove", id)
	}
	return all
}

// forkButton returns the button that starts a new case from the past state that is shown. Only a root case that has not
// ended in that state can be forked.
func (s *Site) forkButton(r *Request, c *shown) []Link {
	id := c.c.ID.String()
	if !c.c.Parent.IsZero() || c.c.State.Final() || selection.LackOf(&c.here, c.c, c.tree.Chain(c.c)).Rejects("fork", "case") || !r.User.Allowed(string(workflow.KindFork), id) {
		return nil
	}
	return []Link{{Text: "Fork from here…", Href: s.Link("/act", "kind", "fork", "case", id, "seq", strconv.FormatInt(c.window.at().Seq, 10))}}
}

func (s *Site) itemButtons(r *Request, it *workitem.Item, incident bool) (all []Link) {
	id := it.ID.String()
	if incident {
		defer func() { all = s.button(r, all, "Give up…", "give-up", id) }()
	}
	switch it.State {
	case workitem.Initialized:
		all = s.button(r, all, "Start", "item-start", id)
		if it.Due.After(r.Now) {
			all = s.button(r, all, "Retry now…", "retry", id)
		}
	case workitem.Started:
		all = s.button(r, all, "Complete…", "item-complete", id)
		all = s.button(r, all, "Reset…", "item-reset", id)
		all = s.button(r, all, "Fail…", "item-fail", id)
	case workitem.Failed:
		if it.Successor.IsZero() {
			all = s.button(r, all, "Retry…", "retry", id)
			all = s.button(r, all, "Skip…", "skip", id)
		}
	}
	if it.State.Live() {
		all = s.button(r, all, "Skip…", "skip", id)
		all = s.button(r, all, "Cancel…", "item-cancel", id)
	}
	return all
}

func (s *Site) jobButtons(r *Request, j *state.Job) (all []Link) {
	if j.State == state.JobRunning {
		all = s.button(r, all, "Release…", "reclaim", j.ID.String())
	}
	return all
}

// waitButtons returns the commands for a wait, those against its block first.
func (s *Site) waitButtons(r *Request, w *why.Wait) []Link {
	return append(s.blockButtons(r, w), s.kindButtons(r, w)...)
}

// blockButtons returns the commands that remove what blocks due work.
func (s *Site) blockButtons(r *Request, w *why.Wait) (all []Link) {
	switch {
	case w.Suspended != nil:
		return s.button(r, all, "Resume the case…", "resume", w.Suspended.Case.String())
	case w.Blocked == why.Paused, len(w.MayBePausedKeys) > 0:
		return s.pausedButtons(r, w)
	case w.Blocked == why.Limited, len(w.Needs) > 0:
		return s.limitButtons(r, w)
	case w.Blocked == why.Lapsed:
		return s.button(r, all, "Release…", "reclaim", w.Job.String())
	}
	return all
}

// incidentButtons returns the commands that resolve an incident.
func (s *Site) incidentButtons(r *Request, w *why.Wait) (all []Link) {
	switch {
	case !w.Child.IsZero():
		if !r.child.Rejects(selection.ResumeFailed, "case") {
			all = s.button(r, all, "Resume the child case…", "resume", w.Child.String())
		}
		return s.button(r, all, "Give up…", "give-up-incident", w.Incident.String())
	case w.Work != state.JobIncident && w.Work != state.JobRun:
		return s.button(r, all, "Retry…", "retry-incident", w.Incident.String())
	case w.Item.IsZero():
		return all
	}
	item := w.Item.String()
	all = s.button(r, all, "Retry…", "retry", item)
	all = s.button(r, all, "Skip…", "skip", item)
	return s.button(r, all, "Give up…", "give-up", item)
}

// retryButton returns the command that retries the subject of a listed incident; none if it is rejected. A child case is resumed on its own page.
func (s *Site) retryButton(r *Request, i *store.Incident, m *selection.Missing) ([]Link, error) {
	text, word, id := "Retry…", "retry", i.Item.String()
	switch {
	case !i.Child.IsZero():
		text, word, id = "Resume…", "resume", i.Child.String()
	case i.Job.Again():
		word, id = "retry-incident", i.ID.String()
	case i.Item.IsZero():
		return nil, nil
	}
	if lack, err := m.Incident(r, r.R, i, word); err != nil || lack != nil {
		return nil, err
	}
	return s.button(r, nil, text, word, id), nil
}

// kindButtons returns the commands that do what is waited for, or skip it.
func (s *Site) kindButtons(r *Request, w *why.Wait) (all []Link) {
	item := w.Item.String()
	switch {
	case w.Kind == why.Incident:
		return s.incidentButtons(r, w)
	case w.Kind == why.Stuck:
		return s.button(r, all, "Move a token…", "move", w.Case.String())
	case w.Item.IsZero():
	case w.Kind == why.Retry:
		return s.button(r, all, "Retry now…", "retry", item)
	case w.Kind == why.Person && w.State == workitem.Started.String():
		all = s.button(r, all, "Complete…", "item-complete", item)
		return s.button(r, all, "Reset…", "item-reset", item)
	case w.Kind == why.Person && w.Suspended == nil:
		return s.button(r, all, "Start", "item-start", item)
	}
	return append(all, s.eventButtons(r, w)...)
}

// eventButtons returns the command that sends the event, or broadcasts the topic, that is waited for.
func (s *Site) eventButtons(r *Request, w *why.Wait) []Link {
	id := w.Case.String()
	switch {
	case r.rejects("send"):
	case w.Kind == why.Event && r.User.Allowed(string(workflow.KindSend), id):
		return []Link{{Text: "Send it…", Href: s.Link("/act", "kind", "send", "case", id, "event", w.Name)}}
	case w.Kind == why.Topic && r.User.Allowed(string(workflow.KindBroadcast), ""):
		return []Link{{Text: "Broadcast…", Href: s.Link("/act", "kind", "broadcast", "event", w.Name)}}
	}
	return nil
}

// words are those of the bulk actions on the incidents of the group.
func (g *group) words() []string {
	switch first := g.shown[0]; {
	case g.Workflow == "":
		return nil
	case !first.Child.IsZero():
		return []string{"retry-incident", "give-up-incident"}
	case first.Again():
		return []string{"retry-incident"}
	case first.Item.IsZero():
		return nil
	}
	return []string{"retry", "skip", "give-up"}
}

// incidentPicks are the bulk actions on ticked incidents of a group, if there is more than one.
func (s *Site) incidentPicks(r *Request, o *offers) *Picks {
	if len(o.ticks) < 2 {
		return nil
	}
	return s.picks(r, o.words...)
}

// groupButtons returns the bulk actions on all incidents of a group. within is the filter of the list.
func (s *Site) groupButtons(r *Request, g *group, words []string, within url.Values) (all []Link) {
	if s.Bulk == nil {
		return nil
	}
	names := map[string]string{"retry": "Retry all…", "retry-incident": "Retry all…", "skip": "Skip all…", "give-up": "Give up all…", "give-up-incident": "Give up all…"}
	for _, word := range words {
		a := actions[word]
		if r.User.Allowed(string(a.kind), "") {
			all = append(all, Link{Text: names[word], Danger: a.danger, Href: s.bulkLink(word, g.filter(within))})
		}
	}
	return all
}

// listButtons returns the bulk actions on all cases that match the filter of the list.
// missing is the workflow that is missing for all of them; "" if none is.
func (s *Site) listButtons(r *Request, f *selection.Cases, missing string) (all []Link) {
	if s.Bulk == nil || f.Workflow == bulk.Name || len(f.States) > 1 {
		return nil
	}
	present := state.CaseStarted
	if len(f.States) == 1 {
		present = f.States[0]
	}
	add := func(word, text string) {
		if a := actions[word]; r.User.Allowed(string(a.kind), "") {
			all = append(all, Link{Text: text, Danger: a.danger, Href: s.bulkLink(word, filterOf(r.Form, f.Names))})
		}
	}
	cancel := func() {
		if missing == "" {
			add("cancel", "Cancel all that match…")
		}
	}
	if present == state.CaseFailed && missing == "" {
		add("resume", "Resume all that match…")
	}
	switch {
	case present.Final():
		if missing == "" {
			add("restart", "Restart all that match…")
		}
		add("remove", "Remove all that match…")
	case f.Suspended:
		add("resume", "Resume all that match…")
		cancel()
	case len(f.States) == 1:
		if f.Labels[workflow.LabelLetter] == "yes" {
			add("redrive", "Redrive all that match…")
		}
		add("suspend", "Suspend all that match…")
		cancel()
	}
	return all
}

// picks are the bulk actions on ticked rows, by their words; nil if the user may execute none.
func (s *Site) picks(r *Request, words ...string) *Picks {
	p := &Picks{Action: s.Link("/bulk")}
	for _, word := range words {
		if a := actions[word]; s.Bulk != nil && r.User.Allowed(string(a.kind), "") {
			p.Words = append(p.Words, Link{Text: capital(strings.ReplaceAll(strings.TrimPrefix(strings.TrimSuffix(word, "-incident"), "item-"), "-", " ")) + " ticked…", Href: word, Danger: a.danger})
		}
	}
	if p.Words == nil {
		return nil
	}
	return p
}

// casePicks are those on a list of cases.
func (s *Site) casePicks(r *Request, f *selection.Cases) *Picks {
	live, failed := len(f.States) == 0 || slices.Contains(f.States, state.CaseStarted), len(f.States) == 0 || slices.Contains(f.States, state.CaseFailed)
	switch {
	case f.Workflow == bulk.Name:
		return nil
	case live:
		return s.picks(r, "resume", "suspend", "cancel")
	case failed:
		return s.picks(r, "resume", "restart", "remove")
	}
	return s.picks(r, "restart", "remove")
}

// itemWordsOf are the bulk actions on work items in some states; nil stands for all states.
func itemWordsOf(states []workitem.State) (all []string) {
	for _, do := range bulk.ItemActions {
		if _, err := bulk.ItemStates(do, states); err == nil {
			all = append(all, "item-"+do.String())
		}
	}
	return all
}

// itemListButtons returns the bulk actions on all work items that match the filter of the list, if it has one.
func (s *Site) itemListButtons(r *Request, names, words []string) (all []Link) {
	filter := filterOf(r.Form, names)
	if s.Bulk == nil || len(filter) == 0 || r.Form.Get("workflow") == bulk.Name {
		return nil
	}
	for _, word := range words {
		if a := actions[word]; r.User.Allowed(string(a.kind), "") {
			all = append(all, Link{Text: capital(a.act.String()) + " all that match…", Danger: a.danger, Href: s.bulkLink(word, filter)})
		}
	}
	return all
}

// tick lets the last row be ticked.
func (t *Table) tick(id string) {
	if t.Picks != nil {
		row := &t.Rows[len(t.Rows)-1]
		row.Pick, row.Name = id, short(id)
	}
}
