package view

import (
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

// buttons makes the buttons of a page: links to the forms of the commands that its user may send, and that are not rejected for a missing definition.
type buttons struct {
	*Site
	r     *Request
	lack  *lack // nil if nothing is missing
	child *lack // for commands on the child case of an incident
}

func (s *Site) buttons(r *Request) *buttons { return &buttons{Site: s, r: r} }

// lacking makes the buttons that work without what is missing.
func (b *buttons) lacking(l *lack) *buttons {
	b.lack = l
	return b
}

// rejects reports whether a command is rejected for a missing definition.
func (b *buttons) rejects(word string) bool { return b.lack.Rejects(word, actions[word].target) }

// button returns a link to the form of a command; none if the user may not send it, or if it is rejected for a missing definition.
func (b *buttons) button(all []Link, text, word, id string) []Link {
	a := actions[word]
	if b.rejects(word) || !b.r.User.Allowed(string(a.kind), id) {
		return all
	}
	return append(all, Link{Text: text, Href: b.actLink(word, a.target, id), Danger: a.danger})
}

// actLink returns the address of the form of a command.
func (s *Site) actLink(word, param, id string) string { return s.Link("/act", "kind", word, param, id) }

func (b *buttons) ofCase(c *state.Case, redrives bool) (all []Link) {
	id := c.ID.String()
	root := c.Parent.IsZero()
	if redrives && redrivable(c) {
		all = b.button(all, "Redrive…", "redrive", id)
	}
	switch {
	case !c.State.Final():
		all = b.button(all, "Send event…", "send", id)
		if c.Suspended != nil {
			all = b.button(all, "Resume…", "resume", id)
		} else {
			all = b.button(all, "Suspend…", "suspend", id)
		}
		all = b.button(all, "Move a token…", "move", id)
		return b.button(all, "Cancel case…", "cancel", id)
	case c.State == state.CaseFailed && !b.lack.Rejects(selection.ResumeFailed, ""):
		all = b.button(all, "Resume…", "resume", id)
	}
	if root {
		all = b.button(all, "Restart…", "restart", id)
		all = b.button(all, "Remove…", "remove", id)
	}
	return all
}

// forkButton returns the button that starts a new case from the past state that is shown. Only a root case that has not
// ended in that state can be forked.
func (c *casePage) forkButton() []Link {
	id := c.c.ID.String()
	if !c.c.Parent.IsZero() || c.c.State.Final() || selection.LackOf(&c.here, c.c, c.tree.Chain(c.c)).Rejects("fork", "case") || !c.r.User.Allowed(string(workflow.KindFork), id) {
		return nil
	}
	return []Link{{Text: "Fork from here…", Href: c.Link("/act", "kind", "fork", "case", id, "seq", strconv.FormatInt(c.window.at().Seq, 10))}}
}

func (b *buttons) ofItem(it *workitem.Item, incident bool) (all []Link) {
	id := it.ID.String()
	if incident {
		defer func() { all = b.button(all, "Give up…", "give-up", id) }()
	}
	switch it.State {
	case workitem.Initialized:
		all = b.button(all, "Start", "item-start", id)
		if it.Due.After(b.r.Now) {
			all = b.button(all, "Retry now…", "retry", id)
		}
	case workitem.Started:
		all = b.button(all, "Complete…", "item-complete", id)
		all = b.button(all, "Reset…", "item-reset", id)
		all = b.button(all, "Fail…", "item-fail", id)
	case workitem.Failed:
		if it.Successor.IsZero() {
			all = b.button(all, "Retry…", "retry", id)
			all = b.button(all, "Skip…", "skip", id)
		}
	}
	if it.State.Live() {
		all = b.button(all, "Skip…", "skip", id)
		all = b.button(all, "Cancel…", "item-cancel", id)
	}
	return all
}

func (b *buttons) ofJob(j *state.Job) (all []Link) {
	if j.State == state.JobRunning {
		all = b.button(all, "Release…", "reclaim", j.ID.String())
	}
	return all
}

// ofWait returns the commands for a wait, those against its block first.
func (b *buttons) ofWait(w *why.Wait) []Link {
	return append(b.againstBlock(w), b.ofKind(w)...)
}

// againstBlock returns the commands that remove what blocks due work.
func (b *buttons) againstBlock(w *why.Wait) (all []Link) {
	switch {
	case w.Suspended != nil:
		return b.button(all, "Resume the case…", "resume", w.Suspended.Case.String())
	case w.Blocked == why.Paused, len(w.MayBePausedKeys) > 0:
		return b.ofPaused(w)
	case w.Blocked == why.Limited, len(w.Needs) > 0:
		return b.ofLimits(w)
	case w.Blocked == why.Lapsed:
		return b.button(all, "Release…", "reclaim", w.Job.String())
	}
	return all
}

// ofIncident returns the commands that resolve an incident.
func (b *buttons) ofIncident(w *why.Wait) (all []Link) {
	switch {
	case !w.Child.IsZero():
		if !b.child.Rejects(selection.ResumeFailed, "case") {
			all = b.button(all, "Resume the child case…", "resume", w.Child.String())
		}
		return b.button(all, "Give up…", "give-up-incident", w.Incident.String())
	case w.Work != state.JobIncident && w.Work != state.JobRun:
		return b.button(all, "Retry…", "retry-incident", w.Incident.String())
	case w.Item.IsZero():
		return all
	}
	item := w.Item.String()
	all = b.button(all, "Retry…", "retry", item)
	all = b.button(all, "Skip…", "skip", item)
	return b.button(all, "Give up…", "give-up", item)
}

// retry returns the command that retries the subject of a listed incident; none if it is rejected. A child case is resumed on its own page.
func (b *buttons) retry(i *store.Incident, m *selection.Missing) ([]Link, error) {
	text, word, id := "Retry…", "retry", i.Item.String()
	switch {
	case !i.Child.IsZero():
		text, word, id = "Resume…", "resume", i.Child.String()
	case i.Job.Again():
		word, id = "retry-incident", i.ID.String()
	case i.Item.IsZero():
		return nil, nil
	}
	if lack, err := m.Incident(b.r, b.r.R, i, word); err != nil || lack != nil {
		return nil, err
	}
	return b.button(nil, text, word, id), nil
}

// ofKind returns the commands that do what is waited for, or skip it.
func (b *buttons) ofKind(w *why.Wait) (all []Link) {
	item := w.Item.String()
	switch {
	case w.Kind == why.Incident:
		return b.ofIncident(w)
	case w.Kind == why.Stuck:
		return b.button(all, "Move a token…", "move", w.Case.String())
	case w.Item.IsZero():
	case w.Kind == why.Retry:
		return b.button(all, "Retry now…", "retry", item)
	case w.Kind == why.Person && w.State == workitem.Started.String():
		all = b.button(all, "Complete…", "item-complete", item)
		return b.button(all, "Reset…", "item-reset", item)
	case w.Kind == why.Person && w.Suspended == nil:
		return b.button(all, "Start", "item-start", item)
	}
	return append(all, b.ofEvent(w)...)
}

// ofEvent returns the command that sends the event, or broadcasts the topic, that is waited for.
func (b *buttons) ofEvent(w *why.Wait) []Link {
	id := w.Case.String()
	switch {
	case b.rejects("send"):
	case w.Kind == why.Event && b.r.User.Allowed(string(workflow.KindSend), id):
		return []Link{{Text: "Send it…", Href: b.Link("/act", "kind", "send", "case", id, "event", w.Name)}}
	case w.Kind == why.Topic && b.r.User.Allowed(string(workflow.KindBroadcast), ""):
		return []Link{{Text: "Broadcast…", Href: b.Link("/act", "kind", "broadcast", "event", w.Name)}}
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
func (b *buttons) incidentPicks(o *offers) *Picks {
	if len(o.ticks) < 2 {
		return nil
	}
	return b.picks(o.words...)
}

// ofGroup returns the bulk actions on all incidents of a group. within is the filter of the list.
func (b *buttons) ofGroup(g *group, words []string, within url.Values) (all []Link) {
	if b.Bulk == nil {
		return nil
	}
	names := map[string]string{"retry": "Retry all…", "retry-incident": "Retry all…", "skip": "Skip all…", "give-up": "Give up all…", "give-up-incident": "Give up all…"}
	for _, word := range words {
		a := actions[word]
		if b.r.User.Allowed(string(a.kind), "") {
			all = append(all, Link{Text: names[word], Danger: a.danger, Href: b.bulkLink(word, g.filter(within))})
		}
	}
	return all
}

// ofCases returns the bulk actions on all cases that match the filter of the list.
// missing is the workflow that is missing for all of them; "" if none is.
func (b *buttons) ofCases(f *selection.Cases, missing string) (all []Link) {
	if b.Bulk == nil || f.Workflow == bulk.Name || len(f.States) > 1 {
		return nil
	}
	present := state.CaseStarted
	if len(f.States) == 1 {
		present = f.States[0]
	}
	add := func(word, text string) {
		if a := actions[word]; b.r.User.Allowed(string(a.kind), "") {
			all = append(all, Link{Text: text, Danger: a.danger, Href: b.bulkLink(word, filterOf(b.r.Form, f.Names))})
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
func (b *buttons) picks(words ...string) *Picks {
	p := &Picks{Action: b.Link("/bulk")}
	for _, word := range words {
		if a := actions[word]; b.Bulk != nil && b.r.User.Allowed(string(a.kind), "") {
			p.Words = append(p.Words, Link{Text: capital(strings.ReplaceAll(strings.TrimPrefix(strings.TrimSuffix(word, "-incident"), "item-"), "-", " ")) + " ticked…", Href: word, Danger: a.danger})
		}
	}
	if p.Words == nil {
		return nil
	}
	return p
}

// casePicks are those on a list of cases.
func (b *buttons) casePicks(f *selection.Cases) *Picks {
	live, failed := len(f.States) == 0 || slices.Contains(f.States, state.CaseStarted), len(f.States) == 0 || slices.Contains(f.States, state.CaseFailed)
	switch {
	case f.Workflow == bulk.Name:
		return nil
	case live:
		return b.picks("resume", "suspend", "cancel")
	case failed:
		return b.picks("resume", "restart", "remove")
	}
	return b.picks("restart", "remove")
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

// ofItems returns the bulk actions on all work items that match the filter of the list, if it has one.
func (b *buttons) ofItems(names, words []string) (all []Link) {
	filter := filterOf(b.r.Form, names)
	if b.Bulk == nil || len(filter) == 0 || b.r.Form.Get("workflow") == bulk.Name {
		return nil
	}
	for _, word := range words {
		if a := actions[word]; b.r.User.Allowed(string(a.kind), "") {
			all = append(all, Link{Text: capital(a.act.String()) + " all that match…", Danger: a.danger, Href: b.bulkLink(word, filter)})
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
