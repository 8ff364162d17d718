package workflow

import (
	"errors"
	"fmt"
	"time"
)

// Option sets a part of a command: [Key], [By], [Route], [After], [At], [Priority] and so on. The error says what is wrong with
// the option; the command is then refused.
type Option interface{ Apply(c *Command) error }

// OptionFunc is a function that is an [Option].
type OptionFunc func(c *Command) error

// Apply calls the function; a nil one does nothing.
func (f OptionFunc) Apply(c *Command) error {
	if f == nil {
		return nil
	}
	return f(c)
}

// With returns a command with options set. What is wrong with one of them shows in [Command.Check].
func With(c Command, opts ...Option) Command {
	if len(opts) == 0 {
		return c // and needs no copy that the options can change
	}
	return c.with(opts)
}

func (c Command) with(opts []Option) Command {
	for _, opt := range opts {
		if opt != nil {
			c.err = errors.Join(c.err, opt.Apply(&c))
		}
	}
	return c
}

func set(f func(c *Command)) Option {
	return OptionFunc(func(c *Command) error {
		f(c)
		return nil
	})
}

// Key makes a command idempotent: another one with the same key does nothing, and gets the first one's result. The error of a
// command that asks for something else with the same key wraps [ErrKeyReused]. A key lives as long as the case that the command
// was about: once that is removed (see builder.Keep), it is free again. A key has at most [MaxName] bytes, as it is in an index of the database.
func Key(key string) Option { return set(func(c *Command) { c.Key = key }) }

// By names who asks, for the history, and for callbacks.
func By(name string) Option { return set(func(c *Command) { c.Actor = name }) }

// Trace makes a command a part of a distributed trace: text is the context of the caller's span, such as the header traceparent of
// W3C Trace Context. A case that the command starts keeps it, so that all jobs of the case are a part of the trace, see
// activities.Work. It has at most [MaxTrace] bytes. Module observe sets it.
func Trace(text string) Option { return set(func(c *Command) { c.Trace = text }) }

// MaxTrace bounds the context of a trace, in bytes.
const MaxTrace = 512

// Route chooses where the task's split goes, by the names of the tasks or conditions it flows to, if the action
// completes the task.
func Route(targets ...string) Option {
	return set(func(c *Command) { c.Route = append([]string{}, targets...) })
}

// After has a case that is started begin so long after the command: it is there at once, and none of its tasks is enabled
// before. Zero is at once, a negative time an error. An item that is added is due so long after the command.
func After(d time.Duration) Option {
	return set(func(c *Command) { c.After, c.times = d, c.times+1 })
}

// At is like [After] with a moment; one that is over is at once. To give both is an error.
func At(t time.Time) Option { return set(func(c *Command) { c.At, c.times = t, c.times+1 }) }

// Priority says what goes first: of the jobs that are due, and of the work items in a list, those with the higher
// number. It holds for the tasks of the case that give no priority of their own, and for its child cases. The default
// is 0.
func Priority(n int) Option { return set(func(c *Command) { c.Priority = n }) }

// Queue has an item that is added listed in this queue, instead of that of its task. A case that is started with it has the jobs of its tasks and
// functions run in this queue, with their retries; tasks for people keep theirs, and so do its child cases and the handlers of its end. "" changes nothing.
func Queue(name string) Option { return set(func(c *Command) { c.Queue = name }) }

// FromStep has a restart do the last step of this name again, and all that came after it; the steps before it are taken over.
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
