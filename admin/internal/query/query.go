// Package query parses the filters of lists from the query of a URL. Pages and API share them; the names are those of
// the command's flags.
package query

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workitem"
)

// Error is the error of an invalid parameter.
type Error struct {
	Param string
	Text  string
}

// Error names the parameter and its valid values.
func (e *Error) Error() string { return "the parameter " + e.Param + " " + e.Text }

// MaxLimit bounds the rows of a page.
const MaxLimit = store.DefaultLimit

// Query reads parameters. It keeps the first error. A parameter of one value that has several is an error: all but one of them would select nothing.
type Query struct {
	v    url.Values
	now  time.Time
	err  error
	read map[string]bool // the names that were read
}

// Of returns a Query for a URL.
func Of(v url.Values, now time.Time) *Query {
	return &Query{v: v, now: now, read: make(map[string]bool)}
}

// Err returns the first error.
func (q *Query) Err() error { return q.err }

func (q *Query) fail(name, format string, args ...any) {
	if q.err == nil {
		q.err = &Error{name, fmt.Sprintf(format, args...)}
	}
}

// all returns the values of a parameter.
func (q *Query) all(name string) []string {
	q.read[name] = true
	return q.v[name]
}

func (q *Query) get(name string) string {
	q.read[name] = true
	if n := len(q.v[name]); n > 1 {
		q.fail(name, "takes one value, and is given %d times", n)
	}
	return q.v.Get(name)
}

func (q *Query) has(name string) bool {
	q.read[name] = true
	return q.v.Has(name)
}

// Text returns a parameter as given.
func (q *Query) Text(name string) string {
	text := q.get(name)
	if strings.ContainsRune(text, 0) {
		q.fail(name, "must not contain a zero byte")
		return ""
	}
	if !utf8.ValidString(text) { // PostgreSQL stores no such text
		q.fail(name, "must be text in UTF-8")
		return ""
	}
	return text
}

// Flag reports whether a parameter is set.
func (q *Query) Flag(name string) bool {
	switch text := q.get(name); text {
	case "":
		return q.has(name)
	case "true", "1", "on":
		return true
	case "false", "0":
		return false
	default:
		q.fail(name, "is true or false")
		return false
	}
}

// Number reads a non-negative number.
func (q *Query) Number(name string) int64 {
	text := q.get(name)
	if text == "" {
		return 0
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		q.fail(name, "is a number of at least 0")
	}
	return n
}

func key[T any](q *Query, name string, id *workitem.Key[T]) {
	if text := q.get(name); text != "" {
		if err := id.UnmarshalText([]byte(text)); err != nil || id.IsZero() { // the zero id would mean no filter
			q.fail(name, "is an id of 36 characters, as in 0197a3c4-5d6e-7f80-9a1b-2c3d4e5f6071")
		}
	}
}

// words reads states, separated by commas or in repeated parameters.
func words[S any](q *Query, name string, parse func(string) (S, error)) (all []S) {
	for _, text := range q.all(name) {
		for word := range strings.SplitSeq(text, ",") {
			if word = strings.TrimSpace(word); word == "" {
				continue
			}
			s, err := parse(word)
			if err != nil {
				q.fail(name, "has no word %q", word)
				continue
			}
			all = append(all, s)
		}
	}
	return all
}

// Bound reads the bound of a period: a time in RFC 3339, or an age, for which it returns the time so long ago; zero if there is none.
func (q *Query) Bound(name string) time.Time {
	text := q.get(name)
	if text == "" {
		return time.Time{}
	}
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return t
	}
	d, err := Age(text)
	if err != nil {
		q.fail(name, "is an age such as 90s, 5m, 2h or 3d, or a time such as 2026-11-22T12:00:00Z")
		return time.Time{}
	}
	return q.now.Add(-d)
}

// Age reads a duration, which may have days.
func Age(text string) (time.Duration, error) {
	if days, found := strings.CutSuffix(text, "d"); found {
		n, err := strconv.ParseUint(days, 10, 16)
		return time.Duration(n) * 24 * time.Hour, err
	}
	d, err := time.ParseDuration(text)
	if err == nil && d < 0 {
		err = strconv.ErrRange
	}
	return d, err
}

// optional reads a parameter for which "" is a value of its own; nil if it is not given.
func (q *Query) optional(name string) *string {
	if !q.has(name) {
		return nil
	}
	text := q.Text(name)
	return &text
}

// Names are the parameters that were asked for so far, sorted.
func (q *Query) Names() []string { return slices.Sorted(maps.Keys(q.read)) }

// Page reads the page of a list. def is the default number of rows.
func (q *Query) Page(def int, newest bool) store.Page {
	p := store.Page{Limit: def, Desc: newest}
	if n := q.Number("limit"); n > 0 {
		p.Limit = int(min(n, MaxLimit))
	}
	if q.has("newest") {
		p.Desc = q.Flag("newest")
	}
	if cursor := q.get("cursor"); cursor != "" {
		if _, err := workitem.ParseID(cursor); err != nil {
			q.fail("cursor", "is not one that an answer gave")
		}
		p.After = cursor
	}
	return p
}
