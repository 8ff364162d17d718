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

// Option changes what a step does. Each says which steps take it; the others refuse it.
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

// Retry has a failed function called again, for [Do]. Every attempt is recorded, and the wait before the next one is
// durable: it holds no worker, outlives the process, and uses no attempt of the job.
//
//	step.Retry(retry.Exponential(4, time.Second)) // at most 4 calls, after waits of 1s, 2s, 4s
//
// There is no other attempt if the error is marked by retry.Permanent or workitem.Fatal, or is a failure that is not
// retryable. A delay asked for by retry.After replaces the wait. A panic is a failed attempt, whose error is a
// *retry.PanicError. The policy's filters see the error itself, the name of the step, and the value of [Input].
func Retry(p retry.Policy) Option {
	return Option{"Retry", func(o *options) error {
		o.policy, o.retryGiven = p, true
		return p.Validate()
	}}
}

// Timeout limits a step. For [Do] and [Tx] it is the time of one call of the function, whose context then ends; it is
// above zero. For [Await] and [Call] it is the time of the whole wait, in which the job may well be suspended; when
// it is over the call returns an error that is [ErrTimeout], and a child case is canceled. There zero is allowed: an
// event that has not come yet is not waited for.
func Timeout(d time.Duration) Option {
	return Option{"Timeout", func(o *options) error {
		o.timeout, o.timed = d, true
		if d < 0 {
			return fmt.Errorf("%v is negative", d)
		}
		return nil
	}}
}

// Input says what the work of a [Do] or [Tx] depends on. It is recorded, and a replay with another value is
// refused with [ErrChanged]: a remembered receipt for 10 must not pass for one for 20. Values are compared as JSON, in
// which the order of fields doesn't count.
func Input(v any) Option {
	return Option{"Input", func(o *options) (err error) {
		o.hasInput, o.input = true, v
		o.inputJSON, err = domain.Encode(v)
		return err
	}}
}

// Loose accepts what was recorded for another input, for [Do], [Tx] and [Call]. Another kind of step under the same
// name is refused all the same, and so is another workflow.
func Loose() Option {
	return Option{"Loose", func(o *options) error { o.loose = true; return nil }}
}

// Named gives an [Await] a name of its own, where the event's name won't do: to wait for the same event twice.
func Named(name string) Option {
	return Option{"Named", func(o *options) error { o.named, o.isNamed = name, true; return nil }}
}

// Topic has an [Await] wait for what is broadcast to a topic, instead of what is sent to the case. A broadcast reaches
// those who wait at that moment; none is kept for later.
func Topic() Option {
	return Option{"Topic", func(o *options) error { o.topic = true; return nil }}
}

// After delays the start of the child case of a [Call]. The delay is a step of its own, called like the call with
// " (delay)" behind. A [Timeout] counts from the start of the child.
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
