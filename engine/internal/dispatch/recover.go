package dispatch

import (
	"context"
	"errors"
	"fmt"

	"github.com/tasq-dev/tasq/engine/internal/commit"
	"github.com/tasq-dev/tasq/engine/internal/kernel"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
)

// Recover loads the pending jobs, and releases those that a process was running when it died.
func (d *Dispatcher) Recover(ctx context.Context) error {
	page := store.Page{Limit: 10_000}
	for {
		var jobs []*state.Job
		err := d.o.Store.View(ctx, func(r store.Reader) (err error) {
			jobs, err = r.Jobs(ctx, store.JobFilter{States: []state.JobState{state.JobRunning}, Page: page})
			return err
		})
		if err != nil {
			return err
		}
		for _, j := range jobs {
			err := d.o.Writer.Submit(ctx, commit.OnTree(j.Root, "job release", func(_ *commit.Tx, m *kernel.Machine) error {
				return m.Leases().Release(j.ID, j.Fence, true)
			}))
			if err != nil && !errors.Is(err, kernel.ErrLeaseLost) {
				return fmt.Errorf("job %s: %w", j.ID, err)
			}
		}
		if len(jobs) < page.Limit {
			return d.addPending(ctx)
		}
		page.After = jobs[len(jobs)-1].ID.String()
	}
}

// Jobs are read in pages, in the order of their ids, each in a view of its own: an engine with a million pending jobs
// opens in bounded memory beyond that of its entries.

// addPending adds the pending jobs to the scheduler. Any of them may have crashed the previous process: it may have run
// without a durable claim. So each is claimed durably before it runs, and from now on its crashes are counted.
func (d *Dispatcher) addPending(ctx context.Context) error {
	d.sched.mu.Lock()
	d.sched.waiting.clear()
	d.sched.mu.Unlock()
	page := store.Page{Limit: 10_000}
	for {
		var jobs []*state.Job
		err := d.o.Store.View(ctx, func(r store.Reader) (err error) {
			jobs, err = r.Jobs(ctx, store.JobFilter{States: []state.JobState{state.JobPending, state.JobWaiting}, Page: page})
			return err
		})
		if err != nil {
			return err
		}
		d.sched.mu.Lock()
		for _, j := range jobs {
			d.sched.add(nil, j, true)
		}
		d.sched.mu.Unlock()
		if len(jobs) < page.Limit {
			return nil
		}
		page.After = jobs[len(jobs)-1].ID.String()
	}
}

// releaseRunning releases the jobs whose functions did not end in time.
// It works on a snapshot, since each release changes the claims.
func (d *Dispatcher) releaseRunning() {
	d.sched.mu.Lock()
	left := d.sched.claims.snapshot()
	d.sched.mu.Unlock()
	for _, r := range left {
		d.runner.Release(r.steps)
	}
}
