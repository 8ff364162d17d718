package engine

import (
	"github.com/tasq-dev/tasq/engine/internal/commit"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// What depends on an incident waits until a person decides. If nothing else of the case is in progress, the run is
// stuck: it does not end without that person, so a wait for its result ends with that information.

// Three examples, with an incident of task a and another task b:
//
//	b has a pending job, a timer, a wait      not stuck: it may end the case, or cancel a
//	b has an item that a person can start     not stuck: that person can
//	b is completed                            stuck: only a decision about a continues the case
//
// An undecided or-join alone does not make a run stuck: it is evaluated again after each change, and tasq doctor
// reports it.

// stuckBy returns the first incident of a run in which nothing else is in progress; nil if there is none.
func (e *Engine) stuckBy(tx *commit.Tx, id workitem.CaseID) (first *state.Job) {
	u, err := tx.OpenCase(id)
	if err != nil || u.Tree.Ended() {
		return nil
	}
	moves := false
	u.Tree.Each(func(c *state.Case) {
		d := e.definitions.Definition(c.Fingerprint)
		if moves = moves || d == nil; moves || c.State.Final() {
			return
		}
		for j := range c.Jobs.All() {
			if moves = moves || j.Kind != state.JobIncident; moves {
				return
			}
			if first == nil && j.Name != state.IncidentOrJoin {
				first = j
			}
		}
		for it := range c.Items.All() {
			if t, ok := c.Net.TaskByName(it.Task); it.State.Live() && (!ok || it.State != workitem.Started || !d.Tasks[t].HasWorker()) {
				moves = true // a person can start or complete it
				return
			}
		}
	})
	if moves {
		return nil
	}
	return first
}

// stuck describes a run as stuck by an incident.
func stuck(info *workflow.RunInfo, by *state.Job) {
	info.State, info.Stuck, info.Failure = workflow.RunStuck, by.Item, by.Failure
}
