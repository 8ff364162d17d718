package view

import (
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tasq-dev/tasq/internal/printable"
	"github.com/tasq-dev/tasq/workitem"
)

// Table is a list. On a narrow screen each row is shown as a card.
type Table struct {
	ID    string
	Title string
	Head  []string
	Rows  []Row
	Empty *Empty
	Pager *Pager
	Note  string
	Views []Link // switches of what is shown; Current is one that is on, whose link switches it off
	Picks *Picks // the actions on ticked rows; nil for none
}

// Picks are the bulk actions on the rows of a table that are ticked. They lead to the form of the action.
type Picks struct {
	Action string
	Words  []Link // Href is the kind of the action
}

// Row is a row of a list.
type Row struct {
	ID    string
	Pick  string // the id for an action on ticked rows; "" if the row cannot be ticked
	Name  string // of the row, for screen readers
	Cells []Cell
}

// Cell is the content of a row in one column. Its kinds are those of the template "cell".
type Cell struct {
	Kind  string
	Text  string
	Href  string
	Title string
	Time  time.Time
	Label string // the name of the column, for narrow screens
	Num   bool
	Usual bool // it says nothing new: it is muted, and left out on narrow screens
	Wide  bool // its column is one of long texts
}

// Empty says why a list is empty, and what to do.
type Empty struct {
	Text    string
	Command string // a command that creates something to show
	Drop    []Link // links that drop filters
}

// Link is a text with an address.
type Link struct {
	Text, Href string
	Current    bool
	Count      string
	Danger     bool
}

// Pager links to the previous and the next page of a list.
type Pager struct {
	First, Next string
	Text        string
}

func text(s string) Cell    { return Cell{Kind: "text", Text: s} }
func muted(s string) Cell   { return Cell{Kind: "muted", Text: s} }
func stateOf(s string) Cell { return Cell{Kind: "state", Text: s} }

func at(t time.Time) Cell {
	if t.Equal(printable.Never) {
		return muted(printable.NoTime)
	}
	return Cell{Kind: "time", Time: t}
}

// buttonCell is a button, at the right edge of its column.
func buttonCell(s, href string) Cell { return Cell{Kind: "action", Text: s, Href: href, Num: true} }

func link(s, href string) Cell { return Cell{Kind: "link", Text: s, Href: href} }

// number is a count; zero is displayed less prominently.
func number(n int64) Cell {
	if n == 0 {
		return Cell{Kind: "muted", Text: "0", Num: true}
	}
	return Cell{Kind: "text", Text: thousands(n), Num: true}
}

// countLink is a count with a link to a list of what is counted.
func countLink(n int64, href string) Cell {
	if n == 0 {
		return number(0)
	}
	return Cell{Kind: "link", Text: thousands(n), Href: href, Num: true}
}

// payload is the beginning of a payload, on one line.
func payload(raw []byte) Cell {
	if len(raw) == 0 {
		return text("")
	}
	return Cell{Kind: "code", Text: printable.Line(printable.Brief(raw, 80))}
}

func failure(f *workitem.Failure) Cell {
	if f == nil {
		return text("")
	}
	whole := f.String()
	return Cell{Kind: "bad", Text: printable.Line(printable.Brief([]byte(whole), 90)), Title: printable.Line(printable.Brief([]byte(whole), 400))}
}

// short is the last part of an id, which is random; the title has the whole id.
func short(id string) string {
	if len(id) < 8 {
		return id
	}
	return "…" + id[len(id)-8:]
}

func idLink(id, href string) Cell { return Cell{Kind: "id", Text: short(id), Title: id, Href: href} }

// thousands writes a number with commas.
func thousands(n int64) string {
	s := strconv.FormatInt(n, 10)
	first := 0
	if n < 0 {
		first = 1
	}
	for i := len(s) - 3; i > first; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// row returns a row; each cell gets the label of its column.
func (t *Table) row(id string, cells ...Cell) {
	for i := range cells {
		cells[i].Label = t.Head[i]
	}
	t.Rows = append(t.Rows, Row{ID: id, Cells: cells})
}

// Shown returns the table without empty columns, with its wide cells marked.
func (t Table) Shown() Table {
	var keep []int
	for i := range t.Head {
		if slices.ContainsFunc(t.Rows, func(r Row) bool { return !r.Cells[i].empty() }) {
			keep = append(keep, i)
		}
	}
	if len(t.Rows) == 0 {
		return t
	}
	head, rows := make([]string, len(keep)), make([]Row, len(t.Rows))
	for n, r := range t.Rows {
		rows[n] = Row{ID: r.ID, Pick: r.Pick, Name: r.Name, Cells: make([]Cell, len(keep))}
	}
	for k, i := range keep {
		head[k] = t.Head[i]
		wide := t.wide(i)
		for n, r := range t.Rows {
			rows[n].Cells[k], rows[n].Cells[k].Wide = r.Cells[i], wide
		}
	}
	t.Head, t.Rows = head, rows
	return t
}

// Column is the header of a column.
type Column struct {
	Name   string
	Hidden string // the name for screen readers of a column without a visible name
	Num    bool   // of numbers, which are right-aligned
	Wide   bool   // of long texts, which get the room that is left
	Fit    bool   // of states, which need no more than their own room
}

// Class returns the class of a header.
func (c Column) Class() string {
	switch {
	case c.Num:
		return "num"
	case c.Wide:
		return "wide"
	case c.Fit:
		return "fit"
	}
	return ""
}

// longText is the number of bytes from which on a text needs a wide column.
const longText = 40

func (c *Cell) long() bool { return c.Kind == "code" || c.Kind == "bad" || len(c.Text) >= longText }

// Columns returns the headers of the table.
func (t Table) Columns() []Column {
	all := make([]Column, len(t.Head))
	for i, name := range t.Head {
		all[i] = Column{Name: name, Num: slices.ContainsFunc(t.Rows, func(r Row) bool { return r.Cells[i].Num }),
			Wide: t.wide(i),
			Fit:  slices.ContainsFunc(t.Rows, func(r Row) bool { return r.Cells[i].Kind == "state" })}
		if name == "" {
			all[i].Hidden = t.hidden(i)
		}
	}
	return all
}

// wide reports whether a column has a long text.
func (t Table) wide(i int) bool {
	return slices.ContainsFunc(t.Rows, func(r Row) bool { return r.Cells[i].long() })
}

// hidden names a column by the kind of its cells.
func (t Table) hidden(i int) string {
	for _, r := range t.Rows {
		switch r.Cells[i].Kind {
		case "action":
			return "action"
		case "meter":
			return "share"
		}
	}
	return "more"
}

// Class returns the classes of the cell. A count of zero and what is usual are left out on narrow screens; what is wide gets a line of its own on screens
// that are too narrow for all columns. A word that would make its column wider than others may break anywhere.
func (c Cell) Class() string {
	var all []string
	zero := c.Usual || c.Num && c.Kind == "muted"
	if c.Num {
		all = append(all, "num")
	}
	if zero {
		all = append(all, "zero")
	}
	if !c.Num && !zero && c.Wide {
		all = append(all, "wide")
	}
	if c.hasLongWord() {
		all = append(all, "long")
	}
	return strings.Join(all, " ")
}

// longWord is the number of characters of the longest word that is not broken.
const longWord = 32

func (c *Cell) hasLongWord() bool {
	return len(c.Text) > longWord && c.Kind != "code" && c.Kind != "bad" && // these break anywhere, always
		slices.ContainsFunc(strings.Fields(c.Text), func(word string) bool { return utf8.RuneCountInString(word) > longWord })
}

func (c *Cell) empty() bool { return c.Text == "" && c.Time.IsZero() }

// took is how long something took, or has taken so far.
func took(from, to time.Time) Cell {
	if from.IsZero() || to.IsZero() {
		return text("")
	}
	return Cell{Kind: "text", Text: printable.Took(to.Sub(from)), Num: true}
}

// attempt is the number of an attempt; the first is the usual one. Nothing is attempted, or not yet, if it is 0.
func attempt(n int) Cell {
	switch n {
	case 0:
		return Cell{Kind: "text", Num: true}
	case 1:
		return Cell{Kind: "muted", Text: strconv.Itoa(n), Num: true, Usual: true}
	}
	return number(int64(n))
}

// inQueue is the name of a queue; the default one is the usual one.
func inQueue(q string) Cell {
	if q == "" {
		return Cell{Kind: "muted", Text: queueName(q), Usual: true}
	}
	return text(q)
}

// queueName returns the displayed name of a queue.
func queueName(q string) string {
	if q == "" {
		return "default"
	}
	return q
}
