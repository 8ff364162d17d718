package tables

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// Dialect is how a database writes the parameters of a statement.
type Dialect struct {
	Numbered bool   // $1, $2 and so on instead of ?
	ID       string // a parameter for an id that is given as text, such as "?::text::uuid"
}

// Conditions collects the terms of a WHERE clause and their values. Terms have a "?" for a value, in both dialects.
// States are literals, since only then can a database use a partial index.
type Conditions struct {
	Dialect Dialect
	Args    []any // the values, in the order of the statement

	terms []string
}

// Add adds a term with one value, which the term may use more than once.
func (w *Conditions) Add(term string, value any) {
	if w.Dialect.Numbered {
		w.Args = append(w.Args, value)
		w.terms = append(w.terms, strings.ReplaceAll(term, "?", "$"+strconv.Itoa(len(w.Args))))
		return
	}
	for range strings.Count(term, "?") {
		w.Args = append(w.Args, value)
	}
	w.terms = append(w.terms, term)
}

// AddEach adds a term with a value for each "?" in it.
func (w *Conditions) AddEach(term string, values ...any) {
	for _, v := range values {
		w.Args = append(w.Args, v)
		if w.Dialect.Numbered {
			term = strings.Replace(term, "?", "$"+strconv.Itoa(len(w.Args)), 1)
		}
	}
	w.terms = append(w.terms, term)
}

// Plain adds a term without a value.
func (w *Conditions) Plain(term string) { w.terms = append(w.terms, term) }

// AddText adds a term unless the value is "".
func (w *Conditions) AddText(term, value string) {
	if value != "" {
		w.Add(term, value)
	}
}

// AddKind selects the jobs of a kind by the column "kind" with the prefix, unless the kind is "". For incidents it is a
// literal, as in the condition of their partial index.
func (w *Conditions) AddKind(prefix, kind string) {
	switch {
	case kind == state.JobIncident:
		w.Plain(prefix + "kind = '" + state.JobIncident + "'")
	case w.Dialect.Numbered:
		w.AddText(prefix+"kind = ?", kind)
	default:
		w.AddText(prefix+"kind = +?", kind) // "+" prevents the planner of SQLite from using the value, see Limit
	}
}

// AddEntries adds the conditions of a filter on the content of journal entries, whose columns have the prefix "j.". Those on
// positions and root cases are the store's own.
func (w *Conditions) AddEntries(f store.JournalFilter) {
	if f.By != "" || f.Named {
		w.Plain("j.actor <> ''") // the condition of the partial indexes
	}
	w.AddText("j.actor = ?", f.By)
	if f.Command != "" { // whole words: "start" is no beginning of "starting"
		term := "substr(j.command || ' ', 1, length(?)) = ?"
		if w.Dialect.Numbered {
			term = "starts_with(j.command || ' ', ?)"
		}
		w.Add(term, f.Command+" ")
	}
	if !f.Since.IsZero() {
		w.Add("j.at >= ?", state.Micros(f.Since))
	}
	if !f.Before.IsZero() {
		w.Add("j.at < ?", state.Micros(f.Before))
	}
}

// slack is how far the time in an id may be ahead of the time of its creation.
const slack = time.Minute

// AddCreated selects what was created at or after since, and before another time, by its id and the column "created",
// both with the prefix. A zero time is no bound. See [store.CaseFilter].
func (w *Conditions) AddCreated(prefix string, since, before time.Time) {
	if !before.IsZero() {
		w.Add(prefix+"id < "+w.Dialect.ID, leastID(before.Add(slack)))
	}
	if !since.IsZero() {
		w.Add(prefix+"id >= "+w.Dialect.ID, leastID(since))
	}
	w.AddTimes(prefix+"created", since, before)
}

// leastID returns the least id of a time. It is not empty for times before 1970 either, since PostgreSQL accepts no
// empty id.
func leastID(t time.Time) string {
	if key := workitem.LeastKey[any](t); !key.IsZero() {
		return key.String()
	}
	return "00000000-0000-0000-0000-000000000000"
}

// AddTimes selects the times of a column at or after since, and before another; a zero time is no bound.
func (w *Conditions) AddTimes(column string, since, before time.Time) {
	if !before.IsZero() {
		w.Add(column+" < ?", state.Micros(before))
	}
	if !since.IsZero() {
		w.Add(column+" >= ?", state.Micros(since))
	}
}

// AddStates selects states, unless there are none. If all of them are live, it also adds live, the condition of the
// partial indexes, and returns true.
func AddStates[S interface {
	comparable
	String() string
}](w *Conditions, column string, states []S, isLive func(S) bool, live string) (onlyLive bool) {
	if len(states) == 0 {
		return false
	}
	words := make([]string, len(states))
	onlyLive = true
	for i, s := range states {
		words[i] = "'" + s.String() + "'"
		onlyLive = onlyLive && isLive(s)
	}
	if onlyLive {
		w.Plain(live)
	}
	if len(words) == 1 {
		w.Plain(column + " = " + words[0])
	} else {
		w.Plain(column + " IN (" + strings.Join(words, ", ") + ")")
	}
	return onlyLive
}

// Where returns the WHERE clause, or "" without terms.
func (w *Conditions) Where() string {
	if len(w.terms) == 0 {
		return ""
	}
	return " WHERE " + strings.Join(w.terms, " AND ")
}

// Limit returns the end of a statement for up to n rows, or [store.DefaultLimit] if n is not positive. It must be
// called last, since its value is the last one.
func (w *Conditions) Limit(n int) string {
	if n <= 0 {
		n = store.DefaultLimit
	}
	if w.Dialect.Numbered {
		return " LIMIT " + strconv.Itoa(n) // a literal, since a plan for a parameter assumes a tenth of the table
	}
	w.Args = append(w.Args, int64(n))
	return " LIMIT +?" // with a bare parameter SQLite prepares the statement again at each call, for its value
}

func direction(p store.Page) (compare, order string) {
	if p.Desc {
		return " < ", " DESC"
	}
	return " > ", ""
}

// Page adds the condition of the cursor, and returns the end of the statement for rows in the order of the column of
// ids.
func (w *Conditions) Page(p store.Page, id string) string {
	compare, order := direction(p)
	w.AddText(id+compare+w.Dialect.ID, p.After)
	return " ORDER BY " + id + order + w.Limit(p.Limit)
}

// PageBy is like [Conditions.Page] for rows in the order of a column, and by id for equal values. The columns have the
// prefix.
func (w *Conditions) PageBy(p store.Page, table, prefix, column string) string {
	compare, order := direction(p)
	w.AddText("("+prefix+column+", "+prefix+"id)"+compare+
		"(SELECT "+column+", id FROM "+table+" WHERE id = "+w.Dialect.ID+")", p.After)
	return " ORDER BY " + prefix + column + order + ", " + prefix + "id" + order + w.Limit(p.Limit)
}

// PageByPriority is like [Conditions.Page] for the items of a queue, with the prefix "i.": the highest priority first,
// and by id for equal priorities. The index has the negative priority, so that both columns increase and one comparison
// finds the beginning of a page. The priority of an item never changes, so pages are consistent.
func (w *Conditions) PageByPriority(p store.Page, priorityOf func(id string) (int64, bool, error)) (string, error) {
	if p.After != "" {
		priority, found, err := priorityOf(p.After)
		if err == nil && !found {
			err = fmt.Errorf("cannot continue the list after work item %s: %w: it was removed; begin from the first page",
				p.After, store.ErrNotFound)
		}
		if err != nil {
			return "", err
		}
		w.Add("(-i.priority, i.id) > ("+strconv.FormatInt(-priority, 10)+", "+w.Dialect.ID+")", p.After)
	}
	return " ORDER BY -i.priority, i.id" + w.Limit(p.Limit), nil
}
