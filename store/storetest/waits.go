package storetest

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// Record records a step of the live item's job of a case: done at once, or waiting.
func (b *Batch) Record(
	root, id workitem.CaseID, name string, kind workitem.StepKind, to workitem.StepState,
) *workitem.Step {
	b.T.Helper()
	now := b.Now()
	_, it, j := b.live(root, id)
	s := &workitem.Step{ID: b.ids.NewStepID(now), Job: j.ID, Item: it.ID, Case: id, Name: name, Kind: kind, State: to,
		Run: 1, Attempt: 1, Created: now}
	switch {
	case to == workitem.StepDone:
		s.Result, s.Ended = json.RawMessage(`{"n": 1}`), now
	case kind == workitem.StepEvent:
		s.Target, s.Topic, s.Due = "paid", len(name)%2 == 0, now.Add(time.Hour)
	case kind == workitem.StepDo:
		s.Failure, s.Due = &workitem.Failure{Code: "io", Retryable: true}, now.AddDate(100, 0, 0)
	}
	b.do(root, "step "+name, &state.StepOpened{Step: s})
	return s
}

// Suspend gives the running job of a case up for the given time.
func (b *Batch) Suspend(root, id workitem.CaseID, due time.Time) {
	b.T.Helper()
	now := b.Now()
	_, _, j := b.live(root, id)
	b.do(root, "job suspend",
		&state.JobMoved{Case: id, Job: j.ID, To: state.JobWaiting, Due: due, Fence: j.Fence, At: now})
}

// Send sends an event to a case: into its mail, or to a step that waits.
func (b *Batch) Send(root, id workitem.CaseID, value string, to *workitem.Step) *state.Message {
	b.T.Helper()
	now := b.Now()
	m := &state.Message{ID: b.ids.NewMessageID(now), Case: id, Name: "paid", Value: json.RawMessage(value), By: "bank",
		Sent: now}
	events := []state.Change{&state.MessageSent{Message: m}}
	if to != nil {
		events = append(events, &state.MessageTaken{Case: id, Message: m.ID, Step: to.ID, At: now},
			&state.StepMoved{Case: id, Job: to.Job, Step: to.ID, To: workitem.StepDone, Attempt: to.Attempt, Due: to.Due,
				Result: m.Value, At: now})
	}
	b.do(root, "event paid", events...)
	return m
}

// endSteps ends the waits of a case whose job ends.
func (b *Batch) endSteps(c *state.Case) []state.Change {
	var events []state.Change
	for s := range c.Steps.All() {
		events = append(events, &state.StepMoved{Case: c.ID, Job: s.Job, Step: s.ID, To: workitem.StepCanceled,
			Attempt: s.Attempt, Due: s.Due, At: b.clock})
	}
	return events
}

// randomStep does something with the steps of a started item.
func (b *Batch) randomStep(root, id workitem.CaseID, rng *rand.Rand) {
	b.T.Helper()
	c, _, j := b.live(root, id)
	name := fmt.Sprintf("step %d", rng.IntN(1<<30))
	kinds := []workitem.StepKind{workitem.StepEvent, workitem.StepDo, workitem.StepSleep}
	switch n := rng.IntN(6); {
	case n == 0 && j.State == state.JobRunning:
		b.Suspend(root, id, []time.Time{{}, b.clock.Add(time.Hour)}[rng.IntN(2)])
	case n <= 2:
		b.Record(root, id, name, workitem.StepDo, workitem.StepDone)
	case n == 3:
		b.Record(root, id, name, kinds[rng.IntN(len(kinds))], workitem.StepWaiting)
	default:
		var waits *workitem.Step
		for s := range c.Steps.All() {
			if s.Kind == workitem.StepEvent {
				waits = s
			}
		}
		b.Send(root, id, `[1]`, waits)
	}
}

// checkWaits compares steps and messages with the model, also those that are found by their owners.
func (m *Model) checkWaits(ctx context.Context, t testing.TB, r store.Reader) {
	t.Helper()
	steps, err := r.Steps(ctx, store.StepFilter{Page: store.Page{Limit: 1 << 20}})
	require.NoError(t, err)
	require.Len(t, steps, len(m.Steps), "steps")
	for _, s := range steps {
		require.Equal(t, asJSON(t, m.Steps[s.ID]), asJSON(t, s), "step %s", s.ID)
	}
	messages, err := r.Messages(ctx, store.MessageFilter{Page: store.Page{Limit: 1 << 20}})
	require.NoError(t, err)
	require.Len(t, messages, len(m.Mail), "messages")
	for _, k := range messages {
		require.Equal(t, asJSON(t, m.Mail[k.ID]), asJSON(t, k), "message %s", k.ID)
	}
}

// waits holds what filters and transactions must find of steps and messages.
func waits(w *World) {
	var root workitem.CaseID
	var item workitem.ID
	var job workitem.JobID
	w.Update(func(b *Batch) {
		root = b.Start(`1`)
		b.Claim(root, root)
		_, it, j := b.live(root, root)
		item, job = it.ID, j.ID
		b.Record(root, root, "charge", workitem.StepDo, workitem.StepDone)
	})
	var paid *workitem.Step
	w.Update(func(b *Batch) {
		paid = b.Record(root, root, "await", workitem.StepEvent, workitem.StepWaiting)
		b.Send(root, root, `1`, nil)
		b.Suspend(root, root, time.Time{})
		steps, err := b.Tx.Steps(context.Background(), item)
		require.NoError(b.T, err)
		require.Len(b.T, steps, 2, "what this transaction appended, and what an earlier one did")
		require.Equal(b.T, "charge", steps[0].Name)
		none, err := b.Tx.Steps(context.Background(), job)
		require.NoError(b.T, err)
		require.Empty(b.T, none, "the steps of an item's run belong to the item")
	})
	w.Reopen()
	w.Update(func(b *Batch) {
		require.Equal(b.T, 1, b.tree(root).Case(root).Mail.Len())
		b.Send(root, root, `2`, paid)
		steps, err := b.Tx.Steps(context.Background(), item)
		require.NoError(b.T, err)
		require.Equal(b.T, workitem.StepDone, steps[1].State, "the newest value")
	})
	w.View(func(ctx context.Context, r store.Reader) {
		names := func(f store.StepFilter) []string {
			steps, err := r.Steps(ctx, f)
			require.NoError(w.T, err)
			var list []string
			for _, s := range steps {
				list = append(list, s.Name)
			}
			return list
		}
		require.Equal(w.T, []string{"charge", "await"}, names(store.StepFilter{Item: item}))
		require.Equal(w.T, []string{"charge", "await"}, names(store.StepFilter{Job: job}))
		require.Equal(w.T, []string{"await", "charge"}, names(store.StepFilter{Root: root, Page: store.Page{Desc: true}}))
		require.Equal(w.T, []string{"await"}, names(store.StepFilter{Case: root, Kind: workitem.StepEvent}))
		require.Equal(w.T, []string{"await"}, names(store.StepFilter{Target: "paid"}))
		require.Empty(w.T, names(store.StepFilter{States: []workitem.StepState{workitem.StepWaiting}}))
		unread, err := r.Messages(ctx, store.MessageFilter{Case: root, Name: "paid", Unread: true})
		require.NoError(w.T, err)
		require.Len(w.T, unread, 1)
		jobs, err := r.Jobs(ctx, store.JobFilter{Due: w.clock.AddDate(200, 0, 0), States: []state.JobState{state.JobWaiting}})
		require.NoError(w.T, err)
		require.Empty(w.T, jobs, "a job that waits for an event alone is not due")
	})
	w.Check()
}
