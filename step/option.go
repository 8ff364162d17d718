package step

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tasq-dev/tasq/domain"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/workitem"
)

// Option is an option of a step. Each documents which steps accept it; for other steps it is an error.
type Option struct {
	name  string
	apply func(*options) error
}

// options are what the options of one call come to.
type options struct {
	given      []string
	policy     retry.Policy
	timeout    time.Duration // with timed
	timed      bool
	delay      time.Duration
	hasInput   bool
	input      any
	inputJSON  json.RawMessage
	loose      bool
	topic      bool
	named      string
	isNamed    bool
	retryGiven bool
	takes      []workitem.Take
}

// Retry is the retry policy of a Do. Every attempt is recorded, and the wait before the next one is durable: it uses
// no worker, survives a restart, and does not count as an attempt of the job.
//
//	step.Retry(retry.Exponential(4, time.Second)) // at most 4 calls, after waits of 1s, 2s, 4s
//
// An error that is marked by retry.Permanent or workitem.Fatal, or is a failure that is not retryable, is not
// retried. The delay of retry.After replaces the wait. A panic is a failed attempt, whose error is a
// *retry.PanicError. The policy's filters see the error itself, the name of the step, and the value of Input.
func Retry(p retry.Policy) Option {
	return Option{"Retry", func(o *options) error {
		o.policy, o.retryGiven = p, true
		return p.Validate()
	}}
}

// Timeout limits the duration of a step. For Do and Tx it applies to one call of the function, whose context then
// ends; it must be positive. For Await and Call it applies to the whole wait, also while the job is suspended; after
// it the call returns an error that matches ErrTimeout, and a child case is canceled. With zero, Await and Call do
// not wait: Await only takes an event that has already arrived.
func Timeout(d time.Duration) Option {
	return Option{"Timeout", func(o *options) error {
		o.timeout, o.timed = d, true
		if d < 0 {
			return fmt.Errorf("%v is negative", d)
		}
		return nil
	}}
}

// Input records a value that the result of a Do or Tx depends on. A replay with another value fails with ErrChanged,
// so that a recorded receipt for 10 is not returned for 20. Values are compared as JSON, regardless of the order of
// fields.
func Input(v any) Option {
	return Option{"Input", func(o *options) (err error) {
		o.hasInput, o.input = true, v
		o.inputJSON, err = domain.Encode(v)
		return err
	}}
}

// Loose makes Do, Tx and Call accept a result that was recorded for another input. Another kind of step with the
// same name is still an error, and so is another workflow.
func Loose() Option {
	return Option{"Loose", func(o *options) error { o.loose = true; return nil }}
}

// Named sets the name of an Await, instead of the event's name, for example to wait for the same event twice.
func Named(name string) Option {
	return Option{"Named", func(o *options) error { o.named, o.isNamed = name, true; return nil }}
}

// Topic makes an Await wait for a broadcast to a topic, instead of an event for the case. A broadcast reaches the
// steps that are waiting at that moment; it is not kept for later ones.
func Topic() Option {
	return Option{"Topic", func(o *options) error { o.topic = true; return nil }}
}

// After delays the start of the child case of a Call. The delay is a step of its own, with the name of the call
// followed by " (delay)". A Timeout starts with the child.
func After(d time.Duration) Option {
	return Option{"After", func(o *options) error {
		o.delay = d
		if d < 0 {
			return fmt.Errorf("%v is negative", d)
		}
		return nil
	}}
}

// What the kinds of steps take.
var (
	takesDo    = []string{"Retry", "Timeout", "Input", "Loose", "Limits"}
	takesTx    = []string{"Timeout", "Input", "Loose"}
	takesAwait = []string{"Timeout", "Named", "Topic"}
	takesCall  = []string{"Timeout", "Loose", "After"}
)

// gather applies the options of a call that takes those.
func gather(opts []Option, takes []string) (options, error) {
	if len(opts) == 0 {
		return options{}, nil
	}
	var o options
	for _, opt := range opts {
		switch {
		case opt.apply == nil:
			return o, fmt.Errorf("an option is empty: leave it out")
		case !slices.Contains(takes, opt.name):
			return o, fmt.Errorf("%s does nothing here: it takes %s", opt.name, strings.Join(takes, ", "))
		case slices.Contains(o.given, opt.name):
			return o, fmt.Errorf("%s is given twice", opt.name)
		}
		if err := opt.apply(&o); err != nil {
			return o, fmt.Errorf("%s: %w", opt.name, err)
		}
		o.given = append(o.given, opt.name)
	}
	return o, nil
}
