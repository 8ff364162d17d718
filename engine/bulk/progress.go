package bulk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// Paused is the state of an action whose case is suspended: it stops before its next target.
const Paused = "paused"

// Info is an action with its progress.
type Info struct {
	ID       workitem.CaseID `json:"id"` // of its case
	Kind     workflow.Kind   `json:"kind"`
	Do       workitem.Action `json:"action,omitzero"` // of the kind item
	State    string          `json:"state"`           // that of its case, or [Paused]
	Actor    string          `json:"actor,omitempty"`
	Reason   string          `json:"reason,omitempty"`
	Started  time.Time       `json:"started"`
	Ended    time.Time       `json:"ended,omitzero"`     // zero while it is not over
	Targets  int             `json:"targets"`            // how many it has
	Done     int             `json:"done"`               // targets whose command has succeeded so far
	Refused  int             `json:"refused"`            // targets whose command was refused so far
	Refusals []Refusal       `json:"refusals,omitempty"` // the refusals, in the order of the targets; List leaves them out
}

// Answered returns how many targets have an answer, also a refusal.
func (i *Info) Answered() int { return i.Done + i.Refused }

// Command returns what the action does in words, as "retry" or "item reset".
func (i *Info) Command() string {
	if i.Do == workitem.NoAction {
		return string(i.Kind)
	}
	return fmt.Sprintf("%s %s", i.Kind, i.Do)
}

// InfoOf returns the action of a case. The error wraps store.ErrNotFound if there is no such case, or if it is no bulk action.
func InfoOf(ctx context.Context, v store.Viewer, id workitem.CaseID) (i *Info, err error) {
	err = v.View(ctx, func(r store.Reader) error {
		found, err := r.Cases(ctx, store.CaseFilter{ID: id})
		switch {
		case err != nil:
			return err
		case len(found) == 0:
			return fmt.Errorf("case %s: %w", id, store.ErrNotFound)
		case found[0].Workflow != Name:
			return fmt.Errorf("case %s is of workflow %s, and no bulk action: %w", id, found[0].Workflow, store.ErrNotFound)
		}
		i, err = infoOf(ctx, r, found[0], true)
		return err
	})
	return i, err
}

// List returns a page of the actions, without the single refusals.
func List(ctx context.Context, r store.Reader, p store.Page) ([]*Info, error) {
	found, err := r.Cases(ctx, store.CaseFilter{Page: p, Workflow: Name, RootOnly: true})
	if err != nil {
		return nil, err
	}
	var all []*Info
	for _, c := range found {
		i, err := infoOf(ctx, r, c, false)
		if err != nil {
			return nil, err
		}
		i.Refusals = nil
		all = append(all, i)
	}
	return all, nil
}

// infoOf returns an action, with all refusals if they are wanted.
func infoOf(ctx context.Context, r store.Reader, c *state.Case, refusals bool) (*Info, error) {
	var in Input
	if err := json.Unmarshal(c.Input, &in); err != nil {
		return nil, fmt.Errorf("the input of the bulk action %s: %w", c.ID, err)
	}
	i := &Info{ID: c.ID, Kind: in.Kind, Do: in.Do, State: c.State.String(), Actor: in.Actor, Reason: in.Reason, Started: c.Created, Ended: c.Ended, Targets: len(in.Targets)}
	if c.Suspended != nil && !c.State.Final() {
		i.State = Paused
	}
	if c.State == state.CaseCompleted {
		var result Result
		if err := json.Unmarshal(c.Output, &result); err != nil {
			return nil, fmt.Errorf("the result of the bulk action %s: %w", c.ID, err)
		}
		i.Done, i.Refused, i.Refusals = result.Done, len(result.Refused)+result.More, result.Refused
		if result.More == 0 || !refusals {
			return i, nil
		}
		i.Done, i.Refusals = 0, nil
	}
	answers, err := answersOf(ctx, r, c.ID)
	if err != nil {
		return nil, err
	}
	cut := c.State.Final() // the command of the first target without an answer may have succeeded as the action was canceled
	for _, target := range in.Targets {
		switch o, answered := answers[target]; {
		case !answered && cut:
			cut = false
			done, err := succeeded(ctx, r, in.Kind, c.ID, target)
			if err != nil {
				return nil, err
			}
			if done {
				i.Done++
			}
		case !answered:
		case o.Code == "":
			i.Done++
		default:
			i.Refusals = append(i.Refusals, Refusal{target, o.Code, o.Error})
		}
	}
	i.Refused = len(i.Refusals)
	return i, nil
}

// succeeded reports whether the command of an action for a target has been executed, by its idempotency key. One that was refused leaves no trace. A removal removes
// its key, too, so it has been executed if there is no such case.
func succeeded(ctx context.Context, r store.Reader, kind workflow.Kind, action workitem.CaseID, target string) (bool, error) {
	if kind == workflow.KindRemove {
		id, err := workitem.ParseID(target)
		if err != nil {
			return false, err
		}
		found, err := r.Cases(ctx, store.CaseFilter{ID: workitem.CaseID(id)})
		return err == nil && len(found) == 0, err
	}
	_, err := r.Answered(ctx, keyOf(action, target))
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// answersOf returns the recorded outcome of each target, by its id. The next attempt of the job takes over the steps of the one before,
// so there can be several steps of one target.
func answersOf(ctx context.Context, r store.Reader, id workitem.CaseID) (map[string]outcome, error) {
	answers := make(map[string]outcome)
	f := store.StepFilter{Case: id, States: []workitem.StepState{workitem.StepDone}}
	for {
		steps, err := r.Steps(ctx, f)
		if err != nil {
			return nil, err
		}
		for _, s := range steps {
			var o outcome
			if err := json.Unmarshal(s.Result, &o); err != nil {
				return nil, fmt.Errorf("the outcome of target %s: %w", s.Name, err)
			}
			answers[s.Name], f.After = o, s.ID.String()
		}
		if len(steps) < store.DefaultLimit {
			return answers, nil
		}
	}
}

// Words are the commands on an action, see [Command].
var Words = []string{"pause", "resume", "cancel"}

// Command returns the command that pauses, resumes or cancels the action of a case, by its word. The error wraps workflow.ErrBadCommand if there is
// no such word.
func Command(id workitem.CaseID, word string, opts ...workflow.Option) (workflow.Command, error) {
	switch word {
	case "pause":
		return workflow.Suspend(id, opts...), nil
	case "resume":
		return workflow.Resume(id, nil, opts...), nil
	case "cancel":
		return workflow.Cancel(id, nil, opts...), nil
	}
	return workflow.Command{}, fmt.Errorf("there is no command %q on a bulk action; there are %s: %w", word, strings.Join(Words, ", "), workflow.ErrBadCommand)
}
