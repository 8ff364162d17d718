package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/tasq-dev/tasq/engine/internal/commit"
	"github.com/tasq-dev/tasq/engine/why"
	"github.com/tasq-dev/tasq/limit"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workflow"
)

// controls are what operators set of limits and queues. They are settings of the store:
//
//	limit/NAME   {"limit": the definition, "n": what was set instead of its N, "at": when, "by": who}
//	queue/NAME   {"paused": true, "at": when, "by": who, "workers": {"n": how many, "at": when, "by": who}}
//
// Beside them an engine keeps what its functions take of limits, which tasq why reads without it:
//
//	takes/FINGERPRINT   {"tasks": {TASK: [{"limit": name, "n": how much}]}, "calls": {FUNCTION: ...}, "fairTasks": [TASK], "fairCalls": ...}
//
// A command writes the setting and has the engine go by it, so that it holds when the caller has its answer; behind the
// commit the engine looks at what is stored, which is the old setting if the commit failed. An engine without the
// workflows knows the limits by their settings, so that tasq can set them in a file that no program has open.
//
// A command reads the setting in its transaction: another engine may have set another part of it, as the workers of a
// queue that this one pauses.
//
// A reading that began before a command is older than what the command set, so it is dropped: the command has its own
// reading follow. Without that, a limit that was set to 0 would let jobs begin once more:
//
//	reading    command          in force
//	N = 5                       5
//	           set N = 0        0         changes goes from 0 to 1
//	apply 5                     still 0   the reading began at changes = 0: dropped
//	           committed        0
//	reading, N = 0              0
type controls struct {
	e         *Engine
	mu        sync.Mutex
	defined   []limit.Limit               // as the functions here define them
	limits    map[string]store.LimitValue // by name of the limit
	queues    map[string]store.QueueValue // by name of the queue
	changes   int                         // the commands that changed something
	uncertain int                         // those of them that may not have been committed
	digest    string                      // of the settings that are in force; "" if a command has changed them since
}

// load reads the settings as the engine is opened, and keeps the definitions of its own limits. What an operator has
// set stays in force over a new definition: a limit that was set to 0 during an incident does not come back because the
// program is restarted. See redefined.
func (c *controls) load(ctx context.Context, own []limit.Limit) error {
	if err := c.read(ctx); err != nil {
		return err
	}
	takes, unused, err := c.newTakes(ctx)
	if err != nil {
		return err
	}
	c.defined = own
	err = c.e.store.Update(ctx, func(tx store.Tx) (err error) {
		for _, l := range own {
			known, ok := c.limits[l.Name]
			if ok && known.Limit == l {
				continue
			}
			if known, err = stored(ctx, tx, store.LimitSetting+l.Name, known); err != nil {
				return err
			}
			now, dropped := redefined(known, l)
			if dropped {
				c.e.log.Warn("a limit counts something else than before, so the number that was set is dropped", "limit", l.Name, "was", known.Current(), "now", now.Current())
			}
			c.limits[l.Name] = now
			if err := setJSON(ctx, tx, store.LimitSetting+l.Name, now); err != nil {
				return err
			}
		}
		for _, fingerprint := range slices.Sorted(maps.Keys(takes)) {
			if err := setJSON(ctx, tx, store.TakesSetting+fingerprint, takes[fingerprint]); err != nil {
				return err
			}
		}
		for _, fingerprint := range unused {
			if err := tx.Set(ctx, store.TakesSetting+fingerprint, nil); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, l := range own { // the look went by the definitions of before
		c.e.dispatch.SetLimit(c.limits[l.Name].Current(), c.limits[l.Name].CurrentOf())
	}
	return nil
}

// redefined is a setting after the program has changed the definition of its limit. A number that was set stays in
// force while it counts the same: slots, or amounts in a time of the same length, whatever the algorithm. Where it does
// not, 5 slots would become 5 calls a minute; so it is dropped, unless it is 0, which pauses whatever the limit counts.
func redefined(was store.LimitValue, l limit.Limit) (now store.LimitValue, dropped bool) {
	now = was
	now.Limit = l
	kind := func(l limit.Limit) limit.Algorithm {
		if l.Algorithm == limit.Slots || l.Algorithm == limit.CircuitBreaker {
			return l.Algorithm
		}
		return limit.SlidingWindow // stands for all rates
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

// setJSON keeps a setting as JSON; other engines, also older ones, read it.
func setJSON(ctx context.Context, tx store.Tx, name string, value any) error {
	raw, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return tx.Set(ctx, name, raw)
}

// stored is the value of a setting as it is in the store, which another engine may have changed since this one looked.
// If there is none, it is the value given.
func stored[T any](ctx context.Context, tx store.Tx, name string, none T) (value T, err error) {
	raw, err := tx.Setting(ctx, name)
	if err != nil || raw == nil {
		return none, err
	}
	if err := json.Unmarshal(raw, &value); err != nil {
		return value, fmt.Errorf("the setting %s cannot be read: %w", name, err)
	}
	return value, nil
}

// read takes up what is set.
func (c *controls) read(ctx context.Context) error {
	c.mu.Lock()
	began := c.changes
	c.mu.Unlock()
	var all []store.Setting
	err := c.e.View(ctx, func(r store.Reader) (err error) {
		all, err = r.Settings(ctx)
		return err
	})
	if err != nil {
		return err
	}
	at, queues, err := store.ReadControls(all)
	if err != nil {
		return err
	}
	for _, l := range c.defined { // another process may have forgotten one
		if _, ok := at[l.Name]; !ok {
			at[l.Name] = store.LimitValue{Limit: l}
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.changes == began && c.uncertain == 0 {
		c.limits, c.queues = at, queues
		c.apply(store.SettingsDigest(all))
	}
	return nil
}

// apply has the dispatcher go by what is set. Before it is made, nothing runs. The lock is held.
func (c *controls) apply(digest string) {
	if c.e.dispatch == nil {
		return
	}
	c.digest = digest
	for _, s := range c.limits {
		c.e.dispatch.SetLimit(s.Current(), s.CurrentOf())
	}
	c.e.dispatch.SetQueues(c.queues)
}

// Control implements command.Controls.
func (c *controls) Control(tx *commit.Tx, cmd *workflow.Command) (result workflow.Result, known bool, err error) {
	switch cmd.Kind {
	case workflow.KindSetLimit:
		return result, true, c.setLimit(tx, cmd, decided(tx, cmd))
	case workflow.KindForgetLimit:
		return result, true, c.forgetLimit(tx, cmd.Limit)
	case workflow.KindLimits:
		result.Limits = c.list()
		return result, true, nil
	case workflow.KindLimitWaits:
		result.Case, result.Waits = cmd.Case, c.e.limitWaits(cmd.Case)
		return result, true, nil
	case workflow.KindQueues:
		result.Queues = c.e.dispatch.Queues()
		return result, true, nil
	case workflow.KindPause, workflow.KindUnpause, workflow.KindSetWorkers, workflow.KindForgetWorkers:
		err = c.setQueue(tx, cmd)
	default:
		return result, false, nil
	}
	return result, true, err
}

// decided is who decides a setting, and when.
func decided(tx *commit.Tx, cmd *workflow.Command) store.Decision {
	return store.Decision{At: tx.Now(), By: cmd.Actor}
}

// setLimit keeps the number of a limit, or of one of its keys, in the transaction of the command. The dispatcher of
// this engine goes by it at once, see change; other engines learn it as they look for settings. The number that the
// definition gives takes the setting away again, so that a later version of the program that changes it is obeyed.
func (c *controls) setLimit(tx *commit.Tx, cmd *workflow.Command, by store.Decision) error {
	name, n := cmd.Limit, cmd.N
	known, err := c.find(name)
	if err != nil {
		return err
	}
	if known, err = stored(tx.Context(), tx.Store(), store.LimitSetting+name, store.LimitValue{Limit: known.Limit}); err != nil {
		return err
	}
	if err := (store.LimitValue{Limit: known.Limit, N: &n}).Current().Validate(); err != nil {
		return fmt.Errorf("%w: %w", workflow.ErrBadCommand, err)
	}
	if cmd.LimitKey == "" {
		known.N, known.Decision = &n, by
		if n == known.Limit.N {
			known.N, known.Decision = nil, store.Decision{}
		}
	} else if c.e.definitions.Keyless(name) {
		return fmt.Errorf("%w: limit %s has no keys: no function here takes of it with builder.TakesBy or in steps; leave the key %q out to set the limit",
			workflow.ErrBadCommand, name, cmd.LimitKey)
	} else if err := setKey(&known, cmd.LimitKey, store.KeyValue{N: n, Decision: by}); err != nil {
		return err
	}
	if err := setJSON(tx.Context(), tx.Store(), store.LimitSetting+name, known); err != nil {
		return err
	}
	c.change(func() {
		c.limits[name] = known
		c.e.dispatch.SetLimit(known.Current(), known.CurrentOf())
	})
	return nil
}

// find finds what is set of a limit.
func (c *controls) find(name string) (store.LimitValue, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	known, ok := c.limits[name]
	switch {
	case ok:
		return known, nil
	case len(c.limits) == 0:
		return known, fmt.Errorf("limit %q: no workflow of this database has limits: %w", name, ErrNotFound)
	}
	return known, fmt.Errorf("limit %q: no workflow of this database has it, there are %q: %w", name, slices.Sorted(maps.Keys(c.limits)), ErrNotFound)
}

// forgetLimit takes the setting of a limit away. One that the functions here take of keeps its definition; one of
// another engine has it in the memory of that engine, and in the store when it is opened next.
func (c *controls) forgetLimit(tx *commit.Tx, name string) error {
	if _, err := c.find(name); err != nil {
		return err
	}
	own := slices.IndexFunc(c.defined, func(l limit.Limit) bool { return l.Name == name })
	if own < 0 {
		err := tx.Store().Set(tx.Context(), store.LimitSetting+name, nil)
		c.change(func() { delete(c.limits, name) })
		return err
	}
	defined := store.LimitValue{Limit: c.defined[own]}
	err := setJSON(tx.Context(), tx.Store(), store.LimitSetting+name, defined)
	c.change(func() {
		c.limits[name] = defined
		c.e.dispatch.SetLimit(defined.Current(), nil)
	})
	return err
}

// setKey gives a key of a limit a number of its own, or that of the others again.
func setKey(l *store.LimitValue, key string, v store.KeyValue) error {
	keys := maps.Clone(l.Keys) // others read the map
	switch {
	case v.N == l.Current().N:
		delete(keys, key)
	case keys == nil:
		keys = map[string]store.KeyValue{key: v}
	default:
		keys[key] = v
	}
	if len(keys) > workflow.MaxLimitKeys {
		return fmt.Errorf("%w: %d keys of limit %s have a number of their own, which is as many as can: set one of them to %d, the number of the others, and then %q",
			workflow.ErrBadCommand, workflow.MaxLimitKeys, l.Limit.Name, l.Current().N, key)
	}
	l.Keys = keys
	return nil
}

// change has the engine go by what the request under way sets, and look at the settings behind it. The request that
// does the look is queued behind the one under way, so it ends after its commit, in whatever way that ends; until then
// what is in force may be more than what is stored, and readings of others are dropped.
func (c *controls) change(do func()) {
	c.mu.Lock()
	c.changes++
	c.uncertain++
	c.digest = ""
	do()
	c.mu.Unlock()
	c.e.active.add(1)
	sent := c.e.writer.Send(&commit.Request{Reads: true, Run: func(*commit.Tx) error { return nil }, Ended: func(error) {
		c.mu.Lock()
		c.uncertain--
		c.mu.Unlock()
		go func() { // the writer does not wait for a view
			defer c.e.active.add(-1)
			c.reload()
		}()
	}})
	if !sent { // the engine closes
		c.e.active.add(-1)
	}
}

// compare takes up what is set unless it is in force already, by the digest of what is stored.
func (c *controls) compare(digest string) {
	c.mu.Lock()
	same := digest != "" && digest == c.digest
	c.mu.Unlock()
	if !same {
		c.reload()
	}
}

// reload takes up what is set, by another engine too.
func (c *controls) reload() {
	if err := c.read(c.e.ctx); err != nil && !errors.Is(err, ErrClosed) && c.e.ctx.Err() == nil {
		c.e.log.Error("the settings of limits and queues could not be read; they are when the engine is opened next", "error", err)
	}
}

// list describes the limits: those of the workflows here with what they are used for, and those that only the store
// knows.
func (c *controls) list() (list []workflow.LimitInfo) {
	c.mu.Lock()
	stored := maps.Clone(c.limits)
	c.mu.Unlock()
	for _, u := range c.e.dispatch.Limits() {
		list = append(list, workflow.LimitInfo{Limit: u.Limit, Defined: stored[u.Limit.Name].Limit.N, Loaded: true, Keys: u.Keys, Used: u.Used,
			Waiting: u.Waiting, Next: u.Next, Set: why.KeysSet(stored[u.Limit.Name])})
		delete(stored, u.Limit.Name)
	}
	return append(list, why.LimitsSet(stored)...)
}
