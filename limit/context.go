package limit

import (
	"context"
	"errors"
	"fmt"
)

// Taken is what a function or a step of an engine has taken of limits.
type Taken interface {
	// Commit is that of [Lease].
	Commit(limit string, used int64) error

	// KeyOf returns whose limit of that name was taken, "" of one that all share; false if nothing of it was taken.
	KeyOf(limit string) (key string, ok bool)
}

type leaseKey struct{}

// leases is what a context knows: a lease, and that of the context around it.
type leases struct {
	lease Taken
	outer *leases
}

// NewContext returns a context with which [Commit] and [KeyOf] find what was taken. An engine does so for the functions and steps that take
// of limits.
func NewContext(ctx context.Context, lease Taken) context.Context {
	outer, _ := ctx.Value(leaseKey{}).(*leases)
	return context.WithValue(ctx, leaseKey{}, &leases{lease, outer})
}

// Commit says how much of a rate was used in all, by the step or the function whose context it is: see [Lease.Commit]. In a step it is
// what the step took, or else what the function around it took. The error is [ErrUnknownLimit] if neither has taken of a rate with that
// name, and [ErrAmount] if used is negative.
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

// KeyOf says whose limit of that name was taken, by the step or the function whose context it is: the key of [Keys], and of several of
// which any would do the one that admitted first. It is "" if all share the limit, and if nothing of it was taken.
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
