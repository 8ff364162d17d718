package worker

import (
	"context"
	"log/slog"
	"time"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/engine/internal/registry"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// attemptLog logs the attempts that have ended, at the level debug: those of work items as they are committed, by a person or a worker, and those of scheduled functions by the worker that called them, since such an attempt has no item whose end would
// say whether it was the last.
type attemptLog struct {
	log         *slog.Logger
	definitions *registry.Registry
}

// committed logs one line for each attempt of a work item that a command has ended, by a person or by a worker.
func (l *attemptLog) committed(tree *state.Tree, changes []state.Change) {
	if !l.log.Enabled(context.Background(), slog.LevelDebug) {
		return
	}
	// The next attempt is an item of its own, which the same command has opened.
	due := make(map[workitem.ID]time.Time) // when the next attempt is due, by its item
	for _, ev := range changes {
		if opened, ok := ev.(*state.ItemOpened); ok && !opened.Item.Predecessor.IsZero() {
			due[opened.Item.Predecessor] = opened.Item.Due
		}
	}
	for _, ev := range changes {
		moved, ok := ev.(*state.ItemMoved)
		if !ok || moved.To != workitem.Completed && moved.To != workitem.Failed {
			continue
		}
		c := tree.Case(moved.Case)
		if c == nil {
			continue
		}
		at, again := due[moved.Item]
		l.item(c, c.Item(moved.Item), moved, max(at.Sub(moved.At), 0), again)
	}
}

// item logs the attempt of an item. The wait is that of the item that replaces it, if there is one.
func (l *attemptLog) item(c *state.Case, it *workitem.Item, moved *state.ItemMoved, wait time.Duration, again bool) {
	if it == nil {
		return
	}
	who := []slog.Attr{slog.String("workflow", c.Workflow), slog.String("case", c.ID.String()),
		slog.String("task", it.Task), slog.String("item", it.Label()), slog.Int("attempt", it.Attempt)}
	if d := l.definitions.Definition(c.Fingerprint); d != nil {
		t, _ := d.Net.TaskByName(it.Task)
		spec := &d.Tasks[t]
		if spec.Auto {
			return // the item ended without an attempt
		}
		who = append(who, slog.String("function", spec.Function.NameOr(it.Task)))
	}
	l.attempt(who, moved.To == workitem.Failed, moved.Failure, wait, again)
}

// call logs one line for an attempt of a scheduled function, once its end is committed.
// A scheduled function has no items: its next attempt is the same job, pending again.
func (l *attemptLog) call(w *activities.Work, failure *workitem.Failure, changes []state.Change) {
	if w.Name == "" || !l.log.Enabled(context.Background(), slog.LevelDebug) {
		return
	}
	var wait time.Duration
	again := false
	for _, ev := range changes {
		if moved, ok := ev.(*state.JobMoved); ok && moved.Job == w.Job && moved.To == state.JobPending {
			wait, again = max(moved.Due.Sub(moved.At), 0), true
		}
	}
	who := []slog.Attr{slog.String("workflow", w.Case.Workflow), slog.String("case", w.Case.ID.String()),
		slog.String("job", w.Job.String()), slog.String("function", w.Name), slog.Int("attempt", w.Attempt)}
	l.attempt(who, failure != nil, failure, wait, again)
}

// attempt logs an attempt that has ended, with the wait before the next one, if there is one, and the cause.
func (l *attemptLog) attempt(who []slog.Attr, failed bool, f *workitem.Failure, wait time.Duration, again bool) {
	text := "attempt completed"
	if failed {
		text = "attempt failed"
	}
	if again {
		who = append(who, slog.Duration("wait", wait))
	}
	if failed && f != nil {
		who = append(who, slog.String("code", f.Code), slog.String("error", f.Message))
	}
	l.log.LogAttrs(context.Background(), slog.LevelDebug, text, who...)
}
