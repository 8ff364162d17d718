// Package integrity proves that a database is what it says it is: every case is rebuilt from its journal alone, the
// rules that every case must keep are checked on the way, and the result is compared with the tables.
//
// The rules, with the numbers that they have in the reference of this field:
//
//	I1   no condition ever holds less than no token
//	I2   a task was enabled as often as its generation says, one after the other
//	I3   at most one activation of a task is active at a time
//	I4   an activation ends once
//	I5   nothing of an ended activation is live
//	I6   tokens are consumed where they were, and produced by completed tasks only
//	I7   the journal yields the stored state
//	I8   the tables hold nothing that the journal does not know, and count what they hold
//	I9   nothing of an ended case changes
//	I10  a started item has a started task, and every case above it has begun
//	J1   the entries of a case form one chain, and every entry is in the chain of its case
//	J2   an entry changes only what is there
//	S1   a step waits only for a live job, and a job waits only for a step
//	S2   a name is recorded once for a job
//	S3   a child case that a step runs is live only while the step waits
//	S4   an event is taken once, by one step
//
// The check reads a number of root cases at a time with all that belongs to them, so it needs memory for those and not for
// the database.
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

// Breach is a rule that the database does not keep.
type Breach struct {
	Rule string // "I7"; see the package
	Text string // what was found, without the rule
	err  error  // that was met, or nil
}

// Error is the rule that is broken, and what breaks it.
func (b *Breach) Error() string { return b.Rule + ": " + b.Text }

// Unwrap is the error that the rule was checked with; nil if there is none.
func (b *Breach) Unwrap() error { return b.err }

// Progress is how far a check is.
type Progress struct {
	Cases   int64 // root cases that were checked
	Entries int64 // of the journal, that were applied
	Of      int64 // entries that the journal has
}

// Report is the result of a check.
type Report struct {
	Progress
	Breaches []*Breach // the first [MaxBreaches]
	More     int       // breaches beyond those
}

// MaxBreaches bounds what a report lists, since a damaged table breaks a rule with each of its rows.
const MaxBreaches = 1000

// Check reports every breach that it finds in the store; nil means that there is none.
func Check(ctx context.Context, s Viewer) error {
	report, err := Inspect(ctx, s, nil)
	errs := []error{err}
	for _, b := range report.Breaches {
		errs = append(errs, b)
	}
	return errors.Join(errs...)
}

// Inspect checks the store, in one view of it. progress is called now and then; it may be nil. The error is one of
// reading: what is wrong with what was read is in the report.
func Inspect(ctx context.Context, s Viewer, progress func(Progress)) (Report, error) {
	c := &checker{counts: make(map[store.Count]int64), ended: make(map[store.Ended]int64)}
	err := s.View(ctx, func(r store.Reader) error { return c.run(ctx, r, progress) })
	return c.report, err
}

type checker struct {
	report Report
	counts map[store.Count]int64 // what there should be
	ended  map[store.Ended]int64
}

func (c *checker) breach(rule, format string, args ...any) {
	if len(c.report.Breaches) == MaxBreaches {
		c.report.More++
		return
	}
	err := fmt.Errorf(format, args...)
	c.report.Breaches = append(c.report.Breaches, &Breach{rule, err.Error(), errors.Unwrap(err)})
}

// batchRoots is how many root cases are read at a time.
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
	c.strays(audit)
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
	c.states(e, f.tree, d)
}
