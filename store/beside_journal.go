package store

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/tasq-dev/tasq/domain"
)

// MaxBeside is the most removals, and the most changes of settings, on a page of [Acts]. A bulk action may remove thousands of cases, and a
// program may set a limit every second.
const MaxBeside = 1000

// BesideJournal lists the commands that are recorded outside of the journal, from a time on and before another one, oldest first, that match By,
// Command, Root, Roots and the times of a filter: the removals of cases by actors, and the changes of settings of queues, limits and
// workflows, also those without an actor. If there are more than most of a kind, it lists the newest. An entry has no position: its Seq is 0. It
// has the changes of the removal, or a Setting.
func BesideJournal(ctx context.Context, r Reader, f JournalFilter, since, before time.Time, most int) ([]*Entry, error) {
	f.After, f.From, f.Until, f.Desc = 0, 0, 0, true // they have no position, which only a list without a begin selects
	all, err := selected(newestRecords(ctx, r.DB(), removals, since, before), f, most)
	if err != nil {
		return nil, err
	}
	f.Named = false // a program may set without an actor, and a list without that would say that a queue is still paused
	set, err := selected(newestRecords(ctx, r.DB(), settingChanges, since, before), f, most)
	all = append(all, set...)
	slices.SortStableFunc(all, func(a, b *Entry) int { return a.At.Compare(b.At) })
	return all, err
}

// NoteOfActs says that a page of [Acts] may lack entries, and how to list them; "" if it lacks none.
func NoteOfActs(page []*Entry) string {
	removed, set := 0, 0
	for _, e := range page {
		switch {
		case e.Setting != nil:
			set++
		case e.Seq == 0:
			removed++
		}
	}
	if max(removed, set) < MaxBeside {
		return ""
	}
	return fmt.Sprintf("Of removals of cases and changes of settings, at most the newest %d are listed here: select earlier ones by a time (older), or fewer by actor or command.", MaxBeside)
}

// selected returns the newest entries that a filter selects, oldest first and at most so many.
func selected[V interface{ entry() *Entry }](records iter.Seq2[V, error], f JournalFilter, most int) (all []*Entry, err error) {
	for v, err := range records {
		if err != nil {
			return nil, err
		}
		if e := v.entry(); f.Selects(e) {
			if all = append(all, e); len(all) == most {
				break
			}
		}
	}
	slices.Reverse(all)
	return all, nil
}

// newestRecords yields the records of a collection from a time on and before another one, newest first. Their keys begin with the time.
func newestRecords[V any](ctx context.Context, db domain.DB, c domain.Collection[string, V], since, before time.Time) iter.Seq2[V, error] {
	const size = 100
	query := fmt.Sprintf("SELECT key, value FROM %s WHERE collection = $1 AND key > $2 AND key < $3 ORDER BY key DESC LIMIT %d", domain.Table(db, "records"), size)
	from, end := removalKey(since, ""), removalKey(before, "")
	return func(yield func(V, error) bool) {
		for {
			keys, values, err := pairs(ctx, db, query, c.Name, from, end)
			for _, value := range values {
				v, bad := domain.Restore[V]([]byte(value))
				if !yield(v, bad) || bad != nil {
					return
				}
			}
			if err != nil {
				yield(*new(V), fmt.Errorf("list %s: %w", c.Name, err))
				return
			}
			if len(keys) < size {
				return
			}
			end = keys[size-1]
		}
	}
}

// pairs returns the rows of a query with two columns.
func pairs(ctx context.Context, db domain.DB, query string, args ...any) (first, second []string, err error) {
	rows, err := db.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var a, b string
		if err := rows.Scan(&a, &b); err != nil {
			return nil, nil, err
		}
		first, second = append(first, a), append(second, b)
	}
	return first, second, rows.Err()
}
