package engine

import (
	"context"

	"github.com/tasq-dev/tasq/engine/internal/commit"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// A job that takes its process down too often is given up, and its work item stays started until a person decides. If nothing else
// is left to do of its case, the run is stuck: it does not end without that person, so a wait for its result ends and says so.

// abandoned finds a started item of a run of which nothing is under way any more, though the item's work is a function's; zero
// if there is none. A person may still be doing it: whether its job was given up, the store knows, see [Engine.markStuck].
func (e *Engine) abandoned(tx *commit.Tx, id workitem.CaseID) (found workitem.ID) {
	u, err := tx.OpenCase(id)
	if err != nil || u.Tree.Ended() {
		return found
	}
	moves := false
	u.Tree.Each(func(c *state.Case) {
		d := e.definitions.Definition(c.Fingerprint)
		moves = moves || d == nil || c.Jobs.Len() > 0
		if moves {
			return
		}
		for it := range c.Items.All() {
			if !it.State.Live() {
				continue
			}
			t, ok := c.Net.TaskByName(it.Task)
			if moves = !ok || it.State != workitem.Started || d.Tasks[t].Run == nil; moves {
				return // a person can go on with it
			}
			if found.IsZero() {
				found = it.ID
			}
		}
	})
	if moves {
		return workitem.ID{}
	}
	return found
}

// markStuck describes a run as stuck if the latest job of the item was given up.
func (e *Engine) markStuck(ctx context.Context, info *workflow.RunInfo, item workitem.ID) error {
	if item.IsZero() {
		return nil
	}
	return e.View(ctx, func(r store.Reader) error {
		jobs, err := r.Jobs(ctx, store.JobFilter{Item: item, Kind: state.JobRun, Page: store.Page{Desc: true, Limit: 1}})
		if err == nil && len(jobs) == 1 && jobs[0].State == state.JobFailed {
			info.State, info.Stuck, info.Failure = workflow.RunStuck, item, jobs[0].Failure
		}
		return err
	})
}
