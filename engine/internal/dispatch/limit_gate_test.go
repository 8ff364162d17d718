package dispatch

import (
	"encoding/json"
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/engine/internal/admission"
	"github.com/tasq-dev/tasq/internal/virtual"
	"github.com/tasq-dev/tasq/limit"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// gateOf is a gate of limits, and the jobs that it says have room.
func gateOf(limits ...limit.Limit) (g *limitGate, ready *[]workitem.JobID) {
	ready = new([]workitem.JobID)
	return &limitGate{defined: limits, Gate: admission.New(admission.Options[entry]{
		Lock: new(sync.Mutex), Clock: virtual.NewClock(), Limits: limits, Before: byPriority, Wake: func() {},
		Ready: func(n entry) { *ready = append(*ready, n.job) },
	})}, ready
}

// seats is a limit of slots.
func seats(n int64) limit.Limit {
	return limit.Limit{Name: "seats", Algorithm: limit.Slots, N: n, Each: 1}
}

// jobOf is an entry of a job that takes of seats.
func jobOf(g *limitGate, id byte, n int64) entry {
	job := workitem.JobID{id}
	return entry{job: job, ticket: g.ticket(job, nil, []workflow.Use{{Limit: seats(0), N: n}}, nil)}
}

func TestATicketIsWhatTheFunctionDeclares(t *testing.T) {
	g, _ := gateOf(seats(3))
	of := func(n int64, err error) *ticket {
		return g.ticket(workitem.JobID{1}, nil, []workflow.Use{{Limit: seats(3),
			Amount: func(json.RawMessage) (int64, error) { return n, err },
			Key:    func(input json.RawMessage) (string, error) { return string(input), nil }}}, json.RawMessage("7"))
	}
	require.Nil(t, g.ticket(workitem.JobID{1}, nil, nil, nil), "it needs nothing")
	require.Nil(t, of(0, nil), "it needs nothing this time")
	require.Equal(t, []workitem.Take{{Limit: "seats", Key: "7", N: 2}}, of(2, nil).Takes)
	require.Equal(t, 1, of(2, nil).Own)
	require.ErrorIs(t, of(4, nil).Err, limit.ErrTooMuch)
	wrong := errors.New("no number")
	require.ErrorIs(t, of(0, wrong).Err, wrong)

	raised := seats(5)
	g.Change(raised, nil)
	require.NoError(t, of(4, nil).Err, "the limit was raised")
	g.Change(seats(1), nil)
	require.NoError(t, of(3, nil).Err, "the limit as defined admits it: it waits until that is set again")
}

func TestEndedJobReturnsItsSlots(t *testing.T) {
	for _, how := range []outcome{notStarted, succeeded, failed} {
		g, ready := gateOf(seats(1))
		first, second := jobOf(g, 1, 1), jobOf(g, 2, 1)
		require.True(t, g.enter(entry{}), "a job without a ticket needs nothing")
		require.True(t, g.enter(first))
		require.False(t, g.enter(second))
		require.Empty(t, *ready)
		g.leave(nil, how)
		require.Empty(t, *ready)
		g.leave(first.ticket, how)
		require.Equal(t, []workitem.JobID{{2}}, *ready)
		require.True(t, g.enter(second))
	}
}

// A job that was made ready, and whose queue is paused, lets the next one of the line go first.
func TestAJobOfAPausedQueueIsPassedOver(t *testing.T) {
	g, ready := gateOf(seats(1))
	first, second, third := jobOf(g, 1, 1), jobOf(g, 2, 1), jobOf(g, 3, 1)
	require.True(t, g.enter(first))
	require.False(t, g.enter(second))
	require.False(t, g.enter(third))
	g.leave(first.ticket, succeeded)
	require.Equal(t, []workitem.JobID{{2}}, *ready)
	g.passing = append(g.passing, second.ticket)
	g.passOn()
	require.Empty(t, g.passing)
	require.Equal(t, []workitem.JobID{{2}, {3}}, *ready)
	require.True(t, g.enter(third))
}

// What a step takes is added to what its function takes of the same key.
func TestAStepAndItsFunctionAreCheckedTogether(t *testing.T) {
	g, _ := gateOf(seats(3))
	take := func(key string, n int64) []workitem.Take { return []workitem.Take{{Limit: "seats", Key: key, N: n}} }
	require.NoError(t, g.check(take("a", 1), take("a", 2)))
	require.NoError(t, g.check(take("a", 1), take("b", 3)))
	err := g.check(take("a", 1), take("a", 3))
	require.ErrorIs(t, err, limit.ErrTooMuch)
	require.ErrorContains(t, err, "the step takes 3 and its function 1 of")
	require.ErrorIs(t, g.check(nil, []workitem.Take{{Limit: "chairs", N: 1}}), limit.ErrUnknownLimit)

	needs, err := json.Marshal([]workitem.Take{{Limit: "seats", Key: "a", N: 1}, {Limit: "chairs", N: 1}})
	require.NoError(t, err)
	st := &workitem.Step{Name: "s", Kind: workitem.StepDo, State: workitem.StepWaiting, Result: needs}
	own := jobOf(g, 1, 2).ticket
	with := g.withStep(own, own.Job, st)
	require.Equal(t, []workitem.Take{{Limit: "seats", N: 2}, {Limit: "seats", Key: "a", N: 1}}, with.Takes)
	require.Equal(t, 1, with.Own)
	g.withStep(own, own.Job, &workitem.Step{Name: "other"}).Takes[0].N = 9
	require.EqualValues(t, 2, own.Takes[0].N, "the ticket of the function is another one")
}

// The end of a step gives back what it has, begun or not, or its place in the line.
func TestTheEndOfAStepGivesBackWhatItHas(t *testing.T) {
	for _, begun := range []bool{false, true} {
		g, ready := gateOf(seats(1))
		held := &lease{t: jobOf(g, 1, 1).ticket, begun: begun}
		waits := &lease{t: jobOf(g, 2, 1).ticket}
		require.True(t, g.Enter(held.t))
		require.False(t, g.Enter(waits.t))
		g.end(waits, false)
		g.end(held, false)
		require.True(t, held.released && waits.released)
		require.Empty(t, *ready, "the second has left the line")
		require.True(t, g.enter(jobOf(g, 3, 1)))
	}
}
