package command

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/tasq-dev/tasq/engine/internal/commit"
	"github.com/tasq-dev/tasq/engine/internal/kernel"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// restart starts a new case with the input and options of one that has ended. It runs on the definition that the
// command names, which may be a newer version.
func (x *Executor) restart(tx *commit.Tx, c *workflow.Command, o commit.Operation) (workflow.Result, error) {
	var none workflow.Result
	u, err := x.openRoot(tx, c)
	if err != nil {
		return none, err
	}
	old := u.Tree.Case(c.Case)
	if old == nil || !old.Parent.IsZero() {
		return none, fmt.Errorf("case %s cannot be restarted: it is no root case: %w", c.Case, store.ErrNotFound)
	}
	if !old.State.Final() {
		return none, fmt.Errorf("case %s %w: it is %s; cancel it first", c.Case, kernel.ErrUnfinished, old.State)
	}
	if err := notRestarted(tx, c); err != nil {
		return none, err
	}
	again := *c
	again.Workflow, again.Payload = old.Workflow, old.Input
	d, err := x.definition(&again)
	if err != nil {
		return none, err
	}
	steps, err := x.stepsOf(tx, old, c.FromStep)
	if err != nil {
		return none, err
	}
	options, queued, err := restartOptions(old, c.Trace)
	if err != nil {
		return none, err
	}
	if queued {
		again.IfTaken = workflow.Queued
	}
	fresh := &state.Case{Options: options, Priority: old.Priority, Predecessor: old.ID, Key: old.Key, Labels: old.Labels,
		Unique: old.Unique && !wasDebounced(old)}
	return x.begin(tx, fresh, d, &again, o, steps)
}

// notRestarted returns an error for a case that was restarted or forked already, if the command says that it is refused then.
func notRestarted(tx *commit.Tx, c *workflow.Command) error {
	if !c.UnlessRestarted {
		return nil
	}
	all, err := tx.Successors(c.Case)
	if err != nil || len(all) == 0 {
		return err
	}
	return fmt.Errorf("case %s %w, as case %s; act on that one, or restart this one without the condition", c.Case, workflow.ErrRestarted, all[len(all)-1])
}

// wasDebounced reports whether a case was debounced. A restart of it does not hold the business key, and begins at
// once.
func wasDebounced(old *state.Case) bool {
	o, err := workflow.OptionsOf(kernel.Info(old))
	return err == nil && !o.Debounced.IsZero()
}

// restartOptions returns the options of the new case: those of the old one, the work that it continues, and the trace
// of the restart. It reports whether the case is queued.
func restartOptions(old *state.Case, trace string) (raw json.RawMessage, queued bool, err error) {
	o, err := workflow.OptionsOf(kernel.Info(old))
	if err != nil {
		return old.Options, false, err
	}
	o.Trace, o.Debounced = trace, time.Time{}
	if old.IsFunction() && o.Work.IsZero() {
		o.Work = kernel.FirstItem(old)
	}
	raw, err = o.Encode()
	return raw, o.Queued, err
}

// stepsOf returns the steps that the new case takes over: the completed steps of the last job of the old one or, if
// from is not empty, those before the step with that name.
func (x *Executor) stepsOf(tx *commit.Tx, old *state.Case, from string) ([]*workitem.Step, error) {
	var recorded []*workitem.Step
	if old.IsFunction() {
		var last *workitem.Item
		for it := range old.Items.All() {
			last = it
		}
		if last != nil {
			var err error
			if recorded, err = tx.Store().Steps(tx.Context(), last.ID); err != nil {
				return nil, err
			}
		}
	}
	if from == "" {
		return kernel.Finished(recorded), nil
	}
	var cut *workitem.Step
	var names []string
	for _, s := range recorded {
		if s.Name == from {
			cut = s
		}
		if !slices.Contains(names, s.Name) {
			names = append(names, s.Name)
		}
	}
	if cut == nil {
		if len(names) == 0 {
			return nil, fmt.Errorf("step %q of case %s (%s): %w; it has no completed steps", from, old.ID, old.Workflow, store.ErrNotFound)
		}
		return nil, fmt.Errorf("step %q of case %s (%s): %w; its steps are %q", from, old.ID, old.Workflow, store.ErrNotFound, names)
	}
	var kept []*workitem.Step
	for _, s := range recorded {
		if s == cut {
			break
		}
		if s.Job == cut.Job {
			kept = append(kept, s)
		}
	}
	return kernel.Finished(kept), nil
}
