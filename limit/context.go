package limit

import (
	"context"
	"errors"
	"fmt"
)

// Taken is what a function or a step of an engine has acquired of limits.
type Taken interface {
	// Commit is that of [Lease].
	Commit(limit string, used int64) error

	// KeyOf returns the key for which the limit with that name was acquired, "" for a limit without keys; false if
	// nothing of it was acquired.
	KeyOf(limit string) (key string, ok bool)
}

type leaseKey struct{}

// leases is what a context knows: a lease, and that of the context around it.
type leases struct {
	lease Taken
	outer *leases
}

// NewContext returns a context from which Commit and KeyOf get what was acquired. Engines use it for functions and steps with limits.
func NewContext(ctx context.Context, lease Taken) context.Context {
	outer, _ := ctx.Value(leaseKey{}).(*leases)
	return context.WithValue(ctx, leaseKey{}, &leases{lease, outer})
}

// Commit reports how much of a rate the step or function with this context has used in all, see Lease.Commit. In a step it applies to
// what the step acquired, or else to what the function around it acquired. The error is ErrUnknownLimit if neither has acquired a rate
// with that name, and ErrAmount if used is negative.
//
//	answer, err := model.Ask(ctx, prompt)
//	...
//	err = limit.Commit(ctx, "tokens", answer.Tokens)
func Commit(ctx context.Context, limit string, used int64) error {
	err := fmt.Errorf("limit: %d of %q cannot be committed: nothing of it was taken in this context: %w", used, limit, ErrUnknownLimit)
	of, _ := ctx.Value(leaseKey{}).(*leases)
	for ; of != nil; of = of.outer {
		if err = of.lease.Commit(limit, used); !errors.Is(err, ErrUnknownLimit) {
			return err
		}
	}
	return err
}

// KeyOf returns the key for which the step or function with this context has acquired a limit: the key of a keyed limit, or the key of
// a pool that was chosen. It is "" for a limit without keys, and if nothing of the limit was acquired.
//
//	client.SetKey(secrets[limit.KeyOf(ctx, "calls")])
func KeyOf(ctx context.Context, limit string) string {
	of, _ := ctx.Value(leaseKey{}).(*leases)
	for ; of != nil; of = of.outer {
		if key, ok := of.lease.KeyOf(limit); ok {
			return key
		}
	}
	return ""
}
