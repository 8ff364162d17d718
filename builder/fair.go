package builder

import (
	"reflect"

	"github.com/tasq-dev/tasq/net"
)

// FairKey says between which keys of the input a queue takes turns. [FairKeyOf] makes one. The zero value is the same key for all.
type FairKey struct {
	key  any          // a function of the input
	in   reflect.Type // of the input; nil if there is no function
	none bool         // the function is nil
}

// FairKeyOf is the [FairKey] of a [Job], by its payload.
func FairKeyOf[In any](key func(In) string) FairKey {
	return FairKey{key: key, in: reflect.TypeFor[In](), none: key == nil}
}

// FairBy has the queue of a function take turns between keys of the input, such as customers, so that one who starts 10,000 runs does not
// have the others wait behind them.
//
//	builder.FairBy(func(m Mail) string { return m.Customer })
//
// Of the jobs of a queue with the same priority, each key has one begin in turn; the jobs of one key begin in the order in which they became
// due. While a key waits, at most one job of each other key begins before its next one, and at most two before its first. A job that
// waits for a limit keeps its turn, and the line of the limit goes by turns too. A higher priority goes first as before; jobs of functions without FairBy
// are of one key. Batches and retries take turns like other jobs.
//
// An engine counts turns for itself, among the jobs that it holds; see docs/limits.md for several engines. key has to be quick and to depend on
// nothing but the input; a job for which it panics is one without a key. It is not part of the fingerprint.
func FairBy[In any](key func(In) string) FuncOption {
	return funcOption(func(s *funcSpec) { s.fair = FairKeyOf(key) })
}

// fairOf is the function of a key for an input of that type; nil if there is none. what names in a problem what it is of.
func fairOf[In any](d *draft, what, subject string, pos net.Pos, k FairKey) func(In) string {
	if k.in == nil {
		return nil
	}
	key, ok := k.key.(func(In) string)
	switch {
	case !ok:
		d.problem(BadFairKey, subject, pos, "the key of FairBy of %s takes a %s, and the input is a %s; let it take that", what, k.in, reflect.TypeFor[In]())
	case k.none:
		d.problem(BadFairKey, subject, pos, "the key of FairBy of %s is nil; give one, or leave it out", what)
	}
	return key
}
