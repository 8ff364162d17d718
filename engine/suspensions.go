package engine

import (
	"maps"
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
}

func (s *suspensions) set(decided map[string]store.Decision) {
	if len(decided) == 0 {
		s.all.Store(nil)
		return
	}
	all := make(map[string]*state.Suspension, len(decided))
	for name, d := range decided {
		all[name] = &state.Suspension{At: d.At, By: d.By, Reason: d.Reason}
	}
	s.all.Store(&all)
}

// change sets the suspension of one workflow; nil ends it. The map is copied, since the writer may be reading it.
func (s *suspensions) change(name string, to *state.Suspension) {
	all := make(map[string]*state.Suspension)
	if old := s.all.Load(); old != nil {
		maps.Copy(all, *old)
	}
	if all[name] = to; to == nil {
		delete(all, name)
	}
	s.all.Store(&all)
}

// Suspension implements [kernel.Suspensions].
func (c *controls) Suspension(workflow string) *state.Suspension {
	if all := c.suspended.all.Load(); all != nil {
		return (*all)[workflow]
	}
	return nil
}

// setWorkflow suspends or resumes a workflow in the transaction of the command. This engine applies it at once, see
// change; other engines read it at their next Tick.
func (c *controls) setWorkflow(tx *commit.Tx, cmd *workflow.Command) error {
	name := store.WorkflowSetting + cmd.Workflow
	if cmd.Kind == workflow.KindResumeWorkflow {
		err := tx.Store().Set(tx.Context(), name, nil)
		c.change(func() { c.suspended.change(cmd.Workflow, nil) })
		return err
	}
	by := decided(tx, cmd)
	if err := setJSON(tx.Context(), tx.Store(), name, by); err != nil {
		return err
	}
	c.change(func() { c.suspended.change(cmd.Workflow, &state.Suspension{At: by.At, By: by.By, Reason: by.Reason}) })
	return nil
}
