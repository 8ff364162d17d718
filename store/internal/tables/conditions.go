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

// Dialect is how a database writes the values of a statement.
type Dialect struct {
	Numbered bool   // $1, $2 and so on instead of ?
	ID       string // the value of an id that is given as text, such as "?::text::uuid"
}

// Conditions collects the terms of a WHERE clause and their values. Terms have a "?" where the value belongs, in both
// dialects. States are written out, since only then a database sees that a partial index serves.
type Conditions struct {
	Dialect Dialect
	Args    []any // the values, in the order of the statement

	terms []string
}

// Add adds a term with one value, which may occur in it more than once.
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

// AddKind selects the jobs of a kind, unless it is "", by the column "kind" with the prefix. Incidents have a partial index, whose term has no
// parameter.
func (w *Conditions) AddKind(prefix, kind string) {
	switch {
	case kind == state.JobIncident:
		w.Plain(prefix + "kind = '" + state.JobIncident + "'")
	case w.Dialect.Numbered:
		w.AddText(prefix+"kind = ?", kind)
	default:
		w.AddText(prefix+"kind = +?", kind) // see Limit: the index has SQLite look at a bare parameter
	}
}

// slack is how far the time of an id may be ahead of the time at which it was made.
const slack = time.Minute

// AddCreated selects what was created from since on and before another time, by its id and the column "created", both with the
// prefix. A zero time is no bound. See [store.CaseFilter].
func (w *Conditions) AddCreated(prefix string, since, before time.Time) {
	if !before.IsZero() {
		w.Add(prefix+"id < "+w.Dialect.ID, leastID(before.Add(slack)))
	}
	if !since.IsZero() {
		w.Add(prefix+"id >= "+w.Dialect.ID, leastID(since))
	}
	w.AddTimes(prefix+"created", since, before)
}

// leastID is the least id of a time; that of the times up to 1970 has a text, too, as PostgreSQL takes no empty one.
func leastID(t time.Time) string {
	if key := workitem.LeastKey[any](t); !key.IsZero() {
		return key.String()
	}
	return "00000000-0000-0000-0000-000000000000"
}

// AddTimes selects the times of a column from since on and before another; a zero time is no bound.
func (w *Conditions) AddTimes(column string, since, before time.Time) {
	if !before.IsZero() {
		w.Add(column+" < ?", state.Micros(before))
	}
	if !since.IsZero() {
		w.Add(column+" >= ?", state.Micros(since))
	}
}

// AddStates selects states, unless there are none. If all of them are live, it also adds live, the term of the partial
// indexes, and reports true.
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

// Where is the clause, or "" without terms.
func (w *Conditions) Where() string {
	if len(w.terms) == 0 {
		return ""
	}
	return " WHERE " + strings.Join(w.terms, " AND ")
}

// Limit is the end of a statement that returns up to n rows, [store.DefaultLimit] if n is not positive. It must be called
// last, since its value comes last.
func (w *Conditions) Limit(n int) string {
	if n <= 0 {
		n = store.DefaultLimit
	}
	if w.Dialect.Numbered {
		return " LIMIT " + strconv.Itoa(n) // so that the plan fits it; a plan for any value is made for a tenth of the table
	}
	w.Args = append(w.Args, int64(n))
	return " LIMIT +?" // a bare parameter has SQLite prepare the statement again at each call, to look at its value
}

func direction(p store.Page) (compare, order string) {
	if p.Desc {
		return " < ", " DESC"
	}
	return " > ", ""
}

// Page adds the cursor, and returns the end of the statement for rows in the order of the column of ids.
func (w *Conditions) Page(p store.Page, id string) string {
	compare, order := direction(p)
	w.AddText(id+compare+w.Dialect.ID, p.After)
	return " ORDER BY " + id + order + w.Limit(p.Limit)
}

// PageBy is like [Conditions.Page] for rows of a table in the order of one of its columns, and by id where that is the
// same. The columns have the prefix.
func (w *Conditions) PageBy(p store.Page, table, prefix, column string) string {
	compare, order := direction(p)
	w.AddText("("+prefix+column+", "+prefix+"id)"+compare+
		"(SELECT "+column+", id FROM "+table+" WHERE id = "+w.Dialect.ID+")", p.After)
	return " ORDER BY " + prefix + column + order + ", " + prefix + "id" + order + w.Limit(p.Limit)
}

// PageByPriority is like [Conditions.Page] for the items of a queue, with the prefix "i.": by priority, the highest first,
// and by id where that is the same. The negative priority is what is indexed, so that both columns rise, and one comparison
// finds the beginning of a page. The priority of an item never changes, so the pages are those of one list.
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
