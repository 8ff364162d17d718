package view

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tasq-dev/tasq/engine/why"
	"github.com/tasq-dev/tasq/internal/printable"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// casePage is the page of a case in its present state, or at an entry of its history.
type casePage struct {
	*Site
	r      *Request
	c      *state.Case
	tree   *state.Tree
	window *journalWindow
	past   bool
	answer *why.Answer
	here   why.Here // which definitions open engines have
}

// oneCase is the page of a case.
func (s *Site) oneCase(r *Request) (*Page, error) {
	var id workitem.CaseID
	if err := pathID(r, "case", &id); err != nil {
		return nil, err
	}
	c, err := s.readCase(r, id)
	if err != nil {
		return nil, err
	}
	return c.page()
}

func (c *casePage) page() (*Page, error) {
	picture, err := c.picture()
	if err != nil {
		return nil, err
	}
	top := c.head()
	if !c.past {
		if top.Buttons, top.Lack, err = c.presentButtons(); err != nil {
			return nil, err
		}
	}
	p := &Page{Title: c.c.Workflow + " " + short(c.c.ID.String()), Nav: "Cases", Past: c.past, Live: true, Parts: []Part{
		{ID: "head", Template: "casehead", Data: top}, {ID: "picture", Template: "picture", Data: picture},
		{ID: "slider", Template: "slider", Data: c.slider()}, {ID: "why", Template: "why", Data: c.why()}}}
	tabs, err := c.tabs()
	p.Parts = append(p.Parts, tabs...)
	return p, err
}

// readCase reads a case and a part of its history, and rebuilds the requested state.
func (s *Site) readCase(r *Request, id workitem.CaseID) (*casePage, error) {
	root, err := r.R.Root(r, id)
	if err != nil {
		return nil, err
	}
	f, err := readWindow(r, root)
	if err != nil {
		return nil, err
	}
	if f.earlier != nil {
		s.Past.Prepare(s.Backend, root, f.earlier.Seq, s.Backend.Now())
	}
	c := &casePage{Site: s, r: r, window: f, past: f.past()}
	if c.past {
		c.tree, err = s.Past.At(r, r.R, id, f.at().Seq)
	} else {
		c.tree, err = r.R.Tree(r, root)
	}
	if err != nil {
		return nil, err
	}
	if c.c = c.tree.Case(id); c.c == nil { // id is that of a work item, or of a child case that was created after the shown state
		return nil, fmt.Errorf("case %s: %w", id, store.ErrNotFound)
	}
	if c.here, err = s.Backend.Here().WithFleet(r, r.R); err != nil {
		return nil, err
	}
	if c.answer, err = c.explain(); err != nil {
		return nil, err
	}
	return c, nil
}

// caseLink returns the address of the case that shows the same parts of it, with other parameters.
func (c *casePage) caseLink(query ...string) string {
	all := make([]string, 0, len(query)+6)
	for _, name := range []string{"tab", "hide", "chart"} {
		if !slices.Contains(query, name) {
			all = append(all, name, c.r.Form.Get(name))
		}
	}
	return c.Link("/cases/"+c.c.ID.String(), append(all, query...)...)
}

// now returns the time of the shown state.
func (c *casePage) now() time.Time {
	if c.past {
		return c.window.at().At
	}
	return c.r.Now
}

// explain returns what the case waits for in the shown state.
func (c *casePage) explain() (*why.Answer, error) {
	if c.past {
		return why.Explain(why.Input{Tree: c.tree, Case: c.c.ID, Now: c.window.at().At, Here: c.r.Mask.Here(why.Here{})}), nil
	}
	return why.ReadOf(c.r, c.r.R, c.tree, c.c.ID, c.r.Now, c.r.Mask.Here(c.Backend.Here()))
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// whyData is what a case waits for.
type whyData struct {
	Title, Text string
	Waits       []waitData
	Holds       []string // the limits that the case holds
}

type waitData struct {
	Kind, Word, Name, Href, Text string
	Times                        []Cell
	Holders                      []Link // the cases that hold the limit it waits for
	Buttons                      []Link
}

// words are the names of the kinds of waits.
var words = map[why.Kind]string{why.Person: "waits for a user", why.Worker: "waits for a worker", why.Running: "under way", why.Retry: "another attempt",
	why.Delay: "waits for a time", why.Timer: "timer", why.Event: "waits for an event", why.Topic: "waits for a broadcast", why.Child: "waits for a child case", why.Turn: "waits for its turn",
	why.Join:     "join waits",
	why.Incident: "needs a decision", why.Stuck: "cannot go on"}

// maxWaits bounds the number of waits that are shown in full.
const maxWaits = 24

func (c *casePage) why() whyData {
	d := whyData{Title: "What it waits for"}
	if c.past {
		d.Title = "What it waited for"
	}
	switch {
	case c.c.State.Final() && len(c.answer.Waits) == 0:
		d.Text = nothingIn(c.answer)
	case len(c.answer.Waits) == 0:
		d.Text = "Nothing known."
	}
	shown, others := c.answer.Brief(maxWaits)
	if len(shown) > maxWaits || len(others) > 0 {
		shown, others = c.answer.Brief(why.MaxAlike)
		shown = shown[:min(len(shown), maxWaits)]
		d.Text = fmt.Sprintf("%d of %d are shown.", len(shown), len(c.answer.Waits)+c.answer.More)
		for _, o := range others {
			d.Text += fmt.Sprintf(" There are %s.", o)
		}
	}
	for _, w := range shown {
		d.Waits = append(d.Waits, c.wait(w))
	}
	for i := range c.answer.Holds {
		d.Holds = append(d.Holds, c.answer.Holds[i].Text)
	}
	return d
}

// nothingIn says of a case that has ended why it waits for nothing, and what would continue.
func nothingIn(a *why.Answer) string {
	text := "Nothing: the case has ended."
	if a.DeadLetter != "" {
		text = "Nothing: " + a.DeadLetter + "."
	}
	if len(a.Lost) > 0 {
		text += " If it is resumed, it continues with " + strings.Join(a.Lost, ", ") + "."
	}
	return text
}

func (c *casePage) wait(w *why.Wait) waitData {
	d := waitData{Kind: string(w.Kind), Word: words[w.Kind], Name: orElse(w.Label, orElse(w.Task, orElse(w.Name, w.Workflow))), Text: plain(w.Words(c.now()))}
	if w.Path != "" {
		d.Name = w.Path + " " + d.Name
	}
	switch {
	case !w.Item.IsZero():
		d.Href = c.Link("/items/" + w.Item.String())
	case !w.Child.IsZero():
		d.Href = c.Link("/cases/" + w.Child.String())
	case !w.Job.IsZero():
		d.Href = c.Link("/jobs/" + w.Job.String())
	}
	if !w.Since.IsZero() {
		d.Times = append(d.Times, labeled("since", at(w.Since)))
	}
	if !w.Until.IsZero() && !w.Until.Equal(printable.Never) {
		d.Times = append(d.Times, labeled("until", at(w.Until)))
	}
	d.Holders = c.holders(w)
	if !c.past {
		b := c.buttons(c.r).lacking(c.lack(c.tree.Case(w.Case)))
		b.child = c.lack(c.tree.Case(w.Child))
		d.Buttons = b.ofWait(w)
	}
	return d
}

// maxHolders is how many of the cases that hold a limit have a link on the page of a case that waits for it.
const maxHolders = 10

// holders returns links to the cases that hold a limit which the case waits for.
func (s *Site) holders(w *why.Wait) (all []Link) {
	for i := range w.Limits {
		for _, id := range w.Limits[i].HeldBy {
			if len(all) == maxHolders {
				return all
			}
			all = append(all, Link{Text: "case " + short(id.String()), Href: s.Link("/cases/" + id.String())})
		}
	}
	return all
}

// plain returns the text of a wait without the line with its id, for which the page has a link.
func plain(text string) string {
	var lines []string
	for line := range strings.Lines(text) {
		bare := strings.TrimSpace(line)
		if _, err := workitem.ParseID(bare); err == nil {
			continue
		}
		if strings.HasPrefix(line, " ") || strings.HasPrefix(line, "\t") {
			bare = "• " + bare
		}
		lines = append(lines, bare)
	}
	return strings.Join(lines, "\n")
}

// children returns the child cases.
func (c *casePage) children() *Table {
	t := &Table{ID: "children", Head: []string{"case", "as", "workflow", "state", "created", "ended", "failure"},
		Empty: &Empty{Text: "The case has no child cases."}}
	ids := slices.Clone(c.c.Children)
	slices.Reverse(ids)
	for _, id := range limited(t, ids, c.Link("/cases", "case", c.c.Root.String())) {
		child := c.tree.Case(id)
		if child == nil {
			continue
		}
		t.row(id.String(), idLink(id.String(), c.Link("/cases/"+id.String())), text(child.Label()), text(child.Workflow), stateOf(child.State.String()),
			at(child.Created), at(child.Ended), failure(child.Failure))
	}
	return t
}
