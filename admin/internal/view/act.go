package view

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/tasq-dev/tasq/admin/internal/access"
	"github.com/tasq-dev/tasq/admin/internal/api"
	"github.com/tasq-dev/tasq/admin/internal/mask"
	"github.com/tasq-dev/tasq/admin/internal/source"
	"github.com/tasq-dev/tasq/internal/printable"
	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// actPage is the form of a command.
type actPage struct {
	Crumbs               []Link
	Title, Target, About string
	Also                 *Link // the same form for other targets
	Error                string
	Action, Draft, Back  string
	Hidden               []Link
	Fields               []field
	Advanced             []field // further options
	Unfolded             bool    // they are shown, since one of them is filled in
	Do                   string
	Danger               bool
	Preview              []string
	Checks               bool   // there is a button that shows the preview
	Focus                string // what has the focus if that is no field: error or preview

	fresh bool // the form is empty as it was first shown
}

// forms answers with the forms of commands and of bulk actions, and executes those that are sent.
type forms struct{ *Site }

// newKey returns an idempotency key for a form: if the form is sent twice, the command is executed once.
func newKey() string {
	var b [12]byte
	_, _ = rand.Read(b[:]) // it never fails
	return "pages " + hex.EncodeToString(b[:])
}

// actForm answers with the form of a command.
func (h *forms) actForm(w http.ResponseWriter, r *http.Request) {
	r.Form = r.URL.Query()
	r.Form.Set("key", newKey())
	h.showForm(w, r, http.StatusOK, nil)
}

// maxForm bounds the size of a sent form.
const maxForm = api.MaxBody

// posted reads a sent form into r.Form. It answers and returns false if the form cannot be read, or if a field that takes one value has several: all but
// one of them would mean nothing.
func (h *forms) posted(w http.ResponseWriter, r *http.Request, several ...string) bool {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		h.say(w, r, http.StatusBadRequest, "The form cannot be read", err.Error())
		return false
	}
	r.Form = r.PostForm
	for _, name := range slices.Sorted(maps.Keys(r.Form)) {
		if n := len(r.Form[name]); n > 1 && !slices.Contains(several, name) {
			h.say(w, r, http.StatusBadRequest, "The form is invalid", fmt.Sprintf("The field %s takes one value, and is given %d times.", printable.Line(name), n))
			return false
		}
	}
	return true
}

// act executes the command of a form.
func (h *forms) act(w http.ResponseWriter, r *http.Request) {
	if !h.posted(w, r) {
		return
	}
	a, ok := actions[r.Form.Get("kind")]
	if !ok {
		h.say(w, r, http.StatusNotFound, "There is no such command", "")
		return
	}
	if a.schedule != "" {
		h.onSchedule(w, r, &a)
		return
	}
	u := access.UserOf(r.Context())
	c, err := a.command(r.Form, u.Name)
	if err != nil {
		h.showForm(w, r, http.StatusUnprocessableEntity, err)
		return
	}
	if !h.allowed(w, r, string(c.Kind), access.TargetOf(&c)) {
		return
	}
	if id := c.Case.String(); a.kind == workflow.KindRemove && r.Form.Get("confirm") != id[len(id)-4:] {
		h.showForm(w, r, http.StatusUnprocessableEntity, fmt.Errorf("to remove the case, type the last four characters of its id: %s", id[len(id)-4:]))
		return
	}
	if r.Form.Has("check") {
		h.checkedForm(w, r, &a, c)
		return
	}
	result, err := h.Backend.Do(r.Context(), c)
	if c.Kind == workflow.KindRemove && errors.Is(err, store.ErrNotFound) {
		err = nil // the form was sent twice: the first request removed the case with its keys
	}
	if err != nil {
		h.refusedForm(w, r, err)
		return
	}
	http.Redirect(w, r, h.after(r, &c, result), http.StatusSeeOther)
}

// refusedForm answers with the form and the error of the command.
func (h *forms) refusedForm(w http.ResponseWriter, r *http.Request, err error) {
	if tookLong(err) {
		h.answer(w, r, h.failed(&Request{Context: r.Context(), Request: r}, err))
		return
	}
	status, _ := api.StatusOf(err)
	h.showForm(w, r, status, err)
}

// allowed answers with an error if the user may not send a command.
func (h *forms) allowed(w http.ResponseWriter, r *http.Request, kind, target string) bool {
	u := access.UserOf(r.Context())
	if u.Allowed(kind, target) {
		return true
	}
	h.Log.Warn("tasq pages: a command is refused", "kind", kind, "target", target, "user", u.Name)
	h.say(w, r, http.StatusForbidden, "You may not do this", fmt.Sprintf("%s does not have the right %q for %s.", access.Named(u), kind, target))
	return false
}

// after returns the page that follows a command.
func (h *forms) after(r *http.Request, c *workflow.Command, result workflow.Result) string {
	word := r.Form.Get("kind")
	switch {
	case r.Form.Get("back") == backToBulk:
		return h.Link("/bulk/"+c.Case.String(), "done", word)
	case c.Kind == workflow.KindRemove:
		return h.Link("/cases", "done", word)
	case c.Kind == workflow.KindPause, c.Kind == workflow.KindUnpause, c.Kind == workflow.KindSetWorkers, c.Kind == workflow.KindForgetWorkers,
		c.Kind == workflow.KindSetLimit, c.Kind == workflow.KindForgetLimit:
		return h.Link("/limits", "done", word)
	case c.Kind == workflow.KindSuspendWorkflow, c.Kind == workflow.KindResumeWorkflow:
		return h.Link("/workflows/"+escapePath(c.Workflow), "done", word)
	case c.Kind == workflow.KindBroadcast:
		return h.Link("/events", "done", word)
	case c.Kind == workflow.KindReclaim:
		return h.Link("/jobs/"+c.Job.String(), "done", word)
	case !result.Item.IsZero():
		return h.Link("/items/"+result.Item.String(), "done", word)
	case !result.Case.IsZero():
		return h.Link("/cases/"+result.Case.String(), "done", word)
	case !c.Item.IsZero():
		return h.Link("/items/"+c.Item.String(), "done", word)
	}
	return h.Link("/cases/"+c.Case.String(), "done", word)
}

// alertOf returns the message after a command; word is that of its form.
func alertOf(word string) *Alert {
	if word == "bulk" {
		return &Alert{Class: "good", Text: "The action has started."}
	}
	a, ok := actions[word]
	if !ok {
		return nil
	}
	return &Alert{Class: "good", Text: a.title + ": done."}
}

// sayCodes are the codes of messages that are errors.
var sayCodes = map[int]string{http.StatusNotFound: "not-found", http.StatusForbidden: codeNotAllowed, http.StatusBadRequest: "bad-command"}

// say answers with a page of one sentence.
func (s *Site) say(w http.ResponseWriter, r *http.Request, status int, title, text string) {
	m := message{Title: title, Links: []Link{{Text: "Overview", Href: s.Link("/")}}, HTTP: status, Code: sayCodes[status]}
	if text != "" {
		m.Lines = []string{text}
	}
	s.answer(w, r, &Page{Title: title, Status: status, Parts: []Part{{ID: "message", Template: "message", Data: m}}})
}

func (s *Site) answer(w http.ResponseWriter, r *http.Request, p *Page) {
	p.site, p.User, p.self, p.Now = s, access.UserOf(r.Context()), r.URL, s.Backend.Now()
	s.write(w, r, p)
}

// showForm answers with the form of a command, filled with the given values.
func (h *forms) showForm(w http.ResponseWriter, r *http.Request, status int, problem error, preview ...string) {
	word := r.Form.Get("kind")
	a, ok := actions[word]
	if !ok {
		h.say(w, r, http.StatusNotFound, "There is no such command", "")
		return
	}
	id := r.Form.Get(a.target)
	if !access.UserOf(r.Context()).Allowed(a.word(), id) {
		h.say(w, r, http.StatusForbidden, "You may not do this", "The pages are read-only, or you do not have the right for this command.")
		return
	}
	p := actPage{Title: a.title, About: a.about, Action: h.Link("/act"), Draft: word + " " + id, Do: a.do, Danger: a.danger, Back: h.back(&a, id),
		Hidden: []Link{{Text: "kind", Href: word}, {Text: "key", Href: r.Form.Get("key")}}, fresh: r.Method == http.MethodGet && !r.Form.Has("payload")}
	if a.target != "" {
		p.Hidden = append(p.Hidden, Link{Text: a.target, Href: id})
	}
	if r.Form.Get("back") == backToBulk {
		p.Hidden, p.Back = append(p.Hidden, Link{Text: "back", Href: backToBulk}), h.Link("/bulk/"+id)
	}
	p.Crumbs = []Link{{Text: capital(orElse(a.target, "events")), Href: p.Back}, {Text: a.title}}
	p.fill(&a, r.Form, problem)
	if err := h.bounded(r, func(ctx context.Context) error { return h.target(ctx, &a, id, &p) }); err != nil {
		h.answer(w, r, h.failed(&Request{Context: r.Context(), Request: r}, err))
		return
	}
	_, previews := h.Backend.(source.Previewer)
	p.Checks, p.Preview = a.checks && (previews || a.schedule != ""), preview
	if problem == nil && a.shows && a.schedule != "" {
		p.Preview, _ = h.scheduleWould(r, &a, id, time.Time{}, time.Time{}) // of a schedule that is gone the command itself says so
	} else if problem == nil && a.shows {
		if c, err := a.command(url.Values{a.target: {id}}, ""); err == nil {
			p.Preview = h.shownPreview(r, c)
		}
	}
	p.focus(len(preview) > 0)
	h.answer(w, r, &Page{Title: a.title, Status: status, Parts: []Part{{ID: "act", Template: "act", Data: p}}})
}

// focus decides where a user of the keyboard goes on: at the first wrong field, at the error or at the preview that was asked for, and in a new form at
// its first field.
func (p *actPage) focus(checked bool) {
	for _, fields := range [][]field{p.Fields, p.Advanced} {
		for i := range fields {
			if fields[i].Error != "" {
				fields[i].Focus = true
				return
			}
		}
	}
	switch {
	case p.Error != "":
		p.Focus = "error"
	case checked:
		p.Focus = "preview"
	case len(p.Fields) > 0:
		p.Fields[0].Focus = true
	}
}

// capital returns a word with its first letter in upper case.
func capital(word string) string { return strings.ToUpper(word[:1]) + word[1:] }

func (h *forms) back(a *action, id string) string {
	switch a.target {
	case "":
		return h.Link("/events")
	case "workflow":
		return h.Link("/workflows/" + escapePath(id))
	case "schedule":
		return h.scheduleLink(id)
	case "queue", "limit":
		return h.Link("/limits")
	case "incident":
		return h.Link("/incidents")
	}
	return h.Link("/" + a.target + "s/" + id)
}

// target describes what the command is about.
func (h *forms) target(ctx context.Context, a *action, id string, p *actPage) error {
	return h.Backend.View(ctx, func(v store.Reader) error {
		req := &Request{Context: ctx, R: v}
		switch a.target {
		case "case":
			var key workitem.CaseID
			_ = key.UnmarshalText([]byte(id)) // an invalid id matches no case
			found, err := v.Cases(ctx, store.CaseFilter{ID: key})
			if err != nil || len(found) == 0 || key.IsZero() {
				return orMissing(err, "case", id)
			}
			p.Target = fmt.Sprintf("Case %s of %s, %s", id, found[0].Workflow, found[0].State)
			switch a.kind {
			case workflow.KindMove:
				return p.places(ctx, v, key)
			case workflow.KindResume:
				return h.prefillResume(req, found[0], p)
			}
		case "item":
			var key workitem.ID
			_ = key.UnmarshalText([]byte(id)) // an invalid id matches no item
			it, err := findItem(req, key)
			if err != nil || key.IsZero() {
				return orMissing(err, "work item", id)
			}
			p.Target = fmt.Sprintf("Item %s of %s, %s, attempt %d", it.Label(), it.Workflow, it.State, it.Attempt)
			if it.Failure != nil {
				p.Target += ": " + printable.Line(printable.Brief([]byte(it.Failure.String()), 200))
			}
			if a.kind == workflow.KindRetry {
				p.prefill(it, h.maskOf(ctx).Row(it), p.fresh)
			}
		case "job":
			p.Target = "Job " + id
		case "incident":
			return p.incident(ctx, v, id)
		case "workflow":
			p.Target = "Workflow " + id
		case "schedule":
			p.Target = "Schedule " + id
		case "queue":
			p.Target = "Queue " + queueName(id)
		case "limit":
			p.Target = "Limit " + id
		}
		return nil
	})
}

func orMissing(err error, what, id string) error {
	if err == nil {
		err = fmt.Errorf("%s %q: %w", what, id, store.ErrNotFound)
	}
	return err
}

// places returns the names of a case's net for a move: as the source those with tokens or started, as the target all.
func (p *actPage) places(ctx context.Context, v store.Reader, id workitem.CaseID) error {
	tree, err := v.Tree(ctx, id)
	if err != nil {
		return err
	}
	c := tree.Case(id)
	from, to := []string{""}, []string{""}
	for i := range c.Net.NumTasks() {
		name := c.Net.TaskName(net.TaskID(i))
		if to = append(to, name); c.Tasks[i].State == state.TaskEnabled || c.Tasks[i].State == state.TaskStarted || c.Tasks[i].Resumable() {
			from = append(from, name)
		}
	}
	for i := range c.Net.NumConditions() {
		name := c.Net.ConditionName(net.ConditionID(i))
		if to = append(to, name); c.Marking[i] > 0 {
			from = append(from, name)
		}
	}
	for i := range p.Fields {
		switch f := &p.Fields[i]; f.Name {
		case "from":
			f.Options = from
		case "to":
			f.Options = to
		}
	}
	return nil
}

// maskOf masks what the user of a request may not see.
func (s *Site) maskOf(ctx context.Context) mask.Mask {
	if s.Mask == nil {
		return nil
	}
	return s.Mask(access.UserOf(ctx))
}
