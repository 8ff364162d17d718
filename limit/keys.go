package limit

import (
	"context"
	"fmt"
	"hash/maphash"
	"slices"
	"sync"
	"time"

	"github.com/tasq-dev/tasq/internal/argument"
)

// Keys is the same set of limits for each of many keys: for example two at once and ten a minute for each customer. The
// limits of a key are created when it is first used, and dropped when every lease is released, nothing waits, and all
// that was admitted has left its window. Keys is safe for concurrent use. Make it with [NewKeys]: the limiters of a nil
// Keys, and of the zero value, return an error that wraps ErrInvalid.
type Keys struct {
	own    *shared
	seed   maphash.Seed
	shards [64]shard

	sweeping sync.Mutex // guards swept; taken after the lock of a shard
	swept    bool       // a sweep is due
}

// shard is a part of the keys, with the scope of its groups.
type shard struct {
	scope
	keys map[string]*counts
}

// sweepAtLeast is the shortest time between two sweeps.
const sweepAtLeast = 10 * time.Second

// NewKeys returns the same limits for each key. The error is that of [NewSet].
func NewKeys(limits ...Limit) (*Keys, error) { return Config{}.NewKeys(limits...) }

// NewKeys is like the function NewKeys, with a configuration.
func (c Config) NewKeys(limits ...Limit) (*Keys, error) {
	if err := validate(limits); err != nil {
		return nil, err
	}
	k := &Keys{own: &shared{defs: slices.Clone(limits), time: newTimes(c.Clock)}, seed: maphash.MakeSeed()}
	for i := range k.shards {
		k.shards[i].shared = k.own
		k.shards[i].keys = make(map[string]*counts)
	}
	return k, nil
}

// For returns the limits of a key. It costs nothing until something is acquired.
func (k *Keys) For(key string) Limiter { return oneKey{k, key} }

// checkMade refuses what NewKeys did not make.
func (k *Keys) checkMade() error {
	if k == nil || k.own == nil {
		return fmt.Errorf("%w: the Keys is nil, or its zero value: make it by limit.NewKeys, and look at its error", ErrInvalid)
	}
	return nil
}

// oneKey is the limits of a key, which may be forgotten and made again between two calls.
type oneKey struct {
	keys *Keys
	key  string
}

// Acquire implements Limiter.
func (o oneKey) Acquire(ctx context.Context, amounts ...Amount) (Lease, error) {
	argument.Context(ctx, "Acquire of limit.Keys")
	if err := o.keys.checkMade(); err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, Stopped(ctx, nil)
	}
	s := o.keys.shard(o.key)
	s.mu.Lock()
	return o.keys.group(s, o.key).acquire(ctx, o.key, nil, amounts)
}

// TryAcquire implements Limiter.
func (o oneKey) TryAcquire(amounts ...Amount) (Lease, error) {
	if err := o.keys.checkMade(); err != nil {
		return nil, err
	}
	s := o.keys.shard(o.key)
	s.mu.Lock()
	defer s.mu.Unlock()
	return o.keys.group(s, o.key).tryAcquire(o.key, nil, amounts)
}

// Wait implements Limiter.
func (o oneKey) Wait(amounts ...Amount) time.Duration { return longest(o.Why(amounts...)) }

// Why implements Limiter. A key that is not used is not made.
func (o oneKey) Why(amounts ...Amount) ([]Reason, error) {
	if err := o.keys.checkMade(); err != nil {
		return nil, err
	}
	s := o.keys.shard(o.key)
	s.mu.Lock()
	defer s.mu.Unlock()
	g := group{&s.scope, s.keys[o.key]}
	if g.counts == nil {
		g = newGroup(&s.scope)
	}
	return g.reasons(nil, amounts)
}

func (k *Keys) shard(key string) *shard {
	return &k.shards[maphash.String(k.seed, key)%uint64(len(k.shards))]
}

// group returns the group of a key, and makes it if there is none. The shard is locked.
func (k *Keys) group(s *shard, key string) group {
	g := group{&s.scope, s.keys[key]}
	if g.counts == nil {
		g = newGroup(&s.scope)
		s.keys[key] = g.counts
		k.sweepLater()
	}
	return g
}

// sweepLater has all keys looked at when the longest of the limits' times has passed, and at least sweepAtLeast.
func (k *Keys) sweepLater() {
	k.sweeping.Lock()
	defer k.sweeping.Unlock()
	if k.swept {
		return
	}
	k.swept = true
	after := sweepAtLeast
	for _, l := range k.own.defs {
		after = max(after, l.Per, l.Pause)
	}
	k.own.time.clock.AfterFunc(after, k.sweep)
}

// sweep forgets the keys that are idle, and comes again while there are others.
func (k *Keys) sweep() {
	k.sweeping.Lock()
	k.swept = false
	k.sweeping.Unlock()
	left := false
	for i := range k.shards {
		s := &k.shards[i]
		s.mu.Lock()
		now := k.own.time.now()
		for key, c := range s.keys {
			if (group{&s.scope, c}).idle(now) {
				delete(s.keys, key)
			}
		}
		left = left || len(s.keys) > 0
		if len(s.keys) == 0 {
			s.keys, s.queues = make(map[string]*counts), nil // a map keeps its memory when it is emptied
		}
		s.mu.Unlock()
	}
	if left {
		s := &k.shards[0] // any lock guards the definitions
		s.mu.Lock()
		k.sweepLater()
		s.mu.Unlock()
	}
}

// idle reports whether a group says no more than a new one.
func (g group) idle(now int64) bool {
	if g.leases > 0 || g.waiting() != nil {
		return false
	}
	for i := range g.in.defs {
		if !g.in.defs[i].Idle(&g.states[i], now) {
			return false
		}
	}
	return true
}

// Len returns how many keys are remembered.
func (k *Keys) Len() (n int) {
	if k.checkMade() != nil {
		return 0
	}
	for i := range k.shards {
		s := &k.shards[i]
		s.mu.Lock()
		n += len(s.keys)
		s.mu.Unlock()
	}
	return n
}

// Change changes the numbers of the limit with that name for all keys, see [Set.Change].
func (k *Keys) Change(to Limit) error {
	if err := k.checkMade(); err != nil {
		return err
	}
	for i := range k.shards {
		k.shards[i].mu.Lock()
		defer k.shards[i].mu.Unlock()
	}
	if err := k.own.change(to); err != nil {
		return err
	}
	for i := range k.shards {
		for _, c := range k.shards[i].keys {
			group{&k.shards[i].scope, c}.admit()
		}
	}
	return nil
}
