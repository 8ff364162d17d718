package engine

import (
	"context"
	"time"

	"github.com/tasq-dev/tasq/engine/why"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// Why says what a case and its child cases wait for: who or what must act next, since when, until when, and what is in
// the way; and where each task of the case stands. It is the answer of tasq why, and knows besides which definitions and
// queues this engine has, whether its workers are busy and whether its store fails. The error wraps [ErrNotFound] if there is no such case.
func (e *Engine) Why(ctx context.Context, id workitem.CaseID) (answer *why.Answer, err error) {
	here := why.Here{
		Definition: func(fingerprint string) *workflow.Definition { return e.byPrint[fingerprint] },
		Workers:    e.workersOf,
		Running:    e.sched.runningOf,
		Failing:    e.failingSince,
	}
	err = e.View(ctx, func(r store.Reader) error {
		answer, err = why.Read(ctx, r, id, e.now(), here)
		return err
	})
	return answer, err
}

// workersOf is how many jobs of a queue run here at a time: 0 if this engine stops the queue, and less if it runs no jobs.
func (e *Engine) workersOf(queue string) int {
	if limit, listed := e.cfg.Queues[queue]; listed {
		return max(limit, 0)
	}
	return e.cfg.Workers
}

// failingSince is since when the store fails as a job is to begin; zero if it does not.
func (e *Engine) failingSince(job workitem.JobID) time.Time {
	if !e.sched.isTriedAgain(job) {
		return time.Time{}
	}
	return e.faults.since("commit", "due work")
}
