package dispatch

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/tasq-dev/tasq/engine/internal/admission"
	"github.com/tasq-dev/tasq/internal/printable"
	"github.com/tasq-dev/tasq/limit"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// ticket is what a job, or a step of it, takes of limits.
type ticket = admission.Ticket[entry]

// limitGate admits jobs and steps to the limits that they take of, and keeps those that wait. The lock of the scheduler guards it.
type limitGate struct {
	*admission.Gate[entry]
	defined []limit.Limit // as the workflows define them
	passing []*ticket     // of jobs that are held, since their queue is paused
	steps   entries       // may take what they need, by priority
	readied bool          // jobs were put back into their queues since a turn looked at them
}

// ticket is what a job needs, by what its case is to hold, what its function declares and its input; nil if it needs nothing.
func (g *limitGate) ticket(job workitem.JobID, holds []caseHold, uses []workflow.Use, input json.RawMessage) *ticket {
	if len(holds)+len(uses) == 0 {
		return nil
	}
	t := &ticket{Job: job}
	for i := range holds {
		h := &holds[i]
		n, key, err := h.use.Of(input)
		if err != nil {
			return &ticket{Job: job, Err: workitem.Fatal(err)}
		}
		h.N = n
		t.Takes = append(t.Takes, workitem.Take{Limit: h.use.Limit.Name, Key: key, N: n})
		t.Holds = append(t.Holds, h.Hold)
	}
	for i := range uses {
		n, key, err := uses[i].Of(input)
		if err == nil && uses[i].Amount != nil {
			err = g.admits(&uses[i], key, n)
		}
		if err != nil {
			return &ticket{Job: job, Err: workitem.Fatal(err)}
		}
		if n > 0 {
			t.Takes = append(t.Takes, workitem.Take{Limit: uses[i].Limit.Name, Key: key, Any: uses[i].Any, N: n})
		}
	}
	if len(t.Takes) == 0 {
		return nil
	}
	t.Own = len(t.Takes)
	return t
}

// admits refuses an amount that is more than a limit admits, neither as it is defined nor as it is now for that key.
func (g *limitGate) admits(u *workflow.Use, key string, n int64) error {
	if most := max(g.capacity(u.Limit.Name, key, u.Any), u.Limit.Capacity()); n > most {
		return fmt.Errorf("the job takes %d of %s, which admits %d at once: take less, or raise it (tasq limit set %s): %w",
			n, u.Limit, most, printable.Arguments(u.Limit.Name), limit.ErrTooMuch)
	}
	return nil
}

// capacity is the most that a limit admits at once now, of a key or of any of several.
func (g *limitGate) capacity(name, key string, of []string) (most int64) {
	if of == nil {
		of = []string{key}
	}
	for _, key := range of {
		l, _ := g.LimitOf(name, key)
		most = max(most, l.Capacity())
	}
	return most
}

// enter takes what a job needs, or has it wait for that.
func (g *limitGate) enter(n entry) bool {
	if n.ticket == nil {
		return true
	}
	n.ticket.Value = n
	return g.Enter(n.ticket)
}

// outcome is what became of a claim, for the limits that its job holds.
type outcome uint8

const (
	notBegun outcome = iota // nothing was done, so nothing counts
	succeeded
	failed // breakers count it
)

// leave gives back what a job holds.
func (g *limitGate) leave(t *ticket, how outcome) {
	switch {
	case t == nil:
	case how == notBegun:
		g.Undo(t)
	default:
		g.Release(t, how == failed)
	}
}

// passOn lets those go on that wait for limits behind jobs of paused queues.
func (g *limitGate) passOn() {
	for len(g.passing) > 0 {
		list := g.passing
		g.passing = nil
		for _, t := range list {
			g.Pass(t)
		}
	}
}

// admitSteps has the first of the lines take what they need, of the steps of runs that go on.
func (g *limitGate) admitSteps() {
	for len(g.steps) > 0 {
		if l := g.steps.pop(byPriority).step; !l.released && g.Enter(l.t) {
			l.t.Value.turn.stepBegins()
			l.j.roomCame(l.room)
		}
	}
}

// end gives back what a step has, or stops its wait.
func (g *limitGate) end(l *stepLease, failed bool) {
	l.released = true
	l.t.Value.turn.leave()
	switch {
	case !l.t.Held():
		g.Withdraw(l.t)
	case l.begun:
		g.Release(l.t, failed)
	default:
		g.Undo(l.t)
	}
}

// withStep is a ticket for a function and a step of it.
func (g *limitGate) withStep(of *ticket, job workitem.JobID, st *workitem.Step) *ticket {
	t := &ticket{Job: job, Step: st.Name}
	if of != nil {
		t.Takes, t.Err, t.Holds = slices.Clone(of.Takes), of.Err, of.Holds
	}
	t.Own = len(t.Takes)
	for _, take := range st.Takes() {
		if _, ok := g.Limit(take.Limit); ok { // otherwise the step says what is wrong
			t.Takes = append(t.Takes, take)
		}
	}
	return t
}

// check checks what a step takes against the limits that its function declares, and against what the function takes itself: once the
// step has waited, both are admitted together.
func (g *limitGate) check(own, takes []workitem.Take) error {
	for _, t := range takes {
		now, ok := g.Limit(t.Limit)
		if !ok {
			return fmt.Errorf("limit %q is not declared: give the function builder.Limits(builder.TakenBySteps(...)) with it: %w", t.Limit,
				limit.ErrUnknownLimit)
		}
		beside := takenOf(own, t)
		most := g.capacity(t.Limit, t.Key, t.Any)
		if n := t.N + beside; most > 0 && n > most && n > g.definition(t.Limit).Capacity() {
			who := fmt.Sprintf("the step takes %d", t.N)
			if beside > 0 {
				who += fmt.Sprintf(" and its function %d", beside)
			}
			return fmt.Errorf("%s of %s, which admits %d at once: take less, or raise it (tasq limit set %s): %w",
				who, now, most, printable.Arguments(t.Limit), limit.ErrTooMuch)
		}
	}
	return nil
}

// takenOf is how much is taken of the limit and key that another take is of. Takes of a pool may be of different keys.
func takenOf(takes []workitem.Take, of workitem.Take) (n int64) {
	for _, t := range takes {
		if t.Limit == of.Limit && t.Key == of.Key && len(t.Any) <= 1 && slices.Equal(t.Any, of.Any) {
			n += t.N
		}
	}
	return n
}

// definition is a limit as the workflows define it.
func (g *limitGate) definition(name string) limit.Limit {
	i := slices.IndexFunc(g.defined, func(l limit.Limit) bool { return l.Name == name })
	return g.defined[i]
}
