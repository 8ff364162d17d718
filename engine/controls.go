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

// controls has the settings of limits, queues and workflows that operators have made. The store keeps them:
//
//	limit/NAME      {"limit": the definition, "n": what was set instead of its N, "at": when, "by": who, "reason": why}
//	queue/NAME      {"paused": true, "at": when, "by": who, "workers": {"n": how many, "at": when, "by": who}}
//	workflow/NAME   {"at": when it was suspended, "by": who, "reason": why}
//
// An engine also stores what its functions take of limits, so that tasq why can read it from the database alone:
//
//	takes/FINGERPRINT   {"tasks": {TASK: [{"limit": name, "n": how much}]}, "calls": {FUNCTION: ...}, "fairTasks": [TASK], "fairCalls": ...}
//
// A command writes the setting, and the engine applies it at once, so that it is in force when the caller has its
// answer. After the commit the engine reads the stored settings, which are the old ones if the commit failed. An engine
// without the workflows of a limit has its setting only, so tasq can set limits in a file that no program has open.
//
// A command reads the setting in its transaction, since another engine may have changed another part of it, as the
// workers of a queue that this one pauses.
//
// A read that began before a command is older than the setting of the command. It is dropped, since the command has its
// own read follow. Otherwise a limit that was set to 0 could let jobs start once more:
//
//	read       command          in force
//	N = 5                       5
//	           set N = 0        0         changes goes from 0 to 1
//	apply 5                     still 0   the read began at changes = 0: dropped
//	           committed        0
//	read, N = 0                 0
type controls struct {
	e         *Engine
	mu        sync.Mutex
	defined   []limit.Limit               // as the functions here define them
	limits    map[string]store.LimitValue // by name of the limit
	queues    map[string]store.QueueValue // by name of the queue
	suspended suspensions                 // of workflows
	changes   int                         // the commands that changed something
	uncertain int                         // those of them that may not have been committed
	digest    string                      // of the settings in force; "" if a command has changed them since
	trying    bool                        // see try; accessed only by the requests of the writer
}

// load reads the settings when the engine is opened, and stores the definitions of its own limits. A setting of an
// operator stays in force if the definition changes: a limit that was set to 0 during an incident must not be restored
// by a restart of the program. See redefined.
func (c *controls) load(ctx context.Context, own []limit.Limit) error {
	if err := c.read(ctx); err != nil {
		return err
	}
	takes, unused, err := c.newTakes(ctx)
	if err != nil {
		return err
	}
	c.defined = own
	others, err := c.othersWithNewer(ctx)
	if err != nil {
		return err
	}
	err = c.e.store.Update(ctx, func(tx store.Tx) (err error) {
		for _, l := range own {
			known, ok := c.limits[l.Name]
			if ok && known.Limit == l {
				continue
			}
			if known, err = stored(ctx, tx, store.LimitSetting+l.Name, known); err != nil {
				return err
			}
			if known.Limit == l { // another engine with this program was opened since the read
				c.limits[l.Name] = known
				continue
			}
			if others && slices.Contains(known.Earlier, l) {
				c.e.log.Info("a limit has a newer definition than that of this program, and another engine is open: the newer one stays in force",
					"limit", l.Name, "here", l, "now", known.Current())
				c.limits[l.Name] = known
				continue
			}
			now, dropped := redefined(known, l)
			if dropped {
				c.e.log.Warn("a limit counts something else than before, so the number that was set is dropped", "limit", l.Name, "was", known.Current(), "now", now.Current())
			}
			c.limits[l.Name] = now
			if err := c.define(ctx, tx, known, now); err != nil {
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
	for _, l := range own { // the read used the definitions before these
		c.e.dispatch.SetLimit(c.limits[l.Name].Current(), c.limits[l.Name].CurrentOf())
	}
	return nil
}

// setJSON stores a setting as JSON, the format that engines of all versions read.
func setJSON(ctx context.Context, tx store.Tx, name string, value any) error {
	raw, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return tx.Set(ctx, name, raw)
}

// stored returns a setting from the store, which another engine may have changed since this one read it, or none if
// there is no such setting.
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

// read reads the settings and applies them.
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
	suspended, err := store.ReadSuspensions(all)
	if err != nil {
		return err
	}
	for _, l := range c.defined { // another process may have removed its setting
		if _, ok := at[l.Name]; !ok {
			at[l.Name] = store.LimitValue{Limit: l}
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.changes == began && c.uncertain == 0 {
		c.limits, c.queues = at, queues
		c.suspended.set(suspended)
		c.apply(store.SettingsDigest(all))
	}
	return nil
}

// apply passes the settings to the dispatcher. The lock is held.
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
		err = c.recorded(tx, cmd, func() error { return c.setLimit(tx, cmd, decided(tx, cmd)) })
	case workflow.KindForgetLimit:
		err = c.recorded(tx, cmd, func() error { return c.forgetLimit(tx, cmd.Limit) })
	case workflow.KindLimits:
		result.Limits = c.list()
		return result, true, nil
	case workflow.KindLimitWaits:
		result.Case, result.Waits = cmd.Case, c.e.limitWaits(cmd.Case)
		return result, true, nil
	case workflow.KindQueues:
		result.Queues = c.e.dispatch.Status().Queues()
		return result, true, nil
	case workflow.KindDefinitions:
		result.Loaded = &workflow.Loaded{Opened: c.e.opened, Fingerprints: c.e.fingerprints()}
		return result, true, nil
	case workflow.KindDryRun:
		result.Preview, err = c.dryRun(tx, cmd)
	case workflow.KindPause, workflow.KindUnpause, workflow.KindSetWorkers, workflow.KindForgetWorkers:
		err = c.recorded(tx, cmd, func() error { return c.setQueue(tx, cmd) })
	case workflow.KindSuspendWorkflow, workflow.KindResumeWorkflow:
		err = c.recorded(tx, cmd, func() error { return c.setWorkflow(tx, cmd) })
	default:
		return result, false, nil
	}
	return result, true, err
}

// decided returns who has made a setting, when and why.
func decided(tx *commit.Tx, cmd *workflow.Command) store.Decision {
	d := store.Decision{At: tx.Now(), By: cmd.Actor}
	if cmd.Reason != nil {
		d.Reason = cmd.Reason.String()
	}
	return d
}

// setLimit stores the number of a limit, or of one of its keys, in the transaction of the command. The dispatcher of
// this engine applies it at once, see change; other engines read it at their next Tick. The number of the definition
// removes the setting, so that a later definition takes effect.
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
		setNumber(&known, n, by)
	} else if c.e.keyless(name) {
		return fmt.Errorf("%w: limit %s has no keys: no function here takes of it with builder.TakesBy or in steps, and engine.Config.Limits does not have it; leave the key %q out to set the limit",
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

// find returns the setting of a limit.
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

// forgetLimit removes the setting of a limit. A limit that functions here use keeps its definition. One of another
// engine stays defined in that engine, which stores it again when it is opened next.
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

// setNumber sets the number of a limit, or removes it.
func setNumber(l *store.LimitValue, n int64, by store.Decision) {
	switch {
	case n == l.Limit.N:
		l.N, l.Decision = nil, store.Decision{}
	case l.N != nil && *l.N == n:
		l.Decision = l.Decision.Again(by)
	default:
		l.N, l.Decision = &n, by
	}
}

// setKey sets the number of one key of a limit, or removes it.
func setKey(l *store.LimitValue, key string, v store.KeyValue) error {
	if old, ok := l.Keys[key]; ok && old.N == v.N {
		v.Decision = old.Decision.Again(v.Decision)
	}
	keys := maps.Clone(l.Keys) // readers may use the map
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

// change applies what the current request sets, and then reads the stored settings. The request that starts the read is
// queued behind the current one, so the read comes after its commit, whether that succeeds or fails. Until then the
// settings in force may differ from the stored ones, and other reads are dropped.
func (c *controls) change(do func()) {
	if c.trying {
		return
	}
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
		go func() { // a view must not block the writer
			defer c.e.active.add(-1)
			c.reload()
		}()
	}})
	if !sent { // the engine is closing
		c.e.active.add(-1)
	}
}

// compare reads the settings, unless the digest says that they are in force already.
func (c *controls) compare(digest string) {
	c.mu.Lock()
	same := digest != "" && digest == c.digest
	c.mu.Unlock()
	if !same {
		c.reload()
	}
}

// reload reads the settings, including those that another engine has stored.
func (c *controls) reload() {
	if err := c.read(c.e.ctx); err != nil && !errors.Is(err, ErrClosed) && c.e.ctx.Err() == nil {
		c.e.log.Error("the settings of limits and queues could not be read; they are when the engine is opened next", "error", err)
	}
}

// list returns the limits: those of the workflows here with their usage, and those that are only in the store.
func (c *controls) list() (list []workflow.LimitInfo) {
	c.mu.Lock()
	stored := maps.Clone(c.limits)
	c.mu.Unlock()
	for _, u := range c.e.dispatch.Status().Limits() {
		list = append(list, workflow.LimitInfo{Limit: u.Limit, Defined: stored[u.Limit.Name].Limit.N, Loaded: true, Keys: u.Keys, Used: u.Used,
			Waiting: u.Waiting, HeldOutside: u.HeldOutside, WaitingOutside: u.WaitingOutside, Next: u.Next, Set: why.KeysSet(stored[u.Limit.Name]),
			At: stored[u.Limit.Name].At, By: stored[u.Limit.Name].By, Reason: stored[u.Limit.Name].Reason})
		delete(stored, u.Limit.Name)
	}
	return append(list, why.LimitsSet(stored)...)
}
