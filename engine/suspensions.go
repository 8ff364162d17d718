package engine

import (
	"sync/atomic"

	"github.com/tasq-dev/tasq/engine/internal/commit"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
)

// suspensions has the suspended workflows, by name. The writer reads it at each creation of a case, and the controls
// replace it as a whole, so the writer needs no lock: the lock of the controls is held while settings are applied to the
// dispatcher, and a case must not wait for that. The zero value has none, which costs a case one load.
//
// A workflow is suspended by a setting, and each new case records it as its own suspension. So what is known of
// suspended cases applies to it (why, listings, the resumption of one case), and the setting can be removed without
// starting everything at once:
//
//	SuspendWorkflow ─▶ setting ─▶ each new case: CaseOpened, CaseSuspended (same entry)
//	ResumeWorkflow  ─▶ no setting; new cases begin; those that are suspended wait for Resume, one by one
type suspensions struct {
	all atomic.Pointer[map[string]*state.Suspension]

	// changing is set while a request changes a suspension, until its commit has succeeded or failed: the stored setting
	// decides then, as the transaction of the next case sees it. If all were changed at once, a case that is created before the
	// next reading would stay suspended although the request failed.
	changing atomic.Bool
}

// set replaces all suspensions, as they are stored while no request changes one.
func (s *suspensions) set(decided map[string]store.Decision) {
	if len(decided) == 0 {
		s.all.Store(nil)
	} else {
		all := make(map[string]*state.Suspension, len(decided))
		for name, d := range decided {
			all[name] = suspensionBy(d)
		}
		s.all.Store(&all)
	}
	s.changing.Store(false)
}

func suspensionBy(d store.Decision) *state.Suspension {
	return &state.Suspension{At: d.At, By: d.By, Reason: d.Reason}
}

// Suspension implements [commit.Suspensions].
func (c *controls) Suspension(tx *commit.Tx, workflow string) (*state.Suspension, error) {
	if c.suspended.changing.Load() {
		by, err := stored[*store.Decision](tx.Context(), tx.Store(), store.WorkflowSetting+workflow, nil)
		if err != nil || by == nil {
			return nil, err
		}
		return suspensionBy(*by), nil
	}
	if all := c.suspended.all.Load(); all != nil {
		return (*all)[workflow], nil
	}
	return nil, nil
}

// setWorkflow suspends or resumes a workflow in the transaction of the command. Other engines read it at their next
// Tick.
func (c *controls) setWorkflow(tx *commit.Tx, cmd *workflow.Command) error {
	name := store.WorkflowSetting + cmd.Workflow
	c.change(func() { c.suspended.changing.Store(true) })
	if cmd.Kind == workflow.KindResumeWorkflow {
		return tx.Store().Set(tx.Context(), name, nil)
	}
	by := decided(tx, cmd)
	old, err := stored[*store.Decision](tx.Context(), tx.Store(), name, nil)
	if err != nil {
		return err
	}
	if old != nil {
		by = old.Again(by)
	}
	return setJSON(tx.Context(), tx.Store(), name, by)
}
