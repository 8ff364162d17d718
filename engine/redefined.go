package engine

import (
	"context"
	"slices"

	"github.com/tasq-dev/tasq/limit"
	"github.com/tasq-dev/tasq/store"
)

// othersWithNewer reports whether a limit of this program has a newer definition, and other engines are open. In a rolling deployment a
// program of the earlier version may be opened again, which is no change of the definition. If no other engine is open, the earlier version
// replaces the newer one.
//
//	version 1   N = 5      opened: 5
//	version 2   N = 10     opened: 10, earlier 5
//	version 1              opened again: still 10
//	both closed, version 1 opened: 5, earlier 10
func (c *controls) othersWithNewer(ctx context.Context) (others bool, err error) {
	if c.e.fleet == nil || !slices.ContainsFunc(c.defined, func(l limit.Limit) bool { return slices.Contains(c.limits[l.Name].Earlier, l) }) {
		return false, nil
	}
	err = c.e.View(ctx, func(r store.Reader) error {
		if m, ok := r.(store.Members); ok {
			all, err := m.Members(ctx)
			others = len(all) > 1
			return err
		}
		return nil
	})
	return others, err
}

// maxEarlier is how many definitions of a limit are remembered.
const maxEarlier = 10

// redefined returns a setting after the program has changed the definition of its limit. A number that was set stays in
// force if the new definition counts the same: slots, or amounts in a time of the same length, whatever the algorithm.
// Otherwise 5 slots would become 5 calls a minute, so the number is dropped, unless it is 0, which pauses any limit.
func redefined(was store.LimitValue, l limit.Limit) (now store.LimitValue, dropped bool) {
	now = was
	now.Limit = l
	now.Earlier = slices.DeleteFunc(slices.Clone(was.Earlier), func(e limit.Limit) bool { return e == l })
	if was.Limit.Name != "" {
		now.Earlier = append(now.Earlier, was.Limit)
	}
	now.Earlier = now.Earlier[max(0, len(now.Earlier)-maxEarlier):]
	kind := func(l limit.Limit) limit.Algorithm {
		if l.Algorithm == limit.Slots || l.Algorithm == limit.CircuitBreaker {
			return l.Algorithm
		}
		return limit.SlidingWindow // represents all rates
	}
	if kind(was.Limit) == kind(l) && was.Limit.Per == l.Per {
		return now, false
	}
	if was.N != nil && *was.N != 0 {
		now.N, now.Decision, dropped = nil, store.Decision{}, true
	}
	now.Keys = nil
	for key, v := range was.Keys {
		if v.N != 0 {
			dropped = true
			continue
		}
		if now.Keys == nil {
			now.Keys = make(map[string]store.KeyValue)
		}
		now.Keys[key] = v
	}
	return now, dropped
}
