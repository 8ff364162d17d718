package dispatch

import (
	"errors"
	"math"
	"slices"

	"github.com/tasq-dev/tasq/engine/internal/commit"
	"github.com/tasq-dev/tasq/engine/internal/quota"
	"github.com/tasq-dev/tasq/engine/internal/registry"
	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// A case that holds slots over several tasks acquires them with the claim of a job of the first task, and keeps them
// over restarts. Only the state of the case decides whether a hold has ended:
//
//	the task that began it   withdrawn, canceled or failed in that activation        ended
//	the task that ends it    completed, canceled or failed since                     ended
//	the case                 ended                                                   ended

// caseHold is what a case has to hold before a job of it can start.
type caseHold struct {
	quota.Hold
	use *workflow.Use
}

// holdsOf returns what a case has to hold before a job of a task can start.
func holdsOf(def *workflow.Definition, c *state.Case, t net.TaskID) (list []caseHold) {
	for i := range def.Holds {
		h := &def.Holds[i]
		if h.From != t {
			continue
		}
		list = append(list, caseHold{use: &h.Use, Hold: quota.Hold{
			Root: c.Root, Case: c.ID, Task: def.Net.TaskName(t), Activation: c.Tasks[t].Generation, After: activationsOver(&c.Tasks[h.To]),
		}})
	}
	return list
}

// activationsOver returns how many activations of a task have ended.
func activationsOver(t *state.Task) int {
	if t.State.Active() {
		return t.Generation - 1
	}
	return t.Generation
}

// caseHolds ends the holds of cases as their tasks and cases end. The lock of the scheduler guards it.
type caseHolds struct {
	names       map[string]bool // the limits that cases hold
	limits      *limitGate
	definitions *registry.Registry
}

// holder returns a case and its definition if the definition has holds; nil otherwise.
func (l *caseHolds) holder(tree *state.Tree, id workitem.CaseID) (*state.Case, *workflow.Definition) {
	if len(l.names) == 0 {
		return nil, nil
	}
	c := tree.Case(id)
	if c == nil {
		return nil, nil
	}
	def := l.definitions.Definition(c.Fingerprint)
	if def == nil || len(def.Holds) == 0 {
		return nil, nil
	}
	return c, def
}

// taskMoved ends the holds that end with an activation.
func (l *caseHolds) taskMoved(tree *state.Tree, e *state.TaskMoved) {
	if e.To == state.TaskEnabled || e.To == state.TaskStarted {
		return
	}
	c, def := l.holder(tree, e.Case)
	if c == nil {
		return
	}
	for i := range def.Holds {
		h := &def.Holds[i]
		task := def.Net.TaskName(h.From)
		known, have := l.limits.HoldOf(h.Limit.Name, c.ID, task)
		switch {
		case h.To == e.Task && e.To != state.TaskDisabled:
			if !have {
				known = quota.Hold{Root: c.Root, Case: c.ID, Task: task, Activation: activationsOver(&c.Tasks[h.From])}
			}
			l.end(c, h, quota.End{Hold: known})
		case h.From == e.Task && e.To != state.TaskCompleted:
			of := quota.Hold{Root: c.Root, Case: c.ID, Task: task, Activation: e.Generation}
			l.end(c, h, quota.End{Hold: of, Only: true})
		}
	}
}

// caseEnded ends all holds of a case.
func (l *caseHolds) caseEnded(tree *state.Tree, id workitem.CaseID) {
	c, def := l.holder(tree, id)
	if c == nil {
		return
	}
	for i := range def.Holds {
		h := &def.Holds[i]
		of := quota.Hold{Root: c.Root, Case: c.ID, Task: def.Net.TaskName(h.From), Activation: math.MaxInt}
		l.end(c, h, quota.End{Hold: of})
	}
}

// end ends a hold. The row of the limit changes later, by an order to the store; until then the slots are not free.
func (l *caseHolds) end(c *state.Case, h *workflow.Hold, e quota.End) {
	if key, ok := l.keyOf(c, h, e.Task); ok {
		l.limits.End(h.Limit.Name, key, e)
	}
}

// keyOf returns the key of the limit that a case holds, if the limit has keys. For a hold that another engine began, it
// is computed from the input of the first task. If that no longer exists, the hold stays in the row until a waiting
// engine checks it.
func (l *caseHolds) keyOf(c *state.Case, h *workflow.Hold, task string) (key string, ok bool) {
	if _, known := l.limits.HoldOf(h.Limit.Name, c.ID, task); known {
		return "", true
	}
	if c.Tasks[h.From].Generation == 0 || h.Key == nil {
		return "", c.Tasks[h.From].Generation > 0
	}
	for it := range c.Items.All() {
		if it.Task == task {
			_, k, err := h.Of(it.Input)
			key, ok = k, err == nil
		}
	}
	return key, ok
}

// checkHolds finds holds that have ended but are still in the row, since their engine ended before it could remove
// them. The lock is held.
func (s *scheduler) checkHolds(name, key string, holds []quota.Hold) {
	if s.stopping {
		return
	}
	s.d.o.Active(1)
	go func() {
		defer s.d.o.Active(-1)
		var ended []quota.Hold
		for i := range holds {
			if over, err := s.d.holdEnded(name, &holds[i]); err == nil && over {
				ended = append(ended, holds[i])
			}
		}
		s.mu.Lock()
		for i := range ended {
			s.limits.End(name, key, quota.End{Hold: ended[i]})
		}
		s.mu.Unlock()
		s.dispatch()
	}()
}

// checkHoldsOf ends the holds of a job that did not start, if they are over. A job that is canceled while it waits for a worker
// enters the line of the limit afterwards, when a worker is free; then its case gets a hold that no change will end. The lock is held.
func (s *scheduler) checkHoldsOf(t *ticket) {
	if t == nil {
		return
	}
	for i := range t.Holds {
		take := &t.Takes[i]
		if h, known := s.limits.HoldOf(take.Limit, t.Holds[i].Case, t.Holds[i].Task); known {
			s.checkHolds(take.Limit, take.Key, []quota.Hold{h})
		}
	}
}

// unusedHolds returns the indices of the holds of a job that its case got for this job alone: nothing of the first task has begun, and no
// earlier activation of it can have begun the hold.
func (d *Dispatcher) unusedHolds(tree *state.Tree, t *ticket) (list []int) {
	if t == nil {
		return nil
	}
	for i := range t.Holds {
		h := t.Holds[i]
		c := tree.Case(h.Case)
		if c == nil {
			continue
		}
		def := d.o.Definitions.Definition(c.Fingerprint)
		if def == nil {
			continue
		}
		at := slices.IndexFunc(def.Holds, func(of workflow.Hold) bool {
			return of.Limit.Name == t.Takes[i].Limit && def.Net.TaskName(of.From) == h.Task
		})
		if at < 0 {
			continue
		}
		from, of := &c.Tasks[def.Holds[at].From], &def.Holds[at]
		if from.State == state.TaskEnabled && from.Generation == h.Activation && (from.Generation == 1 || of.From == of.To) {
			list = append(list, i)
		}
	}
	return list
}

// endUnused ends holds of a job of a suspended case, unless the case was resumed since: its job may have begun.
func (s *scheduler) endUnused(n entry, unused []int) {
	s.mu.Lock()
	if _, parked := s.parked[n.root][n.job]; parked && !s.stopping {
		for _, i := range unused {
			take := &n.ticket.Takes[i]
			s.limits.End(take.Limit, take.Key, quota.End{Hold: n.ticket.Holds[i], Only: true})
		}
	}
	s.mu.Unlock()
	s.dispatch()
}

// holdEnded reports whether a hold has ended. Without the definition of its workflow, this is only known if the case
// has ended.
func (d *Dispatcher) holdEnded(name string, h *quota.Hold) (over bool, err error) {
	err = d.o.Writer.Submit(d.o.Context, &commit.Request{Reads: true, Run: func(tx *commit.Tx) error {
		u, err := tx.Open(h.Root)
		if errors.Is(err, store.ErrNotFound) { // only an ended case can be removed
			over = true
			return nil
		}
		if err != nil {
			return err
		}
		over = d.holdIsOver(u.Tree.Case(h.Case), name, h)
		return nil
	}})
	return over, err
}

func (d *Dispatcher) holdIsOver(c *state.Case, name string, h *quota.Hold) bool {
	if c == nil || c.State.Final() {
		return true
	}
	def := d.o.Definitions.Definition(c.Fingerprint)
	if def == nil {
		return false
	}
	for i := range def.Holds {
		from, to := def.Holds[i].From, &c.Tasks[def.Holds[i].To]
		if def.Holds[i].Limit.Name != name || def.Net.TaskName(from) != h.Task {
			continue
		}
		return h.Over(c, &c.Tasks[from], to)
	}
	return true // the current definition has no such hold
}
