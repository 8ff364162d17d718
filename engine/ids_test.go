package engine_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/bulk"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/step"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// Ids of cases, work items, jobs and steps look alike. Wherever one is given instead of another, the answer is that there is no such
// thing, and nothing happens.
func TestAnIDOfAnotherKindIsNotFound(t *testing.T) {
	b := builder.New[any]("office")
	work := builder.Task(b, "work", builder.Work[any, any]{})
	b.Path(b.Start(), work, b.End())
	office, err := b.Build()
	require.NoError(t, err)
	waits, _ := function(t, "waits", func(ctx context.Context, _ string) (any, error) { return step.Await[any](ctx, "paid") })
	e := enginetest.New(t, office, waits)
	ids := map[string][16]byte{"case": start(t, e, office, any(1)), "function": start(t, e, waits, "x"), "nothing": [16]byte(uuid.Must(uuid.NewV7()))}
	e.Drain()
	for row, err := range store.AllItems(t.Context(), e, store.ItemFilter{}) {
		require.NoError(t, err)
		ids["item of "+row.Workflow] = row.ID
	}
	for j, err := range store.AllJobs(t.Context(), e, store.JobFilter{}) {
		require.NoError(t, err)
		ids["job"] = j.ID
	}
	require.NoError(t, e.View(t.Context(), func(r store.Reader) error {
		steps, err := r.Steps(t.Context(), store.StepFilter{})
		ids["step"] = steps[0].ID
		return err
	}))
	require.Len(t, ids, 7)
	cases, items, jobs := []string{"case", "function"}, []string{"item of office", "item of waits"}, []string{"job"}
	do := func(c workflow.Command) func(context.Context) error {
		return func(ctx context.Context) error { return enginetest.Do(ctx, e, c) }
	}
	before := journalLength(t, e)
	for name, id := range ids {
		entries := make(map[string]func(context.Context) error)
		if !slices.Contains(cases, name) {
			id := workitem.CaseID(id)
			for kind, c := range map[string]workflow.Command{
				"cancel": workflow.Cancel(id, nil), "add item": workflow.AddItem(id, "work", nil), "send": workflow.Send(id, "paid", 1),
				"restart": workflow.Restart(id), "remove": workflow.Remove(id), "suspend": workflow.Suspend(id), "resume": workflow.Resume(id, nil),
				"move": workflow.Move(id, "start", "end"), "redrive": workflow.Redrive(id), "fork": workflow.Fork(id, 1),
			} {
				entries[kind] = do(c)
			}
			entries["Case"] = func(ctx context.Context) error { _, err := e.Case(ctx, id); return err }
			entries["Why"] = func(ctx context.Context) error { _, err := e.Why(ctx, id); return err }
			entries["RunInfo"] = func(ctx context.Context) error { _, err := e.RunInfo(ctx, id); return err }
			entries["WaitRun"] = func(ctx context.Context) error { _, err := e.WaitRun(ctx, id); return err }
			entries["Wait"] = func(ctx context.Context) error { _, err := e.Wait(ctx, id); return err }
			entries["Watch"] = func(ctx context.Context) error {
				for _, err := range e.Watch(ctx, id, 0) {
					return err
				}
				return nil
			}
			entries["At"] = func(ctx context.Context) error { _, err := store.At(ctx, e, id, store.Moment{Seq: 1}); return err }
			entries["TreeOf"] = func(ctx context.Context) error { _, err := store.TreeOf(ctx, e, id); return err }
			entries["InfoOf"] = func(ctx context.Context) error { _, err := bulk.InfoOf(ctx, e, id); return err }
			entries["Update"] = func(ctx context.Context) error {
				return e.Update(ctx, func(tx *engine.Tx) error { _, err := tx.Do(ctx, workflow.Cancel(id, nil)); return err })
			}
		}
		if !slices.Contains(items, name) {
			id := workitem.ID(id)
			for kind, c := range map[string]workflow.Command{
				"start item": workflow.Act(id, workitem.Start, nil), "complete": workflow.Act(id, workitem.Complete, nil),
				"fail": workflow.Fail(id, nil), "cancel item": workflow.CancelItem(id, nil), "retry": workflow.Retry(id, nil), "skip": workflow.Skip(id, nil),
				"give up": workflow.GiveUp(id),
			} {
				entries[kind] = do(c)
			}
			entries["Item"] = func(ctx context.Context) error { _, err := e.Engine.Item(ctx, id); return err }
			entries["WaitItem"] = func(ctx context.Context) error { _, err := e.WaitItem(ctx, id); return err }
		}
		if !slices.Contains(jobs, name) {
			entries["reclaim"] = do(workflow.Reclaim(workitem.JobID(id)))
			entries["retry incident"] = do(workflow.RetryIncident(workitem.JobID(id)))
		}
		for entry, enter := range entries {
			t.Run(fmt.Sprintf("%s, %s", entry, name), func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				want := engine.ErrNotFound
				if entry == "reclaim" && name != "nothing" && name != "step" { // it has a root, which has no such job any more
					want = engine.ErrLeaseLost
				}
				require.ErrorIs(t, enter(ctx), want)
			})
		}
	}
	require.Equal(t, before, journalLength(t, e), "nothing has happened")
}
