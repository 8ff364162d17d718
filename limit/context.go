package limit

import (
	"context"
	"errors"
	"fmt"
)

// Committer takes what was used of a rate: a [Lease] does, and what an engine gives to functions and steps.
type Committer interface {
	Commit(limit string, used int64) error
}

type leaseKey struct{}

// leases is what a context knows: a lease, and that of the context around it.
type leases struct {
	lease Committer
	outer *leases
}

// NewContext returns a context with which [Commit] finds a lease. An engine does so for the functions and steps that take of limits.
func NewContext(ctx context.Context, lease Committer) context.Context {
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
