package kernel

import (
	"maps"

	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// newTouched keeps the three sets in one allocation if the net is small, as nearly all are.
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

// touch notes that the tokens of a condition changed.
func (m *Machine) touch(c *state.Case, p net.ConditionID) { m.touchedOf(c).conditions.Add(int(p)) }

// touchBusy notes that a task became busy or idle.
func (m *Machine) touchBusy(c *state.Case, t net.TaskID) { m.touchedOf(c).busy.Add(int(t)) }

// takeTouched takes what changed in a case so far: the completion of a task, which looks again at its joins when the
// tasks behind it have been tried. What runs to its end on the way collects its own changes, so that it does not get
// ahead of tasks whose turn comes later, or, when it ends the case, never.
func (m *Machine) takeTouched(id workitem.CaseID) *touched {
	what := m.touched[id]
	delete(m.touched, id)
	return what
}

// add puts another change of the same case in.
func (t *touched) add(o *touched) {
	o.conditions.Each(t.conditions.Add)
	o.busy.Each(t.busy.Add)
	o.retry.Each(t.retry.Add)
}

// sweep looks again, in the order of their definition, at every join that a change of tokens or of busy tasks may have
// decided otherwise, beyond those that are tried or withdrawn on the spot: the or-joins whose slice was touched,
// however far away (a remote xor-split that sends the awaited token elsewhere is such a change), and the tasks that a
// region canceled. To the given change, which may be nil, comes what was touched since.
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

// sweepAll pushes a sweep for every touched case, and reports whether there was any. It is for what no completion
// sweeps: a start that consumes and withdraws, a cancellation from outside. Cases are swept in the order of the tree
// and not of the map, since the order of enablings is part of the journal. Those that have ended are dropped, so that
// the loop of run ends.
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
