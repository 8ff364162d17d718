package store_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/internal/pgtest"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/postgres"
	"github.com/tasq-dev/tasq/store/sqlite"
	"github.com/tasq-dev/tasq/store/storetest"
	"github.com/tasq-dev/tasq/workitem"
)

// The pages of the commands with an actor have those that a filter selects, once each and the newest first, however few of the journal
// a call examines.
func TestActsExamineTheJournalInParts(t *testing.T) {
	for name, open := range map[string]func(t *testing.T) store.Opener{
		"sqlite":   func(*testing.T) store.Opener { return sqlite.Memory() },
		"postgres": func(t *testing.T) store.Opener { return postgres.Open(pgtest.Database(t)) },
	} {
		t.Run(name, func(t *testing.T) {
			w := storetest.NewWorld(t, open(t), 1)
			rng := rand.New(rand.NewPCG(1, 2))
			for range 60 {
				w.Update(func(b *storetest.Batch) { b.Random(rng) })
			}
			middle := w.Want.Entries[len(w.Want.Entries)/2]
			filters := []store.JournalFilter{
				{}, {Command: "start article"}, {Command: "start issue"}, {Command: "case"}, {Command: "case cancel", By: "ann"}, {Command: "none"},
				{By: "ann"}, {By: "tester", Since: middle.At}, {Before: middle.At}, {Since: middle.At.Add(time.Hour * 1e5)}, {Before: middle.At, Command: "start"},
				{Command: "case", Root: middle.Root}, {Command: "start", From: middle.Seq}, {Command: "start", Until: middle.Seq}, {By: "ann", From: middle.Seq},
			}
			w.View(func(ctx context.Context, r store.Reader) {
				for _, f := range filters {
					for _, bounds := range [][2]int{{1, 1}, {3, 7}, {7, 1000}, {1000, 1000}} {
						f.Limit = 1 + rng.IntN(4)
						require.Equal(t, selected(w, f), allActs(t, f, func(f store.JournalFilter) ([]*store.Entry, int64, error) {
							return store.ActsWithin(ctx, r, f, bounds[0], bounds[1])
						}), "%+v within %v", f, bounds)
					}
					require.Equal(t, selected(w, f), allActs(t, f, func(f store.JournalFilter) ([]*store.Entry, int64, error) {
						return store.Acts(ctx, r, f)
					}), "%+v", f)
				}
				page, next, err := store.ActsWithin(ctx, r, store.JournalFilter{Command: "none"}, 2, 4)
				require.NoError(t, err)
				require.Empty(t, page)
				require.Positive(t, next, "the rest of the journal is that of another page")
				_, first, err := store.ActsOfNoTime(ctx, r, store.JournalFilter{Command: "none"}, 2)
				require.NoError(t, err)
				require.Greater(t, first, next, "it ends behind its first part")
			})
		})
	}
}

// A page has a bounded number of the removals of cases and of the changes of settings, of which there may be many more than commands in the
// journal. It says so; a filter by time selects the others.
func TestAPageOfActsIsBounded(t *testing.T) {
	for name, open := range map[string]func(t *testing.T) store.Opener{
		"sqlite":   func(*testing.T) store.Opener { return sqlite.Memory() },
		"postgres": func(t *testing.T) store.Opener { return postgres.Open(pgtest.Database(t)) },
	} {
		t.Run(name, func(t *testing.T) {
			w, at, ctx := storetest.NewWorld(t, open(t), 1), time.Date(2026, 11, 29, 9, 0, 0, 0, time.UTC), t.Context()
			second := func(n int) time.Time { return at.Add(time.Duration(n) * time.Second) }
			w.Update(func(b *storetest.Batch) {
				for n := range store.MaxBeside + 30 {
					require.NoError(t, store.NoteRemoval(ctx, b.Tx, workitem.CaseID{1, byte(n >> 8), byte(n)}, second(n), "ann", ""))
					require.NoError(t, store.NoteSetting(ctx, b.Tx, fmt.Sprint(n), store.SettingChange{Decision: store.Decision{At: second(n)}, Command: "set"}))
				}
			})
			w.View(func(ctx context.Context, r store.Reader) {
				page, _, err := store.Acts(ctx, r, store.JournalFilter{})
				require.NoError(t, err)
				require.Len(t, page, 2*store.MaxBeside)
				require.Equal(t, second(store.MaxBeside+29), page[0].At, "the newest")
				require.Equal(t, second(30), page[len(page)-1].At)
				require.Contains(t, store.NoteOfActs(page), "at most the newest 1000")
				page, _, err = store.Acts(ctx, r, store.JournalFilter{Before: second(30)})
				require.NoError(t, err)
				require.Len(t, page, 2*30)
				require.Equal(t, at, page[len(page)-1].At)
				require.Empty(t, store.NoteOfActs(page))
			})
		})
	}
}

// allActs reads pages up to the last, and returns the positions of their entries. The removals of cases have none.
func allActs(t *testing.T, f store.JournalFilter, read func(store.JournalFilter) ([]*store.Entry, int64, error)) (all []int64) {
	t.Helper()
	for {
		page, next, err := read(f)
		require.NoError(t, err)
		found := 0
		for _, e := range page {
			if e.Seq > 0 {
				all, found = append(all, e.Seq), found+1
			}
		}
		require.LessOrEqual(t, found, f.Limit)
		if next == 0 {
			return all
		}
		require.True(t, f.After == 0 || next < f.After, "each page goes on: %d after %d", next, f.After)
		f.After = next
	}
}

// selected returns the positions of the commands that a filter selects, newest first.
func selected(w *storetest.World, f store.JournalFilter) (all []int64) {
	f.Named, f.Desc = true, true
	for _, e := range slices.Backward(w.Want.Entries) {
		if f.Selects(e) {
			all = append(all, e.Seq)
		}
	}
	return all
}
