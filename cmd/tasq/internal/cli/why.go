package cli

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/cmd/tasq/internal/database"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/schedules"
	"github.com/tasq-dev/tasq/engine/why"
	"github.com/tasq-dev/tasq/internal/printable"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

func (a *app) why() *cobra.Command {
	return &cobra.Command{
		Use: "why CASE [TASK]", Short: "explain what a case waits for, or why a task is not enabled",
		Long: paragraph("Explain what a case and its child cases wait for: who or what must act next, since when, until when, and what " +
			"blocks it. These are work items for people, jobs that wait for a worker, retries, timers, events, tasks that have only " +
			"some of their tokens (for an or-join: from where one could still come), and abandoned jobs. With a TASK, show its " +
			"state, and which of its inputs are empty. As JSON, it is one object, with the waits and their kinds in \"waits\"."),
		Example: `  tasq why 0197a3c4-5d6e-7f80-9a1b-2c3d4e5f6071
  tasq why 0197a3c4-5d6e-7f80-9a1b-2c3d4e5f6071 -o json | jq -r '.waits[] | select(.kind == "incident") | .text'
  tasq why 0197a3c4-5d6e-7f80-9a1b-2c3d4e5f6071 publish`,
		Args: between(1, "the id or business key of a CASE", "the name of a TASK"),
		RunE: a.run(func(ctx context.Context, args []string) error {
			if err := checkID(caseIDs, args[0]); err != nil {
				return err
			}
			return a.explain(ctx, args[0], func(r store.Reader, c *state.Case, answer *why.Answer) error {
				switch {
				case len(args) == 2:
					return a.whyTask(c, answer, args[1])
				case a.output == "json":
					return a.object(answer)
				}
				return errors.Join(a.sayWrapped("%s", answer), a.whySchedule(ctx, r, c), a.showRestarted(answer.RestartedAs))
			})
		}),
	}
}

// explain reads what a case waits for. For limits, it also asks the process that owns the database: only that knows the
// usage of limits that are counted in memory.
func (a *app) explain(ctx context.Context, word string, show func(store.Reader, *state.Case, *why.Answer) error) error {
	db, err := a.database()
	if err != nil {
		return err
	}
	return a.withStore(ctx, func(s store.Store) error {
		var here why.Here
		for asked := false; ; asked = true {
			var root workitem.CaseID
			err := s.View(ctx, func(r store.Reader) error {
				c, err := caseByWord(ctx, r, word)
				if err != nil {
					return err
				}
				if !asked {
					if here, err = a.here(ctx, r); err != nil {
						return err
					}
				}
				answer, err := why.Read(ctx, r, c.ID, now(), here)
				if err != nil {
					return err
				}
				if !asked && answer.Limited() {
					root = c.Root
					return nil
				}
				return show(r, c, answer)
			})
			if err != nil || root.IsZero() {
				return err
			}
			here.Limits, here.KeyPaused = a.limitWaits(ctx, db, root)
		}
	})
}

// limitWaits asks the process that owns the database which limits the jobs of a root case wait for, and whether their
// keys are paused; nil if it does not answer, or does not know them.
func (a *app) limitWaits(ctx context.Context, db database.Database, root workitem.CaseID) (
	limits func(workitem.JobID, string) []why.Limit, paused func(string, workitem.JobID) (string, bool),
) {
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	command, err := json.Marshal(workflow.LimitWaits(root))
	if err != nil {
		return nil, nil
	}
	answer, err := db.Inbox().Post(limited, command)
	if err != nil {
		return nil, nil
	}
	result, err := engine.RemoteAnswer(answer)
	if err != nil || len(result.Waits) == 0 {
		return nil, nil
	}
	limits = func(job workitem.JobID, step string) (list []why.Limit) {
		for _, w := range result.Waits {
			if w.Job == job && w.Step == step && w.QueueKey == "" {
				list = append(list, why.Limit{Limit: w.Limit, Key: w.Key, Any: w.Any, N: w.N, Free: w.Free, Ahead: w.Ahead, Text: w.Text, HeldBy: w.HeldBy,
					HeldOutside: w.HeldOutside, AheadOutside: w.AheadOutside})
			}
		}
		return list
	}
	paused = func(_ string, job workitem.JobID) (string, bool) {
		for _, w := range result.Waits {
			if w.Job == job && w.QueueKey != "" {
				return w.QueueKey, true
			}
		}
		return "", false
	}
	return limits, paused
}

// whySchedule explains the case of a schedule.
func (a *app) whySchedule(ctx context.Context, r store.Reader, c *state.Case) error {
	s, ok := schedules.Of(activities.CaseInfo{Workflow: c.Workflow, Input: c.Input})
	if !ok {
		return nil
	}
	i := &schedules.Info{State: *s, Case: c.ID, Since: c.Created, Ended: c.State.Final()}
	if i.Ended {
		return a.say("it was the case of schedule %s, up to a tick or a command; tasq schedules %s shows the present one",
			s.Schedule.Name, printable.Arguments(s.Schedule.Name))
	}
	return a.showSchedule(ctx, r, i)
}

// whyRow is the JSON form of the explanation of a task.
type whyRow struct {
	Case      workitem.CaseID `json:"case"`
	CaseState string          `json:"case_state"`
	why.Task
	Pending []why.Wait `json:"pending,omitempty"` // of an active task: what it waits for
}

// whyTask explains one task.
func (a *app) whyTask(c *state.Case, answer *why.Answer, name string) error {
	if _, err := findTask(c, name); err != nil {
		return err
	}
	task, _ := answer.Task(name)
	row := whyRow{Case: c.ID, CaseState: answer.Word, Task: task}
	for _, w := range answer.Of(name) {
		if w.Kind == why.Join {
			continue // it is in the text of the task
		}
		row.Pending = append(row.Pending, w)
		row.Text += "\n  " + strings.ReplaceAll(w.Text, "\n", "\n  ")
	}
	if a.output == "json" {
		return a.object(row)
	}
	return a.sayWrapped("%s (%s): %s", row.Task.Task, row.State, row.Text)
}
