package store

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// Search finds a text in payloads: in inputs and outputs, and in the messages and details of failures. There is no index, so it
// scans rows, within bounds. The zero value finds every row.
type Search struct {
	Payload string        // the text to find within the strings of payloads; case-sensitive
	Rows    int           // the most rows of the filter to examine; 0 is MaxSearched
	Time    time.Duration // the time limit; 0 is SearchTime
	Spent   *SearchSpent  // what the searches for previous pages have used, so that the bounds apply to all pages of a listing; nil if there are none
}

// SearchSpent is what the searches for the pages of a listing have used of their bounds. The zero value is nothing. It is not safe for
// concurrent use.
type SearchSpent struct {
	Rows  int       // that were looked at
	Until time.Time // the end of the time limit, which starts with the first search
}

// The default bounds of a Search.
const (
	MaxSearched = 100_000
	SearchTime  = 500 * time.Millisecond
)

// searchPage is how many rows a search reads at a time.
const searchPage = 500

// CutError says that a search reached a bound before it had examined all rows. The results so far are returned with it.
type CutError struct {
	After string // [Page.After] of the search that continues
	Rows  int    // the number of examined rows, including those for previous pages, see [Search.Spent]
}

// Error says how many rows were examined.
func (e *CutError) Error() string {
	return fmt.Sprintf("the search looked at %d rows, and there are more: it goes on after %s", e.Rows, e.After)
}

// SearchCases lists the cases that match a filter and contain a text in their payloads, up to the limit of the filter's page. The text is
// searched in the result of shown, which can hide payloads that the user may not see; nil hides nothing. If a bound of the search was
// reached, the error is a *CutError, and the cases found so far are returned.
func SearchCases(ctx context.Context, v Viewer, f CaseFilter, s Search, shown func(*state.Case) *state.Case) ([]*state.Case, error) {
	return search(ctx, v, s, &f.Page, func(r Reader) ([]*state.Case, error) { return r.Cases(ctx, f) },
		func(c *state.Case) string { return c.ID.String() }, func(c *state.Case) bool {
			if shown != nil {
				c = shown(c)
			}
			return s.in(c.Failure, c.Input, c.Output)
		})
}

// SearchItems is [SearchCases] for work items.
func SearchItems(ctx context.Context, v Viewer, f ItemFilter, s Search, shown func(*workitem.Item) *workitem.Item) ([]*ItemRow, error) {
	return search(ctx, v, s, &f.Page, func(r Reader) ([]*ItemRow, error) { return r.Items(ctx, f) },
		func(it *ItemRow) string { return it.ID.String() }, func(row *ItemRow) bool {
			it := row.Item
			if shown != nil {
				it = shown(it)
			}
			return s.in(it.Failure, it.Input, it.Output)
		})
}

// search reads one page of rows after the other, and examines each row. With a limit of 2 and at most 1,000 rows, of
// which one has the text:
//
//	page 1   500 rows   1 match
//	page 2   500 rows   none: 1,000 rows were examined, so a CutError with After at row 1,000
//
// A call with that After continues there. With the same Spent it has reached its bound already; with a new one it may
// examine 1,000 rows more.
func search[T any](
	ctx context.Context, v Viewer, s Search, page *Page, query func(Reader) ([]T, error), key func(T) string, matches func(T) bool,
) (found []T, err error) {
	wanted, most, spent := page.Limit, s.Rows, s.Spent
	if spent == nil {
		spent = new(SearchSpent)
	}
	if wanted == 0 {
		wanted = DefaultLimit
	}
	if most == 0 {
		most = MaxSearched
	}
	within, cancel := s.within(ctx, spent)
	defer cancel()
	page.Limit = min(searchPage, most-spent.Rows)
	// Without a text each row matches. This is then an ordinary listing, which reads no more than it returns and has
	// no bounds.
	if s.Payload == "" {
		page.Limit, most, spent = wanted, wanted, new(SearchSpent)
	}
	if page.Limit <= 0 {
		return nil, &CutError{page.After, spent.Rows}
	}
	for rows, err := range read(ctx, v, query) {
		if err != nil {
			return nil, err
		}
		for _, row := range rows {
			page.After = key(row)
			spent.Rows++
			if !matches(row) {
				continue
			}
			if found = append(found, row); len(found) == wanted {
				return found, nil
			}
		}
		if len(rows) < page.Limit {
			break
		}
		// The bounds are compared after a page and not before it, so each call makes progress. They come after the
		// test for the last page: a search that has examined all rows is complete, however long it took.
		if spent.Rows == most || within.Err() != nil {
			return found, &CutError{page.After, spent.Rows}
		}
		page.Limit = min(searchPage, most-spent.Rows)
	}
	return found, nil
}

// within ends when the time of a listing is up.
// Queries do not get this context: one that is cut off returns no rows, and the search could not say how far it got.
func (s Search) within(ctx context.Context, spent *SearchSpent) (context.Context, context.CancelFunc) {
	if !spent.Until.IsZero() {
		return context.WithDeadline(ctx, spent.Until)
	}
	within, cancel := context.WithTimeout(ctx, s.time())
	spent.Until, _ = within.Deadline()
	return within, cancel
}

func (s Search) time() time.Duration {
	if s.Time == 0 {
		return SearchTime
	}
	return s.Time
}

// in reports whether the text is in a failure or a payload.
func (s Search) in(f *workitem.Failure, payloads ...json.RawMessage) bool {
	if s.Payload == "" {
		return true
	}
	if f != nil {
		if strings.Contains(f.Message, s.Payload) {
			return true
		}
		payloads = append(payloads, f.Details)
	}
	for _, p := range payloads {
		// The bytes come first: most payloads have no escapes, and to decode JSON takes much longer than to search
		// it.
		if bytes.Contains(p, []byte(s.Payload)) || inTexts(p, s.Payload) {
			return true
		}
	}
	return false
}

// inTexts looks into the texts of a payload that are written otherwise than they read: with \u00fc for ü.
func inTexts(payload json.RawMessage, text string) bool {
	if bytes.IndexByte(payload, '\\') < 0 {
		return false
	}
	d := json.NewDecoder(bytes.NewReader(payload))
	for {
		token, err := d.Token()
		if err != nil {
			return false // the end
		}
		if t, ok := token.(string); ok && strings.Contains(t, text) {
			return true
		}
	}
}
