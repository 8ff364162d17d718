package engine

import (
	"context"
	"errors"
	"time"

	"github.com/tasq-dev/tasq/engine/internal/commit"
	"github.com/tasq-dev/tasq/engine/internal/fleet"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// isShared reports whether other engines may have the store open.
func (e *Engine) isShared() bool {
	f, ok := e.store.(store.Fleet)
	return ok && f.Shared()
}

// sharesJobs reports whether jobs can wait in the store without belonging to this engine.
func (e *Engine) sharesJobs() bool {
	_, ok := e.store.(store.Fleet)
	return ok
}

// countElsewhere returns the function that counts what waits in other engines, or in none; nil if each job belongs to this one.
func (e *Engine) countElsewhere() func(context.Context, map[string]int) (map[string]int, error) {
	if f, ok := e.store.(store.Fleet); ok {
		return f.Waiting
	}
	return nil
}

// held returns the function that lists the live jobs of this engine in the database; nil if each job belongs to this one.
func (e *Engine) held() func(context.Context, int) ([]*state.Job, error) {
	f, ok := e.store.(store.Fleet)
	if !ok {
		return nil
	}
	return func(ctx context.Context, most int) ([]*state.Job, error) {
		return f.Overdue(ctx, e.now().Add(always), most)
	}
}

// always is a time in which each job becomes due that has a time.
const always = 100 * 365 * 24 * time.Hour

// What the member of a fleet and this engine exchange:
//
//	fleet needs to know     Awaited, Work.Roots    which root cases have callers or running jobs here
//	                        WaitBegan, Committed   when a caller begins to wait, or this engine commits
//	fleet learned           Refresh, Forget        another engine changed a root case: read it again, or drop it from memory
//	                        Moved, Died            the journal has new entries, or an engine has died
//	                        SettingsChanged        operators have changed settings
//	fleet took over         Work.Adopt             jobs that are this engine's from now on

// joinFleet makes the engine a member of its fleet, if other engines can have the store open.
func (e *Engine) joinFleet() {
	if !e.isShared() {
		return
	}
	e.fleet = fleet.New(fleet.Options{
		Store: e.store.(store.Fleet), Work: e.dispatch.Ownership(), Fingerprints: e.fingerprints(),
		Awaited: e.notifier.Roots, Refresh: e.refresh, Forget: e.writer.Forget,
		Moved:           func() { e.notifier.Changed(workitem.CaseID{}, nil) },
		SettingsChanged: e.controls.compare,
		Died:            e.cleaner.Look,
		Report:          e.reportFleet, Now: e.now, Log: e.log,
	})
	e.writer.Observe(e.fleet)
	e.notifier.OnWait(e.fleet.WaitBegan)
}

// fingerprints returns those of the definitions of this engine.
func (e *Engine) fingerprints() []string {
	var prints []string
	for _, d := range e.definitions.Stored(e.now()) {
		prints = append(prints, d.Fingerprint)
	}
	return prints
}

// keepAlive sends heartbeats until the function that it returns is called.
func (e *Engine) keepAlive(ctx context.Context) (stop func()) {
	if !e.isShared() {
		return func() {}
	}
	return fleet.KeepAlive(ctx, e.store.(store.Fleet), e.now)
}

// takeWork returns the function that the dispatcher calls when it is idle; nil if no other engine can offer work.
func (e *Engine) takeWork() func() {
	if !e.isShared() {
		return nil
	}
	return func() { e.fleet.TakeWork() }
}

// recoverJobs schedules the jobs of this engine when it is opened.
func (e *Engine) recoverJobs(ctx context.Context) error {
	if e.fleet != nil {
		return e.fleet.Join(ctx)
	}
	return e.dispatch.Recover(ctx)
}

// reportFleet logs when the exchange with other engines starts and stops failing.
func (e *Engine) reportFleet(err error) {
	if err = e.stopIfLost(err); errors.Is(err, ErrClosed) {
		return
	}
	e.faults.Note("fleet", err, "this engine could not send a heartbeat; others may take over its jobs")
}

// holder implements commit.Holder with the dispatcher, which is created after the writer.
type holder struct{ e *Engine }

// Offers implements commit.Holder.
func (h holder) Offers(t *state.Tree, c *state.Case, j *state.Job) bool {
	return h.e.dispatch.Ownership().Offers(t, c, j)
}

// Offered implements commit.Holder.
func (h holder) Offered(ids []workitem.JobID) { h.e.dispatch.Ownership().Offered(ids) }

// otherEngineHas reports whether another engine has a definition that this one lacks.
func (e *Engine) otherEngineHas(ctx context.Context, fingerprint string) bool {
	if e.fleet == nil {
		return false
	}
	known, err := e.store.(store.Fleet).Knows(ctx, fingerprint)
	return err == nil && known
}

// refresh updates the jobs and waiting callers of this engine after another engine has changed a root case.
func (e *Engine) refresh(root workitem.CaseID) {
	var tree *state.Tree
	var steps map[workitem.JobID][]*workitem.Step
	r := &commit.Request{Reads: true, Run: func(tx *commit.Tx) error {
		// Run is called again after a conflict with another engine, and must not keep what it read before.
		tree, steps = nil, make(map[workitem.JobID][]*workitem.Step)
		u, err := tx.Open(root)
		if errors.Is(err, ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		tree = u.Tree
		for job, owner := range e.dispatch.Ownership().Owners(root) {
			if steps[job], err = tx.Store().Steps(tx.Context(), owner); err != nil {
				return err
			}
		}
		return nil
	}}
	r.Ended = func(err error) {
		if err != nil {
			e.fleet.Refreshed(root, 0)
			return
		}
		last := int64(0)
		if tree != nil {
			last = tree.Case(root).LastSeq
		}
		e.fleet.Refreshed(root, last)
		e.dispatch.Ownership().Compare(root, tree, steps)
		e.notifier.Changed(root, tree)
	}
	if !e.writer.Send(r) {
		e.fleet.Refreshed(root, 0)
	}
}
