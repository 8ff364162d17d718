// Package integrity verifies a database: it rebuilds every case from its journal alone, checks the rules for each case
// on the way, and compares the result with the tables.
//
// The rules, with their numbers in the reference:
//
//	I1   a condition never has a negative number of tokens
//	I2   a task was enabled as often as its generation says, one after the other
//	I3   at most one activation of a task is active at a time
//	I4   an activation ends once
//	I5   nothing of an ended activation is live
//	I6   tokens are consumed where they were, and produced by completed tasks only
//	I7   the journal results in the stored state
//	I8   the tables have nothing that is not in the journal, and correct counts
//	I9   an ended case does not change
//	I10  a started item has a started task, and all its enclosing cases have begun
//	J1   the entries of a case form one chain, and every entry is in the chain of its case
//	J2   an entry changes only what exists
//	S1   a step waits only for a live job, and a job waits only for a step
//	S2   a name is recorded once for a job
//	S3   a child case that a step runs is live only while the step waits
//	S4   an event is taken once, by one step
//
// The check reads some root cases at a time with everything that belongs to them, so it needs memory for those and not
// for the whole database.
package integrity

import (
	"context"
	"errors"
	"fmt"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// Viewer is a store or an engine.
type Viewer interface {
	View(ctx context.Context, f func(store.Reader) error) error
}

// Breach is a violation of a rule.
type Breach struct {
	Rule string // "I7"; see the package comment
	Text string // what was found, without the rule
	err  error  // the error behind it, or nil
}

// Error returns the rule and the violation.
func (b *Breach) Error() string { return b.Rule + ": " + b.Text }

// Unwrap returns the error behind the violation; nil if there is none.
func (b *Breach) Unwrap() error { return b.err }

// Progress is the progress of a check.
type Progress struct {
	Cases   int64 // root cases that were checked
	Entries int64 // applied entries of the journal
	Of      int64 // all entries of the journal
}

// Report is the result of a check.
type Report struct {
	Progress
	Breaches []*Breach     // the first [MaxBreaches]
	More     int           // number of further breaches
	Indexes  []store.Index // that are missing: they break no rule, since they can be made again without loss

	looked int64 // how often something was compared with its case, item or steps after an entry
}

// MaxBreaches limits the breaches in a report, since a damaged table may violate a rule with each of its rows.
const MaxBreaches = 1000

// Check returns an error with every breach in the store; nil if there is none.
func Check(ctx context.Context, s Viewer) error {
	report, err := Inspect(ctx, s, nil)
	errs := []error{err}
	for _, b := range report.Breaches {
		errs = append(errs, b)
	}
	return errors.Join(errs...)
}

// Inspect checks the store in one view. progress is called at intervals; it may be nil. The error is one of reading:
// problems of the data are in the report.
func Inspect(ctx context.Context, s Viewer, progress func(Progress)) (Report, error) {
	c := &checker{counts: make(map[store.Count]int64), ended: make(store.EndedCounts)}
	err := s.View(ctx, func(r store.Reader) error { return c.run(ctx, r, progress) })
	return c.report, err
}

type checker struct {
	report Report
	counts map[store.Count]int64 // the expected counts
	ended  store.EndedCounts
}

func (c *checker) breach(rule, format string, args ...any) {
	if len(c.report.Breaches) == MaxBreaches {
		c.report.More++
		return
	}
	err := fmt.Errorf(format, args...)
	c.report.Breaches = append(c.report.Breaches, &Breach{rule, err.Error(), errors.Unwrap(err)})
}

// batchRoots is the number of root cases that are read at a time.
const batchRoots = 200

func (c *checker) run(ctx context.Context, r store.Reader, progress func(Progress)) error {
	auditor, ok := r.(store.Auditor)
	if !ok {
		return errors.New("the store cannot list what belongs to no case (it is no store.Auditor), so it cannot be checked")
	}
	audit, err := auditor.Audit(ctx, MaxBreaches)
	if err != nil {
		return err
	}
	c.report.Of = audit.Entries
	if c.report.Indexes, err = auditor.MissingIndexes(ctx); err != nil {
		return err
	}
	page := store.Page{Limit: batchRoots}
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		roots, err := r.Cases(ctx, store.CaseFilter{RootOnly: true, Page: page})
		if err != nil {
			return err
		}
		if err := c.batch(ctx, r, roots); err != nil {
			return err
		}
		if progress != nil {
			progress(c.report.Progress)
		}
		if len(roots) < batchRoots {
			break
		}
		page.After = roots[len(roots)-1].ID.String()
	}
	c.orphans(audit)
	return c.compareCounts(ctx, r)
}

// batch checks some root cases.
func (c *checker) batch(ctx context.Context, r store.Reader, roots []*state.Case) error {
	if len(roots) == 0 {
		return nil
	}
	ids := make([]workitem.CaseID, len(roots))
	families := make(map[workitem.CaseID]*family, len(roots))
	for i, k := range roots {
		ids[i] = k.ID
		families[k.ID] = newFamily(k.ID)
	}
	if err := c.replay(ctx, r, ids, families); err != nil {
		return err
	}
	if err := readStored(ctx, r, ids, families); err != nil {
		return err
	}
	for _, id := range ids {
		c.compare(families[id])
	}
	c.report.Cases += int64(len(ids))
	return nil
}

// replay applies the entries of root cases.
func (c *checker) replay(
	ctx context.Context, r store.Reader, ids []workitem.CaseID, families map[workitem.CaseID]*family,
) error {
	return pages(func(after string) (string, bool, error) {
		f := store.JournalFilter{Roots: ids, Limit: pageSize}
		if after != "" {
			_, _ = fmt.Sscan(after, &f.After)
		}
		entries, err := r.Journal(ctx, f)
		for _, e := range entries {
			c.report.Entries++
			if families[e.Root] == nil {
				c.breach("J1", "the chain of another case leads to journal entry %d, which is of case %s", e.Seq, e.Root)
				continue
			}
			c.entry(families[e.Root], e)
			after = fmt.Sprint(e.Seq)
		}
		return after, len(entries) == pageSize, err
	})
}

// pages calls read with the cursor of each page, until there are no more.
func pages(read func(after string) (next string, more bool, err error)) error {
	for after := ""; ; {
		next, more, err := read(after)
		if err != nil || !more {
			return err
		}
		after = next
	}
}

// entry applies one entry of the journal.
func (c *checker) entry(f *family, e *store.Entry) {
	if e.Prev != f.last {
		c.breach("J1", "journal entry %d of case %s follows %d, and says %d", e.Seq, e.Root, f.last, e.Prev)
	}
	f.last = e.Seq
	f.tree.Begin()
	for _, event := range e.Changes {
		c.rules(f, e, event)
		if err := f.tree.Apply(event); err != nil {
			c.breach("I1", "journal entry %d: %w", e.Seq, err)
		}
	}
	d := f.tree.End(e.Seq)
	f.removed = f.removed || d.Removed
	if f.removed {
		return
	}
	f.add(d)
	c.states(e, f, d)
}
