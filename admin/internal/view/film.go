package view

import (
	"fmt"
	"html/template"
	"strconv"
	"strings"
	"time"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// film is the history of a tree, entry by entry, and which of them is shown.
type film struct {
	entries []*store.Entry
	n       int // the entry that is shown, from 1
}

func newFilm(entries []*store.Entry, seq int64) *film {
	f := &film{entries: entries, n: len(entries)}
	if seq > 0 {
		f.n = 1
		for i, e := range entries {
			if e.Seq <= seq {
				f.n = i + 1
			}
		}
	}
	return f
}

func (f *film) at() *store.Entry { return f.entries[f.n-1] }

// failing reports whether an entry brought a failure.
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

// slider leads through the history.
type slider struct {
	N, Of            int
	Past             bool
	Prev, Next, Fail string
	Base             string
	Ticks            template.HTML
	Time             time.Time
	Command, By      string
}

func (s *Site) slider(r *Request, c *shown) slider {
	e := c.film.at()
	id, tab := c.c.ID.String(), r.Form.Get("tab")
	to := func(n int) string {
		if n == len(c.entries) {
			return s.Link("/cases/"+id, "tab", tab)
		}
		return s.Link("/cases/"+id, "tab", tab, "at", strconv.FormatInt(c.entries[n-1].Seq, 10))
	}
	d := slider{N: c.film.n, Of: len(c.entries), Past: c.past, Base: s.Link("/cases/" + id), Time: e.At, Command: describe(c, e), By: e.By, Ticks: ticks(c.entries)}
	if d.N > 1 && c.entries[0].Seq < e.Seq {
		d.Prev = to(d.N - 1)
	}
	if d.N < d.Of {
		d.Next = to(d.N + 1)
	}
	for n := d.N - 1; n > 0; n-- {
		if failing(c.entries[n-1]) {
			d.Fail = to(n)
			break
		}
	}
	return d
}

// describe returns the command of an entry, with labels in place of the ids of items that are in memory.
func describe(c *shown, e *store.Entry) string {
	fields := strings.Fields(e.Command)
	for i, word := range fields {
		if id, err := workitem.ParseID(strings.TrimSuffix(word, ",")); err == nil {
			if _, it := c.tree.Item(id); it != nil {
				fields[i] = it.Label()
			}
		}
	}
	return strings.Join(fields, " ")
}

// maxTicks is how many marks the slider has; more could not be distinguished.
const maxTicks = 240

// ticks marks the entries below the slider: what people did, and failures.
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
	return template.HTML(b.String()) // #nosec: numbers and constants alone
}
