package kernel

import "fmt"

// Bounds of one command. A loop of routing or automatic tasks that never waits enables the same task again and again,
// and reaches MaxActivations. MaxSteps bounds what grows within one activation, such as a callback that answers each
// item with another one. Both leave room for a task of a hundred thousand automatic items with callbacks, each of which
// takes up to fifteen steps. The child cases that a composite task begins with are given by its definition, so each
// adds room according to its number of tasks; those that a callback opens add none.
const (
	MaxActivations = 10_000 // of one task of one case
	MaxSteps       = 2_000_000
	childSteps     = 100 // beyond that for each task of each child case; an automatic task with callbacks takes some twenty
)

// step is one entry of the agenda.
type step func() error

// agenda is what a command still has to do: a stack of steps, and the actions that callbacks have requested meanwhile.
// It counts the steps that it executes, and bounds them.
type agenda struct {
	steps     []step // a stack: the next step is the last element
	requested []step // actions that callbacks requested, in order; see pushRequested
	release   step   // pushRequested as a step; one value, so that pushing it does not allocate
	executed  int
	room      int         // steps that child cases add to MaxSteps
	idle      func() bool // called when the agenda is empty: it may push more, and reports whether it did
}

// init prepares an agenda with memory that is enough for most commands. It stays where it is from then on, as release refers to it.
func (a *agenda) init(idle func() bool) {
	a.steps = make([]step, 0, 16)
	a.release, a.idle = a.pushRequested, idle
}

// reset empties the agenda for another command, and keeps its memory. It clears the memory too, since a step that was
// executed would keep its tree alive.
func (a *agenda) reset() {
	clear(a.steps[:cap(a.steps)])
	*a = agenda{steps: a.steps[:0], release: a.release, idle: a.idle}
}

// push pushes steps so that the first is executed first, before everything on the agenda. It skips nil steps, so that a
// hook that is not set costs nothing. Several calls push in reverse order: push(c), push(a, b) executes a, b, c.
func (a *agenda) push(steps ...step) {
	for i := len(steps) - 1; i >= 0; i-- {
		if steps[i] != nil {
			a.steps = append(a.steps, steps[i])
		}
	}
}

// request records an action that a callback requests, until the next release.
func (a *agenda) request(s step) { a.requested = append(a.requested, s) }

// pushRequested pushes the actions that callbacks requested, in their order. Its step, release, is below the hooks of
// the current change on the agenda, so all hooks get the change before its consequences begin.
//
//	item a.1.1 started: onStarted of the item asks "complete a.1.1"
//	                    OnWorkItemStateChanged of the task: initialized -> started
//	release:            complete a.1.1, and the hooks are called with started -> completed
func (a *agenda) pushRequested() error {
	steps := a.requested
	a.requested = nil
	a.push(steps...)
	return nil
}

// height returns the number of steps on the agenda, for an inner run.
func (a *agenda) height() int { return len(a.steps) }

// run executes steps until the agenda has the given height: 0 for all of them.
//
// An inner run is for a callback that opens a child case: the case has to run as far as it can before the call returns.
// Its base is the height of the agenda at the call, so it executes the steps of the child and leaves the others:
//
//	base ─────────┐
//	[endCheck try(b) | firstTasks(child) onInitialized(child)]    the inner run ends at the bar
//
// The outermost run also evaluates the joins that were touched, which is what idle does. An inner run does not: the joins of other
// cases would otherwise be enabled in the middle of a callback, before the steps that come first.
func (a *agenda) run(base int) error {
	for {
		if err := a.execute(base); err != nil {
			return err
		}
		if base > 0 || !a.idle() {
			return nil
		}
	}
}

// execute executes the steps above a height.
func (a *agenda) execute(base int) error {
	for len(a.steps) > base {
		if a.executed++; a.executed > MaxSteps+a.room {
			return fmt.Errorf("%w: it took more than %d steps; look for a callback that answers each work item or case "+
				"with another one", ErrRunaway, MaxSteps+a.room)
		}
		next := a.steps[len(a.steps)-1]
		a.steps = a.steps[:len(a.steps)-1]
		if err := next(); err != nil {
			return err
		}
	}
	return nil
}

// addRoom raises the bound on the steps for a child case with a number of tasks.
func (a *agenda) addRoom(tasks int) { a.room += childSteps * tasks }
