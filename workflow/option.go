package workflow

import (
	"errors"
	"fmt"
	"time"
)

// Option sets a part of a command: [Key], [By], [Route], [After], [At], [Priority] and so on. The error says what is wrong with
// the option; the command is then refused. An option that panics is wrong too.
type Option interface{ Apply(c *Command) error }

// OptionFunc is a function that implements Option.
type OptionFunc func(c *Command) error

// Apply calls the function; a nil one does nothing.
func (f OptionFunc) Apply(c *Command) error {
	if f == nil {
		return nil
	}
	return f(c)
}

// With returns a command with options set. Command.Check reports invalid options.
func With(c Command, opts ...Option) Command {
	if len(opts) == 0 {
		return c // and needs no copy that the options can change
	}
	return c.with(opts)
}

func (c Command) with(opts []Option) Command {
	for _, opt := range opts {
		if opt != nil {
			c.err = errors.Join(c.err, apply(opt, &c))
		}
	}
	return c
}

// apply applies an option. A panic of an option that a program defines makes the command invalid.
func apply(opt Option, c *Command) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("%w: an option of type %T panicked: %v", ErrBadCommand, opt, cause)
		}
	}()
	return opt.Apply(c)
}

func set(f func(c *Command)) Option {
	return OptionFunc(func(c *Command) error {
		f(c)
		return nil
	})
}

// Key makes a command idempotent: another command with the same key does nothing, and returns the result of the first. If it requests
// something else, the error wraps ErrKeyReused. A key is kept as long as the case of the command: after the case is removed (see
// builder.Keep), it can be used again. A key has at most MaxName bytes.
func Key(key string) Option { return set(func(c *Command) { c.Key = key }) }

// By sets the actor of the command, for the history and for callbacks.
func By(name string) Option { return set(func(c *Command) { c.Actor = name }) }

// Trace makes a command part of a distributed trace: text is the context of the caller's span, such as the header traceparent of
// W3C Trace Context. A case that the command starts stores it, so that all jobs of the case are part of the trace, see
// activities.Work. It has at most MaxTrace bytes. Module observe sets it.
func Trace(text string) Option { return set(func(c *Command) { c.Trace = text }) }

// MaxTrace bounds the context of a trace, in bytes.
const MaxTrace = 512

// Route sets the targets of the task's split, by the names of tasks or conditions, if the action completes the
// task.
func Route(targets ...string) Option {
	return set(func(c *Command) { c.Route = append([]string{}, targets...) })
}

// After delays the start of a case: it is created at once, but no task is enabled before the time d has passed. Zero is
// no delay; a negative time is an error. An added item becomes due after the time d.
func After(d time.Duration) Option {
	return set(func(c *Command) { c.After, c.times = d, c.times+1 })
}

// At is like After with a point in time; a past one is no delay. Giving both is an error.
func At(t time.Time) Option { return set(func(c *Command) { c.At, c.times = t, c.times+1 }) }

// Priority sets the priority of a case: due jobs and listed work items with a higher number come first. It applies to
// tasks without a priority of their own, and to child cases. The default is 0.
func Priority(n int) Option { return set(func(c *Command) { c.Priority = n }) }

// Queue sets the queue of an added item, instead of that of its task. For a new case, it sets the queue of the jobs of its tasks and
// functions, including retries; tasks for people, child cases and completion handlers keep their queues. "" has no effect.
func Queue(name string) Option { return set(func(c *Command) { c.Queue = name }) }

// UnlessRestarted refuses a restart of a case that was restarted or forked already, if the new case has not been removed. The error wraps
// ErrRestarted. Bulk actions restart cases with it.
func UnlessRestarted() Option { return set(func(c *Command) { c.UnlessRestarted = true }) }

// FromStep makes a restart repeat the last step of this name and all steps after it; the steps before it are taken over.
func FromStep(name string) Option {
	return OptionFunc(func(c *Command) error {
		switch {
		case name == "":
			return fmt.Errorf("%w: FromStep has no name: give the name of the first step to repeat", ErrBadCommand)
		case c.FromStep != "":
			return fmt.Errorf("%w: FromStep is given twice: give the name of the first step to repeat", ErrBadCommand)
		}
		c.FromStep = name
		return nil
	})
}
