package kernel

import (
	"maps"

	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// newTouched allocates the three sets together if the net is small, as nearly all are.
func newTouched(conditions, tasks int) *touched {
	t := new(touched)
	if max(conditions, tasks) <= 64 {
		t.conditions, t.busy, t.retry = t.words[0:1:1], t.words[1:2:2], t.words[2:3:3]
	} else {
		t.conditions, t.busy, t.retry = net.NewBits(conditions), net.NewBits(tasks), net.NewBits(tasks)
	}
	return t
}

// touchedOf returns the collection of what changed in a case.
func (m *Machine) touchedOf(c *state.Case) *touched {
	if m.touched == nil {
		m.touched = make(map[workitem.CaseID]*touched, 1)
	}
	if m.touched[c.ID] == nil {
		m.touched[c.ID] = newTouched(c.Net.NumConditions(), c.Net.NumTasks())
	}
	return m.touched[c.ID]
}

// touch records that the tokens of a condition changed.
func (m *Machine) touch(c *state.Case, p net.ConditionID) { m.touchedOf(c).conditions.Add(int(p)) }

// touchBusy records that a task became busy or idle.
func (m *Machine) touchBusy(c *state.Case, t net.TaskID) { m.touchedOf(c).busy.Add(int(t)) }

// takeTouched takes the set of what changed in a case so far, for the completion of a task, which evaluates joins again
// after the tasks behind it were tried. Tasks that complete in between collect their own changes. Otherwise their sweep
// would come before tasks that are to be tried first, or would not come at all if one of these ends the case.
func (m *Machine) takeTouched(id workitem.CaseID) *touched {
	what := m.touched[id]
	delete(m.touched, id)
	return what
}

// add merges another set of changes of the same case into this one.
func (t *touched) add(o *touched) {
	o.conditions.Each(t.conditions.Add)
	o.busy.Each(t.busy.Add)
	o.retry.Each(t.retry.Add)
}

// sweep evaluates again, in the order of the definition, every join that may have changed by tokens or busy tasks,
// besides those that are tried or withdrawn directly: or-joins whose slice was touched, at any distance, and tasks that
// a region canceled. It adds what was touched since to the given changes, which may be nil.
//
//	─▶ x ─┬─▶ a ─▶ (p) ─▶ j      j is an or-join, p is marked, q is not. While x may go to b, j waits.
//	      └─▶ b ─▶ (q) ─▶ j      x completes and goes to a: no condition next to j changes, and j may fire.
func (m *Machine) sweep(id workitem.CaseID, what *touched) step {
	return func() error {
		c := m.tree.Case(id)
		if c.State.Final() {
			return nil
		}
		if since := m.takeTouched(id); what == nil {
			what = since
		} else if since != nil {
			what.add(since)
		}
		if what == nil {
			return nil
		}
		again := what.retry
		c.Net.AddWatchers(again, what.conditions, what.busy)
		var steps []step
		again.Each(func(t int) { steps = append(steps, m.try(id, net.TaskID(t))) })
		m.push(steps...)
		return nil
	}
}

// sweepAll pushes a sweep for every touched case, and reports whether there was any. It covers what no completion
// sweeps: a start that consumes tokens and withdraws tasks, a cancellation by a caller. The order is that of the tree
// and not of the map, since the order in which tasks are enabled is part of the journal. Cases that have ended are
// dropped, so that the loop of run terminates.
func (m *Machine) sweepAll() bool {
	if len(m.touched) == 0 {
		return false
	}
	for _, c := range m.tree.InOrder(maps.Keys(m.touched)) {
		m.push(m.sweep(c.ID, nil))
	}
	for id := range m.touched {
		if m.tree.Case(id).State.Final() {
			delete(m.touched, id)
		}
	}
	return true
}
