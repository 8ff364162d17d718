package engine

import (
	"context"
	"sync"
	"time"

	"github.com/tasq-dev/tasq/engine/internal/admission"
	"github.com/tasq-dev/tasq/engine/why"
	"github.com/tasq-dev/tasq/limit"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// Why explains what a case and its child cases wait for: who or what must act next, since when, until when, and what prevents it; and the
// state of each task of the case. It is what tasq why prints, and additionally considers which definitions and queues this engine has,
// whether its workers are busy and whether its store fails. The error wraps ErrNotFound if there is no such case.
func (e *Engine) Why(ctx context.Context, id workitem.CaseID) (answer *why.Answer, err error) {
	here := e.Here()
	err = e.View(ctx, func(r store.Reader) error {
		answer, err = why.Read(ctx, r, id, e.now(), here)
		return err
	})
	return answer, err
}

// limitsOf returns the limits that a job or a step of it waits for.
func (e *Engine) limitsOf(job workitem.JobID, step string) (list []why.Limit) {
	for _, w := range e.dispatch.Status().Limited(job, step) {
		list = append(list, why.Limit{Limit: w.Limit.Name, Key: w.Key, Any: w.Any, N: w.N, Ahead: w.Ahead, Free: e.freeAt(w.Wait), Text: w.String(), HeldBy: w.HeldBy,
			HeldOutside: w.HeldOutside, AheadOutside: w.AheadOutside})
	}
	return list
}

// freeAt returns the time at which a limit has room, from the wait for it; zero if it has room, or if time alone gives
// none.
func (e *Engine) freeAt(wait time.Duration) time.Time {
	if wait <= 0 || wait == limit.Unknown {
		return time.Time{}
	}
	return e.now().Add(wait)
}

// limitWaits returns what the jobs of a root case wait for here, for another process.
func (e *Engine) limitWaits(root workitem.CaseID) (list []workflow.LimitWait) {
	e.dispatch.Status().LimitedOf(root, func(job workitem.JobID, step string, waits []admission.Wait) {
		for _, w := range waits {
			list = append(list, workflow.LimitWait{Job: job, Step: step, Limit: w.Limit.Name, Key: w.Key, Any: w.Any, N: w.N,
				Free: e.freeAt(w.Wait), Ahead: w.Ahead, Text: w.String(), HeldBy: w.HeldBy,
				HeldOutside: w.HeldOutside, AheadOutside: w.AheadOutside})
		}
	})
	e.dispatch.Status().KeysPausedOf(root, func(job workitem.JobID, key string) {
		list = append(list, workflow.LimitWait{Job: job, QueueKey: key})
	})
	return list
}

// Here describes what this engine can execute. It is an argument of why.Read, for a view that also reads other
// things, and of why.ReadUnserved.
func (e *Engine) Here() why.Here {
	known := e.dispatch.Status()
	here := why.Here{
		Definition: e.definitions.Definition,
		Workers:    known.LimitOf,
		Running:    known.Running,
		Full:       known.Full,
		Failing:    e.failingSince,
		Limits:     e.limitsOf,
		Gathered:   known.Gathered,
		Fair:       e.fairOf,
		KeyPaused:  known.KeyPaused,
		Opened:     e.opened,
	}
	if e.isShared() {
		here.Elsewhere = func(job workitem.JobID) bool { return !e.dispatch.Ownership().Has(job) }
		here.Others = e.othersHave()
	}
	return here
}

// othersHave returns a function that reports whether another engine has the definition with a fingerprint. It queries the store once
// for each: the answer is for one explanation.
func (e *Engine) othersHave() func(fingerprint string) bool {
	var mu sync.Mutex
	known := make(map[string]bool)
	return func(fingerprint string) bool {
		mu.Lock()
		defer mu.Unlock()
		has, asked := known[fingerprint]
		if !asked {
			has = e.otherEngineHas(e.ctx, fingerprint)
			known[fingerprint] = has
		}
		return has
	}
}

// fairOf returns the position of a job in a fair queue of this engine.
func (e *Engine) fairOf(job workitem.JobID) (why.Fair, bool) {
	t, ok := e.dispatch.Status().InTurn(job)
	return why.Fair{Ahead: t.Ahead, Keys: t.Keys}, ok
}

// reportUnserved logs the live cases of definitions that this engine was not opened with.
func (e *Engine) reportUnserved(ctx context.Context) error {
	var list []why.Unserved
	err := e.View(ctx, func(r store.Reader) (err error) {
		list, err = why.ReadUnserved(ctx, r, e.Here())
		return err
	})
	for _, u := range list {
		e.log.Warn("live cases of a definition that the engine was not opened with: nothing of them happens here; open the engine "+
			"with this version too, until they have ended", "workflow", u.Workflow, "version", u.Version, "cases", u.Cases, "items", u.Items)
	}
	return err
}

// failingSince returns since when the store fails for a job that is due; zero if it does not. A job that still waits
// for its time is not affected, so it gets no such explanation.
func (e *Engine) failingSince(job workitem.JobID) time.Time {
	if !e.dispatch.Status().IsTriedAgain(job) {
		return time.Time{}
	}
	return e.faults.Since("commit", "due work")
}
