package view

import (
	"fmt"
	"html/template"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tasq-dev/tasq/admin/internal/query"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// windowSize is the number of entries of a history that a page reads and its slider covers. Longer histories are shown in
// parts.
const windowSize = 500

// journalWindow is a part of the history of a tree, with the entry that is shown.
type journalWindow struct {
	entries []*store.Entry // oldest first
	n       int            // the index of the shown entry, from 1
	earlier *store.Entry   // the one before the part; nil if the part begins with the first
	later   *store.Entry   // the one after the part; nil if the part ends with the newest
}

// whole reports whether the part is the whole history, so that its entries can be numbered.
func (f *journalWindow) whole() bool { return f.earlier == nil && f.later == nil }

// past reports whether the shown entry is not the newest.
func (f *journalWindow) past() bool { return f.n < len(f.entries) || f.later != nil }

// readWindow reads the requested part of a history: the newest, the one that ends with the entry in the parameter part,
// or the one around a requested position.
func readWindow(r *Request, root workitem.CaseID) (*journalWindow, error) {
	q := query.Of(r.Form, r.Now)
	seq, n, part := q.Moment().Seq, q.Number("entry"), q.Number("part")
	if err := q.Err(); err != nil {
		return nil, err
	}
	f, err := newestWindow(r, root, part)
	if err == nil && part == 0 && seq > 0 && f.earlier != nil && seq < f.entries[0].Seq {
		f, err = windowAround(r, root, seq)
	}
	switch {
	case err != nil:
		return nil, err
	case len(f.entries) == 0:
		return nil, fmt.Errorf("case %s: no entry of its journal up to position %d: %w", root, part, store.ErrNotFound)
	case n > 0:
		f.n = int(min(n, int64(len(f.entries))))
	case seq > 0:
		f.n = 1
		for i, e := range f.entries {
			if e.Seq <= seq {
				f.n = i + 1
			}
		}
	}
	return f, nil
}

// newestWindow reads the part that ends with the newest entry, or with the one at a position.
func newestWindow(r *Request, root workitem.CaseID, until int64) (*journalWindow, error) {
	entries, err := r.R.Journal(r, store.JournalFilter{Root: root, Desc: true, Until: until, Limit: windowSize + 1})
	if err != nil {
		return nil, err
	}
	slices.Reverse(entries)
	f := &journalWindow{entries: entries}
	if len(entries) > windowSize {
		f.earlier, f.entries = entries[0], entries[1:]
	}
	f.n = len(f.entries)
	if until > 0 {
		f.later, err = next(r, root, until)
	}
	return f, err
}

// windowAround reads the part with a position in its middle.
func windowAround(r *Request, root workitem.CaseID, seq int64) (*journalWindow, error) {
	f, err := newestWindow(r, root, seq)
	if err != nil {
		return nil, err
	}
	after, err := r.R.Journal(r, store.JournalFilter{Root: root, After: seq, Limit: windowSize/2 + 1})
	if err != nil {
		return nil, err
	}
	f.later = nil
	if len(after) > windowSize/2 {
		after, f.later = after[:windowSize/2], after[windowSize/2]
	}
	if over := len(f.entries) + len(after) - windowSize; over > 0 {
		f.earlier, f.entries = f.entries[over-1], f.entries[over:]
	}
	f.entries = slices.Concat(f.entries, after)
	return f, nil
}

// next returns the entry of a history after a position; nil if there is none.
func next(r *Request, root workitem.CaseID, seq int64) (*store.Entry, error) {
	found, err := r.R.Journal(r, store.JournalFilter{Root: root, After: seq, Limit: 1})
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return found[0], nil
}

func (f *journalWindow) at() *store.Entry { return f.entries[f.n-1] }

// failing reports whether an entry contains a failure.
func failing(e *store.Entry) bool {
	for _, c := range e.Changes {
		switch c := c.(type) {
		case *state.ItemMoved:
			if c.To == workitem.Failed {
				return true
			}
		case *state.JobMoved:
			if c.To == state.JobFailed {
				return true
			}
		case *state.CaseEnded:
			if c.State == state.CaseFailed {
				return true
			}
		case *state.JobOpened:
			if c.Job.Kind == state.JobIncident {
				return true
			}
		}
	}
	return false
}

// slider moves through the history.
type slider struct {
	N, Of                  int
	Place                  string // which entry is shown, in words
	Prev, Next             string
	Fail, NextFail         string
	Part                   int64 // the position of the last entry of the part; 0 if the part is the whole history
	Earlier, Later, Newest string
	Hidden                 []Link // the parameters that stay: name and value
	Compare                string // the page with what differs between the shown state and another
	Ticks                  template.HTML
	Time                   time.Time
	Command, By            string
}

func (c *casePage) slider() slider {
	f := c.window
	e, last := f.at(), len(f.entries)
	id := c.c.ID.String()
	to := func(e *store.Entry) string {
		switch {
		case e == nil:
			return ""
		case f.later == nil && e == f.entries[last-1]:
			return c.caseLink()
		}
		return c.caseLink("at", strconv.FormatInt(e.Seq, 10))
	}
	d := slider{N: f.n, Of: last, Place: f.place(), Time: e.At, Command: c.commandText(e), By: e.By, Ticks: ticks(f.entries)}
	for _, name := range []string{"tab", "hide", "chart"} {
		if v := c.r.Form.Get(name); v != "" {
			d.Hidden = append(d.Hidden, Link{Text: name, Href: v})
		}
	}
	from, until := f.entries[0].Seq, ""
	if f.past() {
		until = strconv.FormatInt(e.Seq, 10)
	}
	d.Compare = c.Link("/cases/"+id+"/differences", "from", strconv.FormatInt(from, 10), "until", until)
	d.Prev, d.Next, d.Fail, d.NextFail = to(f.earlier), to(f.later), "", ""
	if f.n > 1 {
		d.Prev = to(f.entries[f.n-2])
	}
	if f.n < last {
		d.Next = to(f.entries[f.n])
	}
	if i := lastFailing(f.entries[:f.n-1]); i >= 0 {
		d.Fail = to(f.entries[i])
	}
	if i := slices.IndexFunc(f.entries[f.n:], failing); i >= 0 {
		d.NextFail = to(f.entries[f.n+i])
	}
	if !f.whole() {
		d.Part, d.Earlier, d.Later = f.entries[last-1].Seq, to(f.earlier), to(f.later)
		if f.later != nil {
			d.Newest = c.caseLink()
		}
	}
	return d
}

func lastFailing(entries []*store.Entry) int {
	for i := range slices.Backward(entries) {
		if failing(entries[i]) {
			return i
		}
	}
	return -1
}

// place says which entry is shown. The entries of a long history have no numbers, since counting them would take too long.
func (f *journalWindow) place() string {
	words := fmt.Sprintf("entry %d of %d", f.n, len(f.entries))
	if !f.whole() {
		words = fmt.Sprintf("entry %d of a part of %d", f.n, len(f.entries))
	}
	if !f.past() {
		return "now · " + words
	}
	return words
}

// commandText returns the command of an entry, with labels instead of the ids of items.
func (c *casePage) commandText(e *store.Entry) string {
	fields := strings.Fields(e.Command)
	for i, word := range fields {
		id, err := workitem.ParseID(strings.TrimSuffix(word, ","))
		if err != nil {
			continue
		}
		if _, it := c.tree.Item(id); it != nil {
			fields[i] = it.Label()
		} else if it, err := findItem(c.r, id); err == nil {
			fields[i] = it.Label()
		}
	}
	return strings.Join(fields, " ")
}

// maxTicks bounds the number of marks on the slider; more could not be distinguished.
const maxTicks = 240

// ticks returns marks for the entries below the slider: commands of people, and failures.
func ticks(entries []*store.Entry) template.HTML {
	var b strings.Builder
	b.WriteString(`<svg viewBox="0 0 1000 9" preserveAspectRatio="none" aria-hidden="true">`)
	step := max(1, len(entries)/maxTicks)
	for i, e := range entries {
		class, high := "tick", 4
		switch {
		case failing(e):
			class, high = "tick bad", 9
		case e.By != "":
			class, high = "tick person", 9
		case i%step != 0:
			continue
		}
		x := 500
		if len(entries) > 1 {
			x = 8 + i*984/(len(entries)-1)
		}
		fmt.Fprintf(&b, `<rect class="%s" x="%d" y="%d" width="2" height="%d"/>`, class, x-1, 9-high, high)
	}
	b.WriteString(`</svg>`)
	return template.HTML(b.String()) // only numbers and constants
}
