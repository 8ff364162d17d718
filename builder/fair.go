package builder

import (
	"reflect"

	"github.com/tasq-dev/tasq/net"
)

// FairKey computes the key for the fair scheduling of a queue from an input, see [FairBy]. [FairKeyOf] makes one. The zero value
// gives all jobs the same key.
type FairKey struct {
	key  any          // a function of the input
	in   reflect.Type // of the input; nil if there is no function
	none bool         // the function is nil
}

// FairKeyOf returns the FairKey of a [Job], computed from its payload.
func FairKeyOf[In any](key func(In) string) FairKey {
	return FairKey{key: key, in: reflect.TypeFor[In](), none: key == nil}
}

// FairBy schedules the runs of a function fairly between keys of the input, such as customers: a customer that starts 10,000 runs does not
// delay those of the others.
//
//	builder.FairBy(func(m Mail) string { return m.Customer })
//
// It is a round robin: among the jobs of a queue with the same priority, each key in turn starts one job, and the jobs of a key start in
// the order in which they became due. While a key waits, at most one job of each other key starts before its next one, and at most two
// before its first. A job that waits for a limit keeps its turn, and jobs that wait for a limit are admitted in turn as well. Higher
// priorities still go first. Jobs of functions without FairBy share one key. Batches and retries count as jobs like any other. After a
// restart, a job that becomes due can start before older ones of its key whose inputs the engine has not read yet.
//
// Each engine schedules the jobs that it holds by itself; see docs/limits.md for several engines. key must be fast and depend on the input
// only; a job for which it panics counts as one without a key, and the panic is logged. The key is not part of the fingerprint.
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
		d.problem(BadFairKey, subject, pos, "the key of FairBy of %s takes %s, and the input is %s; let it take that", what, k.in, reflect.TypeFor[In]())
	case k.none:
		d.problem(BadFairKey, subject, pos, "the key of FairBy of %s is nil; give one, or leave it out", what)
	}
	return key
}
