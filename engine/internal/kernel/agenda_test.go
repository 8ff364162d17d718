package kernel

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

// trace is an agenda whose steps write down their names.
type trace struct {
	agenda
	names string
}

func newTrace() *trace {
	a := new(trace)
	a.init(func() bool { return false })
	return a
}

// named returns a step that writes down its name and pushes others.
func (a *trace) named(name string, then ...step) step {
	return func() error {
		a.names += name
		a.push(then...)
		return nil
	}
}

// What a step pushes is executed before what was there, in the order of the call.
func TestAgendaIsDepthFirst(t *testing.T) {
	a := newTrace()
	a.push(a.named("a", a.named("b"), nil, a.named("c", a.named("d"))), a.named("e"))
	require.NoError(t, a.run(0))
	require.Equal(t, "abcde", a.names)
	require.Zero(t, a.height())
}

// An inner run leaves the steps below it.
func TestAgendaOfAnInnerRun(t *testing.T) {
	a := newTrace()
	inner := func() error {
		base := a.height()
		a.push(a.named("b"), a.named("c"))
		return a.run(base)
	}
	a.push(inner, a.named("d"))
	require.NoError(t, a.run(0))
	require.Equal(t, "bcd", a.names)
}

// Requests wait for the next release, and are then executed in their order. Those that come later wait for the one after it.
func TestAgendaReleasesRequests(t *testing.T) {
	a := newTrace()
	ask := func(s step) step {
		return func() error {
			a.request(s)
			return nil
		}
	}
	a.push(ask(a.named("c", ask(a.named("e")))), a.named("a"), ask(a.named("d")), a.named("b"), a.release, a.named("x"), a.release)
	require.NoError(t, a.run(0))
	require.Equal(t, "abcdxe", a.names)
}

// A step that fails ends the run, and the agenda is empty for the next command.
func TestAgendaIsReset(t *testing.T) {
	a := newTrace()
	broken := errors.New("broken")
	a.push(func() error { return broken }, a.named("a"))
	a.request(a.named("b"))
	a.addRoom(7)
	require.ErrorIs(t, a.run(0), broken)
	a.reset()
	require.Empty(t, a.steps[:cap(a.steps)][1], "no step is kept alive")
	require.Zero(t, a.executed+a.room)
	a.push(a.named("c"), a.release)
	require.NoError(t, a.run(0))
	require.Equal(t, "c", a.names)
}

// What makes more and more without enabling a task again, as a callback that answers each item with another one, is
// stopped by the number of its steps, to which child cases add room.
func TestStepsAreBounded(t *testing.T) {
	a := newTrace()
	a.addRoom(7)
	var more step
	more = func() error {
		a.push(more)
		return nil
	}
	a.push(more)
	err := a.run(0)
	require.ErrorIs(t, err, ErrRunaway)
	require.ErrorContains(t, err, "more than 2000700 steps")
	require.Equal(t, MaxSteps+7*childSteps+1, a.executed)
}
