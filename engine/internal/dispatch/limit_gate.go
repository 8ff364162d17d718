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

// ticket is what a job or one of its steps acquires of limits.
type ticket = admission.Ticket[entry]

// limitGate admits jobs and steps to their limits, and has those that wait. The lock of the scheduler guards it.
type limitGate struct {
	*admission.Gate[entry]
	defined []limit.Limit // as in the workflows, without changes by operators
	passing []*ticket     // tickets of jobs in paused queues that were made ready
	leases  entries       // steps, and code outside of jobs, that may acquire their limits, by priority
	callers uint64        // requests of code outside of jobs so far, for their ids
	readied bool          // jobs were put back into their queues since the last dispatch
}

// ticket returns the ticket of a job, from the holds of its case, the limits of its function, and its input; nil if it
// needs nothing.
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
		// A fixed amount is checked when the definition is built.
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

// admits returns an error for an amount that a limit can never grant: neither as it is defined, nor as it is now for
// that key.
// The larger of both counts: an operator may have lowered the limit for a while, for which the job can wait.
func (g *limitGate) admits(u *workflow.Use, key string, n int64) error {
	if most := max(g.capacity(u.Limit.Name, key, u.Any), u.Limit.Capacity()); n > most {
		return fmt.Errorf("the job takes %d of %s, which admits %d at once: take less, or raise it (tasq limit set %s): %w",
			n, u.Limit, most, printable.Arguments(u.Limit.Name), limit.ErrTooMuch)
	}
	return nil
}

// capacity returns the largest amount that a limit can grant at once now, for a key or any of several.
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

// enter acquires what a job needs, or makes it wait. The ticket gets the entry as it is now, which comes back to hasRoom.
func (g *limitGate) enter(n entry) bool {
	if n.ticket == nil {
		return true
	}
	n.ticket.Value = n
	return g.Enter(n.ticket)
}

// outcome is how a claim ended, for the limits that its job has acquired.
type outcome uint8

const (
	notStarted outcome = iota // nothing was done, so everything is returned
	succeeded
	failed // counted by circuit breakers
)

// leave returns what a job has acquired.
func (g *limitGate) leave(t *ticket, how outcome) {
	switch {
	case t == nil:
	case how == notStarted:
		g.Undo(t)
	default:
		g.Release(t, how == failed)
	}
}

// passOn advances the lines of tickets that were made ready while their queue is paused.
// A line that advances may make further tickets of paused queues ready, so it continues until none is left.
func (g *limitGate) passOn() {
	for len(g.passing) > 0 {
		list := g.passing
		g.passing = nil
		for _, t := range list {
			g.Pass(t)
		}
	}
}

// admitLeases lets ready steps, and ready code outside of jobs, acquire their limits, by priority.
func (g *limitGate) admitLeases() {
	for len(g.leases) > 0 {
		l := g.leases.pop(byPriority).lease
		switch {
		case l.released:
			g.Pass(l.t)
		case g.Enter(l.t):
			l.t.Value.turn.recordStepStart()
			l.room()
		case !l.t.Waits(): // refused, as it does not wait for room
			g.Pass(l.t)
			l.room()
		}
	}
}

// end returns what a lease has acquired, or ends its wait.
func (g *limitGate) end(l *lease, failed bool) {
	l.released = true
	l.t.Value.turn.leave()
	switch {
	case !l.t.Held():
		g.Withdraw(l.t)
	// Its work has begun, so what it took of a rate is used.
	case l.begun:
		g.Release(l.t, failed)
	default:
		g.Undo(l.t)
	}
}

// withStep returns a ticket for a function and a step of it.
// Both are acquired together: a job that held the limits of its function while it waits for those of its step could
// deadlock with another one.
func (g *limitGate) withStep(of *ticket, job workitem.JobID, st *workitem.Step) *ticket {
	t := &ticket{Job: job, Step: st.Name}
	if of != nil {
		t.Takes, t.Err, t.Holds = slices.Clone(of.Takes), of.Err, of.Holds
	}
	t.Own = len(t.Takes)
	for _, take := range st.Takes() {
		if _, ok := g.Limit(take.Limit); ok { // otherwise the error of the step names the limit
			t.Takes = append(t.Takes, take)
		}
	}
	return t
}

// check checks the takes of a step against the limits that its function declares, and, together with those of the
// function, against the capacity of the limits: once the step has waited, both are admitted together.
func (g *limitGate) check(own, takes []workitem.Take) error {
	for _, t := range takes {
		if _, ok := g.Limit(t.Limit); !ok {
			return fmt.Errorf("limit %q is not declared: give the function builder.Limits(builder.TakenBySteps(...)) with it: %w", t.Limit,
				limit.ErrUnknownLimit)
		}
		beside := takenOf(own, t)
		who := fmt.Sprintf("the step takes %d", t.N)
		if beside > 0 {
			who += fmt.Sprintf(" and its function %d", beside)
		}
		if err := g.checkAmount(who, t, t.N+beside); err != nil {
			return err
		}
	}
	return nil
}

// checkAmount returns an error for an amount of a take that the limit can grant neither now nor as it is defined.
func (g *limitGate) checkAmount(who string, t workitem.Take, n int64) error {
	most := g.capacity(t.Limit, t.Key, t.Any)
	if most <= 0 || n <= most || n <= g.definition(t.Limit).Capacity() {
		return nil
	}
	now, _ := g.Limit(t.Limit)
	return fmt.Errorf("%s of %s, which admits %d at once: take less, or raise it (tasq limit set %s): %w",
		who, now, most, printable.Arguments(t.Limit), limit.ErrTooMuch)
}

// takenOf returns how much a ticket takes of the limit and key of another take. Takes of a pool may get different keys.
func takenOf(takes []workitem.Take, of workitem.Take) (n int64) {
	for _, t := range takes {
		if t.Limit == of.Limit && t.Key == of.Key && len(t.Any) <= 1 && slices.Equal(t.Any, of.Any) {
			n += t.N
		}
	}
	return n
}

// definition returns a limit as the workflows define it.
func (g *limitGate) definition(name string) limit.Limit {
	i := slices.IndexFunc(g.defined, func(l limit.Limit) bool { return l.Name == name })
	return g.defined[i]
}
