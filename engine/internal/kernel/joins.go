package kernel

import (
	"maps"

	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// joins collects, by case, what may have changed joins that nothing else evaluates: or-joins whose slice was touched, at
// any distance, and tasks that a region canceled. Joins next to a change are tried or withdrawn directly.
type joins struct {
	cases map[workitem.CaseID]*touched // nil until something is touched
}

// touched collects what has changed in a case since its joins were last evaluated. It has conditions and tasks and not
// joins: which joins they affect is determined once, by the sweep. So a command that empties twenty conditions of one
// slice evaluates the join behind it once.
type touched struct {
	conditions net.Bits
	busy       net.Bits // tasks that were started or ended
	retry      net.Bits // tasks that a region canceled, and whose join may still be satisfied

	words [3]uint64 // memory for the three sets, if each fits into one word
}

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

// of returns the collection of a case.
func (j *joins) of(c *state.Case) *touched {
	if j.cases == nil {
		j.cases = make(map[workitem.CaseID]*touched, 1)
	}
	if j.cases[c.ID] == nil {
		j.cases[c.ID] = newTouched(c.Net.NumConditions(), c.Net.NumTasks())
	}
	return j.cases[c.ID]
}

// touch records that the tokens of a condition changed.
func (j *joins) touch(c *state.Case, p net.ConditionID) { j.of(c).conditions.Add(int(p)) }

// touchBusy records that a task became busy or idle.
func (j *joins) touchBusy(c *state.Case, t net.TaskID) { j.of(c).busy.Add(int(t)) }

// retry records that a region cancels a task, whose join may still be satisfied.
func (j *joins) retry(c *state.Case, t net.TaskID) { j.of(c).retry.Add(int(t)) }

// take takes the set of what changed in a case so far, nil if nothing did. The completion of a task takes it, and
// evaluates joins again after the tasks behind it were tried. Tasks that complete in between collect their own changes.
// Otherwise their sweep would come before tasks that are to be tried first, or would not come at all if one of these
// ends the case.
func (j *joins) take(id workitem.CaseID) *touched {
	what := j.cases[id]
	delete(j.cases, id)
	return what
}

// takeWith is take, with what a completion has taken before; either may be nil.
func (j *joins) takeWith(before *touched, id workitem.CaseID) *touched {
	since := j.take(id)
	if before == nil {
		return since
	}
	if since != nil {
		since.conditions.Each(before.conditions.Add)
		since.busy.Each(before.busy.Add)
		since.retry.Each(before.retry.Add)
	}
	return before
}

// drop forgets what changed in a case that has ended.
func (j *joins) drop(id workitem.CaseID) { delete(j.cases, id) }

// pending returns the touched cases. The order is that of the tree and not of the map, since the order in which tasks
// are enabled is part of the journal. Cases that have ended are dropped: nothing takes what changed in them.
func (j *joins) pending(tree *state.Tree) []*state.Case {
	if len(j.cases) == 0 {
		return nil
	}
	cases := tree.InOrder(maps.Keys(j.cases))
	for _, c := range cases {
		if c.State.Final() {
			j.drop(c.ID)
		}
	}
	return cases
}

// reset forgets everything, and keeps the memory.
func (j *joins) reset() { clear(j.cases) }

// affected returns the tasks whose joins may have changed, in the order of the definition. It uses up the set.
func (t *touched) affected(n *net.Net) net.Bits {
	n.AddWatchers(t.retry, t.conditions, t.busy)
	return t.retry
}
