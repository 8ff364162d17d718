package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workitem"
)

// idKind is a kind of things that have ids.
type idKind struct {
	what  string // for people
	table string
	shown string // the columns that say which one it is
	lists string // the command that lists them
}

var (
	caseIDs = idKind{"case", "cases", "workflow", "tasq cases"}
	itemIDs = idKind{"work item", "work_items", "task || '.' || generation || '.' || number", "tasq items"}
	jobIDs  = idKind{"job", "jobs", "kind", "tasq jobs"}

	eventIDs = idKind{"event", "messages", "name", "tasq events"}
)

const (
	idLength = 36
	leastID  = 4 // so many characters of an id must be given
)

// idParts are the lengths to which an id is shortened: the time, to the millisecond; and the number within that.
var idParts = []int{13, 18, 23}

// checkID refuses a word that is neither an id nor the beginning of one.
func checkID(kind idKind, word string) error {
	if len(word) >= leastID && len(word) <= idLength && strings.Trim(strings.ToLower(word), "0123456789abcdef-") == "" {
		return nil
	}
	return usagef("%q is not the id of a %s, nor the beginning of one; ids have %d characters, as in "+
		"0197a3c4-5d6e-7f80-9a1b-2c3d4e5f6071, and %d are the least to give", brief([]byte(word), 40), kind.what, idLength, leastID)
}

// resolve puts the id that a word is, or that it begins, into id; no word leaves it as it is.
func resolve[T any](ctx context.Context, r store.Reader, kind idKind, word string, id *workitem.Key[T]) error {
	if word == "" {
		return nil
	}
	if err := checkID(kind, word); err != nil {
		return err
	}
	if len(word) < idLength {
		found, err := beginning(ctx, r, kind, strings.ToLower(word))
		switch {
		case err != nil:
			return err
		case len(found) == 0:
			return nothingBegins(ctx, r, kind, word)
		case len(found) > 1:
			return ambiguous(kind, word, found)
		}
		word = found[0].id
	}
	if err := id.UnmarshalText([]byte(word)); err != nil {
		return usagef("%q is not the id of a %s: %w", word, kind.what, err)
	}
	return nil
}

// nothingBegins is the error for a beginning that no id of a kind has. One of another kind gets a hint.
func nothingBegins(ctx context.Context, r store.Reader, kind idKind, word string) error {
	for _, other := range []idKind{caseIDs, itemIDs, jobIDs} {
		found, err := beginning(ctx, r, other, strings.ToLower(word))
		if err != nil {
			return err
		}
		if len(found) == 1 && other != kind {
			return exit(ExitNotFound, "%s is %s %s (%s), and the id of a %s is needed; %s lists them", word, other.what, found[0].id,
				found[0].name, kind.what, kind.lists)
		}
	}
	return exit(ExitNotFound, "there is no %s whose id begins with %s; %s lists them", kind.what, word, kind.lists)
}

// candidate is a thing whose id begins as asked.
type candidate struct{ id, name string }

const mostCandidates = 5

// beginning finds the things whose ids begin with a text: one more than are listed.
func beginning(ctx context.Context, r store.Reader, kind idKind, text string) (found []candidate, err error) {
	rows, err := r.DB().QueryContext(ctx, fmt.Sprintf("SELECT id, %s FROM %s WHERE id >= $1 AND id < $2 ORDER BY id LIMIT %d",
		kind.shown, kind.table, mostCandidates+1), text, text+"g") // behind every digit and the dash
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Err(), rows.Close()) }()
	for rows.Next() {
		var c candidate
		if err := rows.Scan(&c.id, &c.name); err != nil {
			return nil, err
		}
		found = append(found, c)
	}
	return found, nil
}

func ambiguous(kind idKind, word string, found []candidate) error {
	more := ""
	if len(found) > mostCandidates {
		found, more = found[:mostCandidates], "\n  and more"
	}
	lines := make([]string, len(found))
	for i, c := range found {
		lines[i] = "\n  " + c.id + " (" + c.name + ")"
	}
	return usagef("%s is ambiguous: the ids of several %ss begin so; give more of one:%s%s", word, kind.what,
		strings.Join(lines, ""), more)
}

// shortID is as much of an id as tells it from all others of its kind, by whole parts.
func shortID[T any](ctx context.Context, r store.Reader, kind idKind, id workitem.Key[T]) (string, error) {
	if id.IsZero() {
		return "", nil
	}
	text := id.String()
	var before, after string
	err := r.DB().QueryRowContext(ctx, fmt.Sprintf("SELECT COALESCE((SELECT max(id) FROM %[1]s WHERE id < $1), ''), "+
		"COALESCE((SELECT min(id) FROM %[1]s WHERE id > $1), '')", kind.table), text).Scan(&before, &after)
	n := 1 + max(same(text, before), same(text, after))
	for _, whole := range idParts {
		if n <= whole {
			return text[:whole], err
		}
	}
	return text, err
}

// same is how many bytes two texts have in common at their beginning.
func same(a, b string) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}
