package dispatch

import (
	"context"
	"errors"
	"fmt"

	"github.com/tasq-dev/tasq/engine/internal/commit"
	"github.com/tasq-dev/tasq/engine/internal/fault"
	"github.com/tasq-dev/tasq/engine/internal/kernel"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// A job that a command opens and that is due at once is claimed in the transaction of that command, if its queue has a
// free worker and no other due work:
//
//	start ─┐                          ┌─ worker runs
//	       ├ one entry, one commit ───┤
//	claim ─┘                          └─ caller has its answer
//
// This saves a request and an entry of the journal. And since the claim is durable before the job runs, each of its
// runs is counted. It is done for first runs only: a later run has to read the steps of earlier ones, which may be in
// the same transaction and not yet in the store.

// Extend implements commit.Extender.
func (d *Dispatcher) Extend(tx *commit.Tx) (ended func(error), err error) {
	claims := d.reserve(tx)
	if len(claims) == 0 {
		return nil, nil
	}
	ended = func(err error) {
		for _, c := range claims {
			c.decided(tx, err)
		}
	}
	for _, c := range claims {
		if err == nil {
			err = c.claimIn(tx)
		}
	}
	if err != nil {
		ended(err)
		return nil, err
	}
	return ended, nil
}

// reserve finds the jobs that a transaction has opened and that can start at once, and reserves a worker for each.
func (d *Dispatcher) reserve(tx *commit.Tx) []*claim {
	var found []*claim
	for u, changes := range tx.Changed() {
		for _, e := range changes {
			opened, ok := e.(*state.JobOpened)
			if !ok {
				continue
			}
			c, j := u.Tree.Job(opened.Job.ID)
			if j == nil || j.State != state.JobPending || j.Due.After(tx.Now()) || !firstRun(c, j) || d.lacks(u.Tree, c) {
				continue
			}
			if n, ok := d.sched.reserve(c, j, tx.Now().UnixMicro()); ok {
				found = append(found, &claim{entry: n, d: d, lease: tx.Now().Add(d.o.Lease), withoutCallbacks: startsWithoutCallbacks(d.o.Definitions.Definition(c.Fingerprint), c, j)})
			}
		}
	}
	return found
}

// firstRun reports whether a job cannot have steps of earlier runs.
func firstRun(c *state.Case, j *state.Job) bool {
	it := c.Item(j.Item)
	return j.Fence == 0 && c.Predecessor.IsZero() && (it == nil || it.Attempt == 1)
}

// startsWithoutCallbacks reports whether the start of a job's item calls no callbacks that could refuse it.
func startsWithoutCallbacks(def *workflow.Definition, c *state.Case, j *state.Job) bool {
	t, ok := c.Net.TaskByName(j.Task)
	if !ok || j.Kind != state.JobRun || !c.Parent.IsZero() || def.Hooks.OnStarted != nil {
		return false
	}
	spec := &def.Tasks[t]
	return spec.Actions[workitem.Start] == nil && spec.ItemHooks.OnStarted == nil && spec.Hooks.OnStarted == nil &&
		(spec.Hooks.OnWorkItemStateChanged == nil || spec.OnlyFailures) && spec.Policy.BuiltIn()
}

// claimIn claims the job in the transaction that made it due. If the kernel refuses the claim, only the claim is rolled
// back. That needs a savepoint, which copies the case once more; a claim that hardly anything can refuse does without,
// and repeats the whole request on failure.
func (c *claim) claimIn(tx *commit.Tx) error {
	claim := func() error {
		u, err := tx.Open(c.root)
		if err != nil {
			return err
		}
		return tx.Run(u, "", func(m *kernel.Machine) (err error) {
			c.work, err = m.Leases().Claim(c.job, c.d.o.Owner, c.lease)
			return err
		})
	}
	if c.withoutCallbacks {
		err := claim()
		if err != nil && !fault.Is(err) {
			err = fmt.Errorf("%w: %w", commit.ErrDefer, err)
		}
		return err
	}
	err := tx.Savepoint(claim)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, kernel.ErrAbandoned), errors.Is(err, store.ErrUndone):
		return fmt.Errorf("%w: %w", commit.ErrDefer, err) // a callback of the start aborted the transaction
	case fault.Is(err):
		return err
	}
	c.work, c.refused = nil, err
	return nil
}

// decided starts the worker if the transaction is durable, and frees it otherwise.
func (c *claim) decided(tx *commit.Tx, err error) {
	if err == nil && c.refused == nil && c.work != nil {
		c.ctx, c.cancel = context.WithCancelCause(c.d.o.Context)
		c.hold(tx)
		c.d.sched.pool.do(c)
		return
	}
	if err == nil {
		c.d.startFailed(c.entry, c.refused) // nil if the item ended when it was started
	}
	c.d.sched.unreserve(c.entry)
}

// reserve reserves a worker for a job that becomes due, if one is free and the queue has no other due work.
func (s *scheduler) reserve(c *state.Case, j *state.Job, now int64) (entry, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.on || s.stopping || j.Kind != state.JobRun && j.Kind != state.JobCall || j.Generation >= firstCheck {
		return entry{}, false
	}
	q := s.queues.of(j.Queue)
	if s.queues.paused[q.name] || q.running >= q.limit || s.queues.full() || len(q.ready) > 0 || s.waiting.next() <= now {
		return entry{}, false
	}
	n := entry{due: j.Due.UnixMicro(), job: j.ID, root: j.Root, queue: q, priority: shortPriority(j.Priority), durableClaim: true,
		urgent: s.d.urgency(j), hours: s.hoursOf(c, j)}
	if s.hours.isClosed(&n, now) || s.batchOf(c, j) != nil {
		return entry{}, false
	}
	n.ticket, n.turn = s.ticketOf(c, j), s.fair.turnOf(c, j, q)
	if s.queues.keyPaused(&n) || n.ticket != nil && !s.limits.Try(n.ticket) {
		return entry{}, false
	}
	s.queues.occupy(q)
	s.d.jobs.Add(1)
	s.d.o.Active(1)
	s.claims.reserve(j.ID)
	return n, true
}

// unreserve frees the worker of a job that does not start.
func (s *scheduler) unreserve(n entry) {
	s.mu.Lock()
	s.claims.unreserve(n.job)
	s.mu.Unlock()
	s.endClaim(n, nil, nil, notStarted)
}
