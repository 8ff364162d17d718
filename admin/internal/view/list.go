package view

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/tasq-dev/tasq/admin/internal/query"
	"github.com/tasq-dev/tasq/admin/internal/source"
	"github.com/tasq-dev/tasq/internal/printable"
	"github.com/tasq-dev/tasq/internal/spelling"
	"github.com/tasq-dev/tasq/store"
)

// pageSize is how many rows a page of a list has.
const pageSize = 50

// head is the top of a list.
type head struct {
	Title   string
	About   string
	Ignored string // what of the address means nothing to the list
	Buttons []Link
	Tabs    []Link
	Filter  *filter
	Files   []Link // where all that match can be downloaded
}

// downloads are the lists that the API has by the same path and filters.
var downloads = []string{"/cases", "/items", "/jobs", "/steps", "/events"}

// filter shows the filters that are set, each as a link that drops it, and a form for others.
type filter struct {
	Action string
	Chips  []Link
	Hidden []Link // fields that stay: name and value
	Fields []field
}

// field is an input of a form.
type field struct {
	Name, Label, Value, Hint string
	Options                  []string
	None                     string // what an empty parameter means; "" if it means nothing
	Error                    string // what is wrong with the value
	Wide, Required           bool
	Advanced                 bool // it is among the further options, which are folded
	Focus                    bool // it has the focus when the form is shown
}

// listing makes the page of a list.
type listing struct {
	s     *Site
	r     *Request
	path  string
	title string
	table Table
	head  head
}

func (s *Site) listing(r *Request, path, title string, columns ...string) *listing {
	l := &listing{s: s, r: r, path: path, title: title}
	l.table = Table{ID: strings.Trim(path, "/"), Head: columns}
	l.head = head{Title: title}
	return l
}

// with is the address of the list with a parameter set, or dropped if it is "".
func (l *listing) with(name, value string) string {
	u := url.URL{Path: l.s.Prefix + l.path, RawQuery: l.query(name, value).Encode()}
	return u.String()
}

// query is the query of the list with another value of one parameter.
func (l *listing) query(name, value string) url.Values {
	v := url.Values{}
	for k, all := range l.r.Form {
		if k != "cursor" && k != "done" && k != name {
			v[k] = all
		}
	}
	if value != "" {
		v.Set(name, value)
	}
	return v
}

// tabs are the choices of one parameter, with a number each if it is known.
func (l *listing) tabs(name string, words []string, count func(word string) (int64, bool)) {
	present := l.r.Form.Get(name)
	all := Link{Text: "all", Href: l.with(name, ""), Current: present == ""}
	l.head.Tabs = append(l.head.Tabs, all)
	for _, word := range words {
		tab := Link{Text: word, Href: l.with(name, word), Current: present == word}
		if n, known := count(word); known {
			tab.Count = thousands(n)
		}
		l.head.Tabs = append(l.head.Tabs, tab)
	}
}

func unknown(string) (int64, bool) { return 0, false }

// filterForm is the parameter that says that an address comes from the form of filters: with its empty fields, which mean nothing. Its values name those
// that mean something.
const filterForm = "filter"

// filtered is the address of a list without the empty fields of the form that led to it; "" if it does not come from a form.
func (s *Site) filtered(r *Request) string {
	if !r.Form.Has(filterForm) {
		return ""
	}
	v := url.Values{}
	for name, all := range r.Form {
		for _, value := range all {
			if name != filterForm && (strings.TrimSpace(value) != "" || slices.Contains(r.Form[filterForm], name)) {
				v.Add(name, value)
			}
		}
	}
	u := url.URL{Path: s.Prefix + r.URL.Path, RawQuery: v.Encode()}
	return u.String()
}

// filters shows the given fields. The parameter of the tabs stays as it is.
func (l *listing) filters(tab string, fields ...field) {
	f := &filter{Action: l.s.Prefix + l.path, Hidden: []Link{{Text: filterForm, Href: "1"}}}
	if v := l.r.Form.Get(tab); tab != "" && v != "" {
		f.Hidden = append(f.Hidden, Link{Text: tab, Href: v})
	}
	for _, known := range fields {
		if l.r.Form.Has(known.Name) && (known.None != "" || l.r.Form.Get(known.Name) != "") {
			known.Value = l.r.Form.Get(known.Name)
			shown := known.Value
			switch {
			case known.Name == "case":
				shown = short(shown)
			case shown == "":
				shown = known.None
			}
			f.Chips = append(f.Chips, Link{Text: known.Label + ": " + shown, Href: l.with(known.Name, "")})
			if known.Value == "" { // none, which an empty field of the form does not mean
				f.Hidden = append(f.Hidden, Link{Text: filterForm, Href: known.Name})
				f.Hidden = append(f.Hidden, Link{Text: known.Name})
				continue
			}
		}
		f.Fields = append(f.Fields, known)
	}
	l.head.Filter = f
}

// page finishes the list: an empty one says what would be here.
func (l *listing) page(empty, command string) *Page {
	if len(l.table.Rows) == 0 {
		e := &Empty{Text: empty, Command: command}
		if set := l.set(); set != "" {
			e = &Empty{Text: "Nothing matches " + set + "." + l.unknownName() + l.unknownQueue(), Drop: []Link{{Text: "Show all", Href: l.s.Prefix + l.path}}}
		}
		l.table.Empty = e
	}
	if slices.Contains(downloads, l.path) && len(l.table.Rows) > 0 {
		l.head.Files = append(l.head.Files, l.file("Download as CSV", l.path, "csv"))
	}
	if l.path == "/cases" && len(l.table.Rows) > 0 && l.r.Form.Get("payload") == "" {
		l.head.Files = append(l.head.Files, l.file("Event log (OCEL)", "/export", "ocel"), l.file("Event log (XES)", "/export", "xes"))
	}
	return &Page{Title: l.title, Nav: l.title, Live: !l.r.Form.Has("cursor"), Parts: l.parts(Part{ID: "rows", Template: "tablepart", Data: l.table})}
}

// parts are the head of the list, its presets, and other parts.
func (l *listing) parts(others ...Part) []Part {
	return slices.Concat([]Part{{ID: "head", Template: "list", Data: l.head}}, l.presetBar(), others)
}

// unknownName says that the database has no workflow or task of the name that is asked for, and which there are; "" if it has. The form of the
// filter stays, so it is no error of the page.
func (l *listing) unknownName() string {
	var unknown *query.Error
	if err := query.Known(l.r, l.r.R, l.r.Form.Get("workflow"), l.r.Form.Get("task")); errors.As(err, &unknown) {
		return " The " + unknown.Param + " " + unknown.Text + "."
	}
	return ""
}

// unknownQueue says that nothing that is live is in the queue that is asked for, and where there is something; "" if there is. A queue is known by what is
// in it alone, so this is no error.
func (l *listing) unknownQueue() string {
	name := l.r.Form.Get("queue")
	if name == "" {
		return ""
	}
	queues, _, err := source.Queues(l.r, l.r.R, source.MaxCounted)
	var names []string
	for _, q := range queues {
		if q.Queue == name {
			return ""
		}
		names = append(names, queueName(q.Queue))
	}
	if err != nil {
		return ""
	}
	return fmt.Sprintf(" Of the live items and jobs none is seen in the queue %q; %s", printable.Line(name), spelling.Hint(name, names))
}

// file leads to a download with the filters of the list.
func (l *listing) file(text, path, format string) Link {
	v := l.query("format", format)
	if path == "/export" {
		v.Del("root-only") // it has root cases alone
	}
	u := url.URL{Path: l.s.Prefix + "/api/v1" + path, RawQuery: v.Encode()}
	return Link{Text: text, Href: u.String()}
}

// set names the filters that are set.
func (l *listing) set() string {
	var names []string
	for k, v := range l.r.Form {
		if k != "cursor" && k != "done" && v[0] != "" {
			names = append(names, k+": "+v[0])
		}
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// rows reads one page and one row more, which says whether there are others.
func rows[T any](l *listing, q *query.Query, read func(store.Page) ([]T, error), id func(T) string, add func(T) error) error {
	p := q.Page(pageSize, true)
	l.head.Ignored = q.Unread(filterForm, "done")
	if err := q.Err(); err != nil {
		return err
	}
	size := p.Limit
	p.Limit++
	found, err := read(p)
	cut := (*store.CutError)(nil)
	if err != nil && !errors.As(err, &cut) {
		return err
	}
	pager := &Pager{}
	if l.r.Form.Has("cursor") {
		pager.First = l.with("cursor", "")
	}
	pager.Text = thousands(int64(len(found)))
	if len(found) > size {
		found = found[:size]
		pager.Text = thousands(int64(size)) + " shown"
		pager.Next = l.next(id(found[size-1]))
	}
	if cut != nil && pager.Next == "" {
		pager.Text, pager.Next = fmt.Sprintf("%s found in %s that were searched", pager.Text, thousands(int64(cut.Rows))), l.next(cut.After)
	}
	if pager.First != "" || pager.Next != "" {
		l.table.Pager = pager
	}
	for _, t := range found {
		if err := add(t); err != nil {
			return err
		}
	}
	return nil
}

func (l *listing) next(cursor string) string {
	u, err := url.Parse(l.with("cursor", ""))
	if err != nil {
		return ""
	}
	v := u.Query()
	v.Set("cursor", cursor)
	u.RawQuery = v.Encode()
	return u.String()
}
