package builder

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/tasq-dev/tasq/limit"
	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/net/verify"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/workflow"
)

// holding is a declared hold.
type holding struct {
	need     Need
	from, to *node
	pos      net.Pos
}

// Hold makes each case hold slots of a limit over several tasks: the case takes them before the work of task from starts, and releases them
// when task to, which may be the same task, has ended. A case that waits for slots occupies no worker. Waiting cases are admitted in the
// order of their queue, and `tasq why` names the cases that hold the slots.
//
//	crane := limit.Resource("crane", 2)
//	b.Hold(builder.Takes(crane, 1), load, unload)
//	b.Hold(builder.TakesBy(limit.Resource("dock", 1), 1, func(s Ship) string { return s.Port }), load, leave)
//
// The need is a [Takes] or [TakesBy] of a [limit.Resource], with a key that is computed from the input of from; from must have a Run. The
// case keeps its slots while from waits for its next attempt, over restarts, and when another engine takes the case over. It releases them
// early if the case ends, or if from is withdrawn, canceled or fails. A case takes the slots once: if from runs again before to, the case
// uses those that it holds. A fork of a case holds nothing; a failed case that is resumed holds nothing until from starts again.
//
// Build detects deadlocks: cases that can wait for each other forever, as when some take A and then B, and others B and then A. It rejects
// them with a run that leads there, see [verify.HoldDeadlock]. Open does the same for all workflows of an engine together. Both use the
// numbers with which the limits are defined.
func (b *Builder[C]) Hold(need Need, from, to Node) {
	b.draft().hold(need, from, to, caller())
}

// Holds makes each run hold slots of limits from its first attempt until it has ended, also between attempts and while it sleeps. A limit
// of one slot for each key thereby serializes the runs of a key: they run one after the other, in the order of their queue, and no run
// overtakes one that waits for its next attempt.
//
//	builder.Holds(builder.TakesBy(limit.Resource("account", 1), 1, func(p Payment) string { return p.Account }))
//
// It corresponds to [Builder.Hold] with the function as from and to.
func Holds(needs ...Need) FuncOption {
	return funcOption(func(s *funcSpec) { s.holds = append(s.holds, needs...) })
}

func (d *draft) hold(need Need, from, to Node, pos net.Pos) {
	d.frozen("a hold", pos)
	h := holding{need: need, pos: pos}
	h.from, h.to = d.own(from, "the task that begins a hold", pos), d.own(to, "the task that ends a hold", pos)
	if h.from == nil || h.to == nil || !d.checkHold(&h) {
		return
	}
	d.holds = append(d.holds, h)
}

// checkHold notes what is wrong with a hold, and reports whether it can be verified.
func (d *draft) checkHold(h *holding) bool {
	name, before := h.need.use.Limit.Name, len(d.found)
	wrong := func(format string, args ...any) {
		d.problem(BadLimit, h.from.name, h.pos, "the hold of %q from %q to %q: %s", name, h.from.name, h.to.name, fmt.Sprintf(format, args...))
	}
	switch {
	case h.from.kind != taskNode || !h.from.task.HasWorker():
		wrong("%q has no Run, and a hold begins as a worker does a job; let a task with Run before it begin the hold", h.from.name)
		d.other(h.from.pos)
	case h.from.task.Batch != nil:
		wrong("%q is done in batches, whose items would wait for each other; give it Run in place of Batch", h.from.name)
		d.other(h.from.pos)
	case h.to.kind.condition():
		wrong("%q is a condition, and a hold ends as a task does; name a task", h.to.name)
		d.other(h.to.pos)
	}
	switch use := &h.need.use; {
	case use.Limit.Algorithm != limit.Slots:
		wrong("it is no limit with slots; use limit.Resource")
	case use.Amount != nil:
		wrong("how much it takes depends on the input, so it cannot be verified; use builder.Takes or builder.TakesBy")
	case use.Any != nil || use.Steps:
		wrong("a case holds slots of one key; use builder.Takes or builder.TakesBy")
	}
	for _, other := range d.holds {
		if other.from == h.from && other.need.use.Limit.Name == name {
			wrong("%q begins a hold of it already; take the sum of both, or begin one of them elsewhere", h.from.name)
			d.other(other.pos)
		}
	}
	for _, u := range h.from.task.Limits {
		if u.Limit.Name == name {
			wrong("each attempt of %q takes of it too; leave one of them out", h.from.name)
			d.other(h.from.pos)
		}
	}
	d.checkNeeds(fmt.Sprintf("the hold from %q to %q", h.from.name, h.to.name), h.from.name, h.pos, h.from.task.InputType, []Need{h.need})
	return len(d.found) == before
}

// holdsOf is what the engine works with. All workflows take in the order of the names of the limits.
func (d *draft) holdsOf(n *net.Net) (holds []workflow.Hold) {
	for _, h := range d.holds {
		from, _ := n.TaskByName(h.from.name)
		to, _ := n.TaskByName(h.to.name)
		use := h.need.use
		use.N = cmp.Or(use.N, use.Limit.Each)
		holds = append(holds, workflow.Hold{Use: use, From: from, To: to, Pos: h.pos})
	}
	slices.SortStableFunc(holds, func(a, b workflow.Hold) int { return cmp.Compare(a.Limit.Name, b.Limit.Name) })
	return holds
}

// verifyHolds looks for cases of the workflow that can wait for each other for what they hold. What was not decided is a warning.
func (d *draft) verifyHolds(n *net.Net, tasks []*node) (found, undecided []verify.Finding) {
	def := &workflow.Definition{Name: d.name, Net: n, Holds: d.holdsOf(n)}
	for _, t := range tasks {
		def.Tasks = append(def.Tasks, t.task)
	}
	if !def.HasHolds() {
		return nil, nil
	}
	rep, err := workflow.VerifyHolds([]*workflow.Definition{def}, verify.Options{States: verifyStates, Time: verifyTime, Now: retry.SystemClock.Now})
	switch {
	case err != nil:
		undecided = append(undecided, verify.Finding{
			Code:     verify.HoldDeadlock,
			Text:     "whether cases can wait for each other for what they hold is not decided: " + oneLine(err),
			Elements: []verify.Element{{Name: d.name, Pos: d.pos}},
		})
	case rep.Deadlock != nil:
		found = append(found, rep.Deadlock.Finding())
	case rep.Exhausted != verify.NoLimit:
		undecided = append(undecided, verify.Finding{
			Code:     verify.HoldDeadlock,
			Text:     fmt.Sprintf("whether cases can wait for each other for what they hold is not decided: %s ran out after %d states", rep.Exhausted, rep.States),
			Fix:      "move a part of the net into a composite task, or hold over fewer tasks",
			Elements: []verify.Element{{Name: d.name, Pos: d.pos}},
		})
	}
	return found, undecided
}
