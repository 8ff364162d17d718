package cli

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/store"
)

// watchEntries declares the flag --watch of a list of entries of the journal, which only grows.
func watchEntries(cmd *cobra.Command, on *bool) {
	cmd.Flags().BoolVar(on, "watch", false, "follow the journal until Ctrl-C: print new entries as they are committed, oldest first")
}

// checkWatched returns an error for flags that a watched list of entries cannot be combined with.
func checkWatched(cmd *cobra.Command, on bool, others ...string) error {
	for _, name := range others {
		if on && cmd.Flags().Changed(name) {
			return usagef("--watch cannot be combined with --%s", name)
		}
	}
	return nil
}

// follow calls look at the beginning, after new entries of the journal, and after refresh without one unless that is 0, until the context
// ends. No entry up to the position that it gets can appear later.
func (a *app) follow(ctx context.Context, refresh time.Duration, look func(ctx context.Context, r store.Reader, settled int64) error) error {
	err := a.withStore(ctx, func(s store.Store) error {
		for seq, err := range moves(ctx, s, retry.SystemClock, refresh) {
			if err == nil {
				err = s.View(ctx, func(r store.Reader) error { return look(ctx, r, seq) })
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	if ctx.Err() != nil {
		return nil // Ctrl-C is the normal end
	}
	return err
}

// watchHistory prints the history of a case, and what is added to it.
func (a *app) watchHistory(ctx context.Context, word string, p past) error {
	begun := false
	return a.follow(ctx, 0, func(ctx context.Context, r store.Reader, _ int64) error {
		c, err := caseByWord(ctx, r, word)
		if err != nil {
			return err
		}
		// Entries of one root case appear in order, so all up to its newest one are there.
		last, err := store.Newest(ctx, store.ViewerOf(r), store.JournalFilter{Root: c.Root})
		if err != nil || begun && last <= p.After {
			return err
		}
		err = a.printHistory(ctx, r, word, p)
		begun, p.After = true, max(p.After, last)
		return err
	})
}

// maxBehind is how much earlier than the present the time of a command beside the journal may be when it is committed.
const maxBehind = time.Minute

// watchActs prints the newest commands that the filter selects, as many as its limit, and those that follow, oldest first. The removal of a
// case and the change of a setting have no entry in the journal, and are looked for at each check.
func (a *app) watchActs(ctx context.Context, f store.JournalFilter, root string) error {
	t, begun, since := a.acts(), false, time.Time{}
	f.Settled = true
	return a.follow(ctx, watchPause, func(ctx context.Context, r store.Reader, settled int64) error {
		if !begun {
			if settled == 0 && root != "" {
				return nil // there is no case yet
			}
			if err := a.ofRoot(ctx, r, root, &f); err != nil {
				return err
			}
		}
		var found []*store.Entry
		if settled > f.After { // of an empty journal it is 0, which would be no bound
			var err error
			f.Until = settled
			if found, err = newestActs(ctx, r, f); err != nil {
				return err
			}
		}
		if !begun && f.Limit > 0 && len(found) == f.Limit {
			since = found[len(found)-1].At
		}
		beside, err := store.BesideJournal(ctx, r, f, since, time.UnixMicro(math.MaxInt64), store.MaxBeside)
		if err != nil {
			return err
		}
		if len(beside) > 0 {
			since = beside[len(beside)-1].At.Add(time.Microsecond)
		}
		if old := now().Add(-maxBehind); since.Before(old) {
			since = old // those before it have been printed, or are not selected
		}
		slices.Reverse(beside)
		found = append(found, beside...)
		slices.SortStableFunc(found, func(a, b *store.Entry) int { return b.At.Compare(a.At) })
		names := a.namer(ctx, r)
		for _, e := range slices.Backward(found) {
			if err := t.add(&names, e); err != nil {
				return err
			}
		}
		begun, f.Limit, f.After = true, 0, max(f.After, settled)
		return t.flush()
	})
}

// newestActs returns the entries behind f.After that have an actor, newest first.
func newestActs(ctx context.Context, r store.Reader, f store.JournalFilter) (found []*store.Entry, err error) {
	after, most := f.After, f.Limit
	f.Named, f.Desc, f.After, f.Limit = true, true, 0, 0
	for e, err := range store.AllEntries(ctx, store.ViewerOf(r), f) {
		if err != nil || e.Seq <= after || most > 0 && len(found) == most {
			return found, err
		}
		found = append(found, e)
	}
	return found, nil
}
