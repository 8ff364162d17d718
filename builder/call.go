package builder

import (
	"errors"
	"fmt"
	"time"

	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// Call is what a caller may say beside the action itself.
type Call struct {
	Key   string   // idempotency key: the same key gets the first answer again; "" is none
	By    string   // who acts, for the history; "" is unknown
	Route []string // where the task's split goes, if the action completes the task; nil leaves it to the definition

	// Of a start only:

	After    time.Duration    // the case begins so long after the call; 0 is at once
	At       time.Time        // the case begins at this time; a time that is over, and the zero time, is at once
	Priority int              // of the case's jobs and work items where their task gives none; higher goes first
	Options  workflow.Options // the rest of what was asked of the run

	timings  int // how often After and At were given
	problems []error
}

// CallOption sets a part of a [Call].
type CallOption func(*Call)

// CallWith makes a call of its options.
func CallWith(opts ...CallOption) Call {
	var c Call
	for _, opt := range opts {
		if opt != nil {
			opt(&c)
		}
	}
	return c
}

// Key makes a command idempotent: another one with the same key does nothing, and gets the first one's answer. A key
// lives as long as the case that the command was about: once that is removed (see [Keep]), it is free again.
func Key(key string) CallOption { return func(c *Call) { c.Key = key } }

// By names who acts, for the history.
func By(name string) CallOption { return func(c *Call) { c.By = name } }

// Route chooses where the task's split goes, by the names of the tasks or conditions it flows to, if the action
// completes the task.
func Route(targets ...string) CallOption {
	return func(c *Call) { c.Route = append([]string{}, targets...) }
}

// After has a case that is started begin so long after the call: it is there at once, and none of its tasks is enabled
// before. Zero is at once, a negative time an error.
func After(d time.Duration) CallOption {
	return func(c *Call) { c.After, c.timings = d, c.timings+1 }
}

// At is like [After] with a moment; one that is over is at once. To give both is an error.
func At(t time.Time) CallOption { return func(c *Call) { c.At, c.timings = t, c.timings+1 } }

// Priority says what goes first: of the jobs that are due, and of the work items in a list, those with the higher
// number. It holds for the tasks of the case that give no priority of their own, and for its child cases. The default
// is 0.
func Priority(n int) CallOption { return func(c *Call) { c.Priority = n } }

// Begins says when a case that is started now begins. The error says what is wrong with the options of a start.
func (c *Call) Begins(now time.Time) (time.Time, error) {
	switch {
	case len(c.problems) > 0:
		return now, errors.Join(c.problems...)
	case c.Route != nil:
		return now, errors.New("a start takes no Route, which is an option of what completes a work item; leave it out")
	case c.timings > 1 || c.After != 0 && !c.At.IsZero():
		return now, errors.New("when it begins is given twice: give After or At, once")
	case c.After < 0:
		return now, fmt.Errorf("it cannot begin %s ago: give zero or more", -c.After)
	case c.At.After(now):
		return c.At.Truncate(time.Microsecond).UTC(), workitem.CheckDue(c.At)
	}
	return now.Add(c.After).Truncate(time.Microsecond), nil
}

// Plain reports options that only a start can have, or an action on a work item, for engines, which refuse them in other
// commands.
func (c *Call) Plain() error {
	if c.Route != nil {
		return errors.New("Route is an option of an action on a work item; leave it out")
	}
	if c.timings > 0 || c.Priority != 0 || len(c.Options.OnComplete)+len(c.Options.Retry)+len(c.problems) > 0 {
		return errors.New("After, At, Priority and OnComplete are options of a start; leave them out")
	}
	return nil
}

// problem notes an option that cannot be right, for Begins to report.
func (c *Call) problem(err error) { c.problems = append(c.problems, err) }
