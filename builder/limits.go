package builder

import (
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/tasq-dev/tasq/limit"
	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/workflow"
)

// Need says how much of a limit each attempt of a function acquires before it starts. Takes, TakesBy, TakesOf
// and TakenBySteps make one, and [Need.AnyOf] makes it one of a pool.
type Need struct {
	use  workflow.Use
	in   reflect.Type // of the input that the function of the need is given; nil if there is none
	none bool         // the function of the need is nil
}

// Takes acquires n of a limit; 0 is its Each, which is 1 for [limit.Resource], [limit.Calls] and [limit.Breaker].
//
// All functions of an engine that use a limit with the same name share it. Open fails if two definitions with one name differ.
func Takes(l limit.Limit, n int64) Need { return Need{use: workflow.Use{Limit: l, N: n}} }

// TakesBy acquires n of the limit of a key: each key, such as a customer, has a limit of its own with the same numbers. In is the
// input of the function. key must be fast and depend on the input only; a panic fails the job.
func TakesBy[In any](l limit.Limit, n int64, key func(In) string) Need {
	return Need{in: reflect.TypeFor[In](), use: workflow.Use{Limit: l, N: n, Key: withInput(key)}, none: key == nil}
}

// TakesOf acquires an amount that is computed from the input, such as the tokens of a prompt. An amount that the limit can never
// admit fails the job, with an error that wraps [limit.ErrTooMuch].
func TakesOf[In any](l limit.Limit, amount func(In) int64) Need {
	return Need{in: reflect.TypeFor[In](), use: workflow.Use{Limit: l, Amount: withInput(amount)}, none: amount == nil}
}

// AnyOf acquires the limit of one of several keys, such as three API keys: the first that admits the attempt. Each key has a limit of its
// own with the same numbers; [workflow.SetLimitOf] changes the number of one key, or pauses it. Needs of a function with the same keys get
// the same key; [limit.KeyOf] returns it.
//
//	keys := []string{"key-1", "key-2", "key-3"}
//	builder.Limits(builder.Takes(calls, 1).AnyOf(keys...), builder.TakesOf(tokens, tokensOf).AnyOf(keys...))
func (n Need) AnyOf(keys ...string) Need {
	n.use.Any = append([]string{}, keys...)
	return n
}

// TakenBySteps declares a limit that only the steps of the function acquire, with step.Limits. A step can only acquire limits that its
// function declares.
func TakenBySteps(l limit.Limit) Need { return Need{use: workflow.Use{Limit: l, Steps: true}} }

func withInput[In, R any](f func(In) R) func(json.RawMessage) (R, error) {
	return func(input json.RawMessage) (result R, err error) {
		in, err := restore[In](input)
		if err != nil {
			return result, err
		}
		return f(in), nil
	}
}

// Limits makes each attempt of a function acquire these limits before it starts, all at once. A job that waits for them uses no
// worker and no attempt, and other jobs of its queue can overtake it. They are released when the attempt ends, and while the function
// is suspended in a step.
func Limits(needs ...Need) FuncOption {
	return funcOption(func(s *funcSpec) { s.needs = append(s.needs, needs...) })
}

// usesOf is what the engine works with.
func usesOf(needs []Need) (uses []workflow.Use) {
	for _, n := range needs {
		uses = append(uses, n.use)
	}
	return uses
}

// checkNeeds finds what is wrong with the needs of a function with that input. what names it in a problem.
func (d *draft) checkNeeds(what, subject string, pos net.Pos, in reflect.Type, needs []Need) {
	seen := make(map[string]bool)
	for _, n := range needs {
		wrong := func(format string, args ...any) {
			d.problem(BadLimit, subject, pos, "a limit of %s: %s", what, fmt.Sprintf(format, args...))
		}
		if err := n.use.Check(); err != nil {
			wrong("%s", oneLine(err))
		}
		if n.none {
			wrong("the function for %q is nil; give one, or use builder.Takes", n.use.Limit.Name)
		}
		if n.use.Any != nil && n.use.Key != nil {
			wrong("%q is taken of a key of the input and of any of others; use builder.Takes or builder.TakesOf with AnyOf", n.use.Limit.Name)
		}
		if n.use.Any != nil && n.use.Steps {
			wrong("%q is taken by steps, and they say of which keys; use AnyOf of package step", n.use.Limit.Name)
		}
		if seen[n.use.Limit.Name] {
			wrong("%q is taken twice; take the sum of both", n.use.Limit.Name)
		}
		if n.in != nil && n.in != in {
			wrong("the function for %q takes %s, and the input is %s; let it take that", n.use.Limit.Name, n.in, in)
		}
		seen[n.use.Limit.Name] = true
	}
}
