package cli

import (
	"context"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/tasq-dev/tasq/internal/printable"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// idKind describes one kind of ids.
type idKind struct {
	what  string // in messages
	lists string // the command that lists them
	page  func(context.Context, store.Finder, store.Page) ([]candidate, error)
	// keyed finds candidates by their business key; nil if this kind has none.
	keyed func(ctx context.Context, r store.Finder, key string) ([]candidate, error)
}

var (
	caseIDs = idKind{what: "case", lists: "tasq cases", page: func(ctx context.Context, r store.Finder, p store.Page) ([]candidate, error) {
		return cases(ctx, r, store.CaseFilter{Page: p})
	}, keyed: func(ctx context.Context, r store.Finder, key string) ([]candidate, error) {
		return cases(ctx, r, store.CaseFilter{Key: key, Page: store.Page{Limit: maxCandidates + 1}})
	}}
	itemIDs = idKind{what: "work item", lists: "tasq items", page: func(ctx context.Context, r store.Finder, p store.Page) ([]candidate, error) {
		all, err := r.Items(ctx, store.ItemFilter{Page: p})
		return candidates(all, func(it *store.ItemRow) candidate { return candidate{it.ID.String(), it.Label()} }), err
	}}
	jobIDs = idKind{what: "job", lists: "tasq jobs", page: func(ctx context.Context, r store.Finder, p store.Page) ([]candidate, error) {
		all, err := r.Jobs(ctx, store.JobFilter{Page: p})
		return candidates(all, func(j *state.Job) candidate { return candidate{j.ID.String(), j.Kind} }), err
	}}
	incidentIDs = idKind{what: "incident", lists: "tasq incidents", page: func(ctx context.Context, r store.Finder, p store.Page) ([]candidate, error) {
		all, err := r.Jobs(ctx, store.JobFilter{Kind: state.JobIncident, Page: p})
		return candidates(all, func(j *state.Job) candidate { return candidate{j.ID.String(), j.Name} }), err
	}}
	eventIDs = idKind{what: "event", lists: "tasq events", page: func(ctx context.Context, r store.Finder, p store.Page) ([]candidate, error) {
		all, err := r.Messages(ctx, store.MessageFilter{Page: p})
		return candidates(all, func(m *state.Message) candidate { return candidate{m.ID.String(), m.Name} }), err
	}}
)

func cases(ctx context.Context, r store.Finder, f store.CaseFilter) ([]candidate, error) {
	all, err := r.Cases(ctx, f)
	return candidates(all, func(c *state.Case) candidate { return candidate{c.ID.String(), c.Workflow} }), err
}

func candidates[T any](all []T, of func(T) candidate) []candidate {
	list := make([]candidate, len(all))
	for i, v := range all {
		list[i] = of(v)
	}
	return list
}

const (
	idLength = 36
	leastID  = 4 // minimum length of a prefix
)

// idParts are the lengths to which an id can be shortened: the time in milliseconds, and the number within that.
var idParts = []int{13, 18, 23}

// isID reports whether a word is an id or a prefix of one.
func isID(word string) bool {
	return len(word) >= leastID && len(word) <= idLength && strings.Trim(strings.ToLower(word), "0123456789abcdef-") == ""
}

// checkID returns an error for a word that is neither an id, a prefix of one, nor a possible business key.
func checkID(kind idKind, word string) error {
	if isID(word) || kind.keyed != nil && word != "" {
		return nil
	}
	return notAnID(kind, word)
}

func notAnID(kind idKind, word string) error {
	or := ""
	if kind.keyed != nil {
		or = ", nor the business key of one"
	}
	return usagef("%q is not the id of %s, nor the beginning of one%s; ids have %d characters, as in "+
		"0197a3c4-5d6e-7f80-9a1b-2c3d4e5f6071, and %d are the least to give", printable.Brief([]byte(word), 40), printable.WithArticle(kind.what), or, idLength, leastID)
}

// resolve sets id to the id that a word is or abbreviates; an empty word leaves it unchanged. A case is also found by
// its business key.
func resolve[T any](ctx context.Context, r store.Finder, kind idKind, word string, id *workitem.Key[T]) error {
	if word == "" {
		return nil
	}
	whole, err := wholeID(ctx, r, kind, word)
	if err != nil {
		return err
	}
	if err := id.UnmarshalText([]byte(whole)); err != nil {
		return usagef("%q is not the id of %s: %w", word, printable.WithArticle(kind.what), err)
	}
	if id.IsZero() { // a filter would ignore it
		return exit(ExitNotFound, "%s is the zero id, which no %s has; %s lists them", word, kind.what, kind.lists)
	}
	return nil
}

// wholeID returns the complete id for a word. An id has precedence over a business key that is a prefix of another id.
func wholeID(ctx context.Context, r store.Finder, kind idKind, word string) (string, error) {
	whole := isID(word) && len(word) == idLength
	if whole && kind.keyed == nil {
		return word, nil
	}
	if isID(word) {
		found, err := beginning(ctx, r, kind, strings.ToLower(word))
		switch {
		case err != nil:
			return "", err
		case len(found) > 1:
			return "", ambiguous(word, "the ids of several "+kind.what+"s begin so; give more of one", found)
		case len(found) == 1:
			return found[0].id, nil
		}
	}
	if kind.keyed != nil && utf8.ValidString(word) { // a server refuses the query otherwise
		found, err := kind.keyed(ctx, r, word)
		switch {
		case err != nil:
			return "", err
		case len(found) > 1:
			return "", ambiguous(word, "several "+kind.what+"s have that business key; give the id of one", found)
		case len(found) == 1:
			return found[0].id, nil
		}
	}
	switch {
	case whole:
		return word, nil // the caller reports a removed case
	case isID(word):
		return "", noneBeginsWith(ctx, r, kind, word)
	}
	return "", notAnID(kind, word)
}

// noneBeginsWith returns the error for a prefix that matches no id of a kind, with a hint if it matches one of another
// kind.
func noneBeginsWith(ctx context.Context, r store.Finder, kind idKind, word string) error {
	for _, other := range []idKind{caseIDs, itemIDs, jobIDs} {
		found, err := beginning(ctx, r, other, strings.ToLower(word))
		if err != nil {
			return err
		}
		if len(found) == 1 && other.what != kind.what {
			return exit(ExitNotFound, "%s is %s %s (%s), and the id of %s is needed; %s lists them", word, other.what, found[0].id,
				found[0].name, printable.WithArticle(kind.what), kind.lists)
		}
	}
	if kind.keyed != nil {
		return exit(ExitNotFound, "there is no %s with the business key %s, nor one whose id begins with it; %s lists them", kind.what, word, kind.lists)
	}
	return exit(ExitNotFound, "there is no %s whose id begins with %s; %s lists them", kind.what, word, kind.lists)
}

// candidate is a match for a prefix.
type candidate struct{ id, name string }

const maxCandidates = 5

// beginning returns the matches for a prefix, at most one more than are listed.
func beginning(ctx context.Context, r store.Finder, kind idKind, text string) ([]candidate, error) {
	least, ok := before(text)
	if !ok {
		return nil, nil
	}
	page, err := kind.page(ctx, r, store.Page{After: least, Limit: maxCandidates + 1})
	for i, c := range page {
		if !strings.HasPrefix(c.id, text) {
			return page[:i], err
		}
	}
	return page, err
}

// before returns the id that precedes all ids with a prefix; false if the prefix is not valid.
func before(text string) (string, bool) {
	const zero = "00000000-0000-0000-0000-000000000000"
	id, err := uuid.Parse(text + zero[min(len(text), len(zero)):])
	if err != nil {
		return "", false
	}
	if id == uuid.Nil {
		return "", true // there is no lower id
	}
	for i := len(id) - 1; ; i-- {
		if id[i]--; id[i] != 0xff {
			return id.String(), true
		}
	}
}

func ambiguous(word, why string, found []candidate) error {
	more := ""
	if len(found) > maxCandidates {
		found, more = found[:maxCandidates], "\n  and more"
	}
	lines := make([]string, len(found))
	for i, c := range found {
		lines[i] = "\n  " + c.id + " (" + c.name + ")"
	}
	return usagef("%s is ambiguous: %s:%s%s", word, why, strings.Join(lines, ""), more)
}

// same returns the length of the common prefix of two texts.
func same(a, b string) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}
