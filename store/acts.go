package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/tasq-dev/tasq/domain"
	"github.com/tasq-dev/tasq/internal/printable"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// removals are the removals of cases by an actor, since the journal has nothing of a removed case. A key is the time of
// the removal and the case.
var removals = domain.Collection[string, removal]{Name: "tasq-removals"}

// removal is who removed a case, and why.
type removal struct {
	At     time.Time       `json:"at"`
	By     string          `json:"by"`
	Reason string          `json:"reason,omitempty"`
	Case   workitem.CaseID `json:"case"`
}

// removalKey is where the removals at a time begin, or the key of that of a case.
func removalKey(at time.Time, of string) string {
	return fmt.Sprintf("%020d-%s", max(state.Micros(at), 0), of)
}

// NoteRemoval records in a transaction that an actor removes a root case, for [Acts]. An empty reason is none.
func NoteRemoval(ctx context.Context, tx Tx, id workitem.CaseID, at time.Time, by, reason string) error {
	return removals.Put(ctx, tx.DB(), removalKey(at, id.String()), removal{At: at.UTC(), By: by, Reason: reason, Case: id})
}

// Acts lists commands with an actor, newest first: entries of the journal that the filter selects, at most its Limit, and
// what [BesideJournal] lists since the oldest of them, at most [MaxBeside] of a kind. next is the After of the next page; 0 at the beginning
// of the journal.
//
// There is no index by command or time. A call examines at most [MaxSearched] commands, and takes [SearchTime] at most, to find
// those of such a filter: a page may have fewer entries than its Limit, or none, and another page follow nevertheless.
func Acts(ctx context.Context, r Reader, f JournalFilter) (page []*Entry, next int64, err error) {
	return actsWithin(ctx, r, f, actsBounds{part: 5000, all: MaxSearched, time: SearchTime})
}

// actsBounds are the most commands that are examined at a time, the most that a call examines, and its time limit.
type actsBounds struct {
	part, all int
	time      time.Duration
}

func actsWithin(ctx context.Context, r Reader, f JournalFilter, b actsBounds) (page []*Entry, next int64, err error) {
	limit := cmp.Or(max(f.Limit, 0), DefaultLimit)
	f.Named, f.Desc = true, true
	if page, next, err = acts(ctx, r, f, limit, b); err != nil {
		return nil, 0, err
	}
	// Each page has what is beside the journal from the time of its last position up to that of the last position of the page before, so
	// that each is on one page, also where clocks of several programs differ.
	since, err := timeAt(ctx, r, cmp.Or(next, f.From), time.Time{})
	if err != nil {
		return nil, 0, err
	}
	before, err := timeAt(ctx, r, f.After, time.UnixMicro(math.MaxInt64))
	if err != nil {
		return nil, 0, err
	}
	beside, err := BesideJournal(ctx, r, f, since, before, MaxBeside)
	slices.Reverse(beside)
	page = append(page, beside...)
	slices.SortStableFunc(page, func(a, b *Entry) int { return b.At.Compare(a.At) })
	return page, next, err
}

// acts reads the entries of a page, and returns the position before which the next page begins.
//
// If the filter has a condition without an index, the commands are examined in parts of the journal, newest first:
//
//	part 1   positions 90,000 to 99,999   12 entries
//	part 2   positions 81,000 to 89,999   none; the time is up, so the next page begins before position 81,000
func acts(ctx context.Context, r Reader, f JournalFilter, limit int, b actsBounds) (page []*Entry, next int64, err error) {
	// The entries of some root cases are few, and found by the case.
	scan := f.Root.IsZero() && f.Roots == nil && (f.Command != "" || !f.Before.IsZero() || !f.Since.IsZero())
	within, cancel := context.WithTimeout(ctx, b.time)
	defer cancel()
	from := f.From
	for rows := 0; ; {
		n := 0
		if scan {
			f.From = from
			if f.From, n, err = partOfActs(ctx, r, f, b.part); err != nil || n == 0 {
				return page, 0, err
			}
		}
		f.Limit = limit + 1 - len(page)
		found, err := r.Journal(ctx, f)
		if err != nil {
			return nil, 0, err
		}
		if page = append(page, found...); len(page) > limit {
			return page[:limit], page[limit-1].Seq, nil
		}
		if n < b.part {
			return page, 0, nil
		}
		if rows, f.After = rows+n, f.From; rows >= b.all || within.Err() != nil {
			return page, f.From, nil
		}
	}
}

// partOfActs returns the position of the oldest of the next commands of the journal, and their number, at most part.
func partOfActs(ctx context.Context, r Reader, f JournalFilter, part int) (from int64, n int, err error) {
	where, args := "actor <> ''", []any{part}
	if f.By != "" {
		args = append(args, f.By)
		where += fmt.Sprintf(" AND actor = $%d", len(args))
	}
	for _, bound := range []struct {
		is  string
		seq int64
	}{{"<", f.After}, {"<=", f.Until}, {">=", f.From}} {
		if bound.seq > 0 {
			args = append(args, bound.seq)
			where += fmt.Sprintf(" AND seq %s $%d", bound.is, len(args))
		}
	}
	query := "SELECT coalesce(min(seq), 0), count(*) FROM (SELECT seq FROM " + domain.Table(r.DB(), "journal") + " WHERE " + where + " ORDER BY seq DESC LIMIT $1) part"
	err = r.DB().QueryRowContext(ctx, query, args...).Scan(&from, &n)
	return from, n, err
}

// timeAt returns the time of the first entry from a position on, or otherwise if the position is 0 or there is none.
func timeAt(ctx context.Context, r Reader, seq int64, otherwise time.Time) (time.Time, error) {
	if seq == 0 {
		return otherwise, nil
	}
	found, err := r.Journal(ctx, JournalFilter{After: seq - 1, Limit: 1})
	if err != nil || len(found) == 0 {
		return otherwise, err
	}
	return found[0].At, nil
}

func (v removal) entry() *Entry {
	e := &Entry{At: v.At, By: v.By, Root: v.Case, Command: "case remove " + v.Case.String()}
	if v.Reason != "" {
		e.Changes = append(e.Changes, &state.Noted{Case: v.Case, Task: -1, Code: state.NoteReason, Text: v.Reason})
	}
	e.Changes = append(e.Changes, &state.CaseRemoved{Case: v.Case})
	return e
}

// ActsRoot returns the root case of a case, or the case itself if an actor has removed it. The error wraps ErrNotFound if
// there is neither.
func ActsRoot(ctx context.Context, r Reader, id workitem.CaseID) (workitem.CaseID, error) {
	root, missing := r.Root(ctx, id)
	if !errors.Is(missing, ErrNotFound) {
		return root, missing
	}
	if err := OrRemoved(ctx, r, id, missing); err != missing {
		if errors.As(err, new(*RemovedError)) {
			return id, nil
		}
		return root, err
	}
	return root, missing
}

// removalOf returns the key of the removal of a root case; "" if no actor has removed it. Keys begin with the time, so
// all of them are compared; the database does that, and reads no value.
func removalOf(ctx context.Context, db domain.DB, id workitem.CaseID) (key string, err error) {
	query := "SELECT coalesce(max(key), '') FROM " + domain.Table(db, "records") + " WHERE collection = $1 AND substr(key, $2) = $3"
	err = db.QueryRowContext(ctx, query, removals.Name, len(removalKey(time.Time{}, ""))+1, id.String()).Scan(&key)
	return key, err
}

// RemovedError says that a root case does not exist any more, since an actor has removed it. It wraps [ErrNotFound].
type RemovedError struct {
	Case   workitem.CaseID
	At     time.Time
	By     string
	Reason string // "" if none was given
}

// Error says who has removed the case, when and why.
func (e *RemovedError) Error() string {
	text := fmt.Sprintf("case %s was removed by %s at %s", e.Case, printable.Line(e.By), printable.Time(e.At))
	if e.Reason != "" {
		text += ": " + printable.Line(e.Reason)
	}
	return text
}

// Unwrap returns ErrNotFound.
func (e *RemovedError) Unwrap() error { return ErrNotFound }

// OrRemoved returns a [RemovedError] if err wraps ErrNotFound and an actor has removed the case; otherwise it returns err.
func OrRemoved(ctx context.Context, r Reader, id workitem.CaseID, err error) error {
	if !errors.Is(err, ErrNotFound) || id.IsZero() {
		return err
	}
	key, failed := removalOf(ctx, r.DB(), id)
	if failed != nil || key == "" {
		return cmp.Or(failed, err)
	}
	gone, failed := removals.Get(ctx, r.DB(), key)
	if failed != nil {
		return failed
	}
	return &RemovedError{Case: id, At: gone.At, By: gone.By, Reason: gone.Reason}
}
