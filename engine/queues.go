package engine

import (
	"fmt"
	"maps"

	"github.com/tasq-dev/tasq/engine/internal/commit"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workflow"
)

// setQueue stores the setting of a queue in the transaction of a command. If nothing remains set, the setting is
// removed.
func (c *controls) setQueue(tx *commit.Tx, cmd *workflow.Command) error {
	v, err := stored(tx.Context(), tx.Store(), store.QueueSetting+cmd.Queue, store.QueueValue{})
	if err != nil {
		return err
	}
	switch by := decided(tx, cmd); cmd.Kind {
	case workflow.KindPause:
		if cmd.QueueKey != "" {
			if err := pauseKey(&v, cmd, by); err != nil {
				return err
			}
			break
		}
		if v.Paused {
			by = v.Decision.Again(by)
		}
		v.Paused, v.Decision = true, by
	case workflow.KindUnpause:
		if cmd.QueueKey == "" {
			v.Paused, v.Decision = false, store.Decision{}
		} else {
			v.Keys = maps.Clone(v.Keys)
			delete(v.Keys, cmd.QueueKey)
		}
	case workflow.KindSetWorkers:
		if w := v.Workers; w != nil && w.N == int(cmd.N) {
			by = w.Decision.Again(by)
		}
		v.Workers = &store.WorkersValue{N: int(cmd.N), Decision: by}
	case workflow.KindForgetWorkers:
		v.Workers = nil
	}
	if v.IsZero() {
		err = tx.Store().Set(tx.Context(), store.QueueSetting+cmd.Queue, nil)
	} else {
		err = setJSON(tx.Context(), tx.Store(), store.QueueSetting+cmd.Queue, v)
	}
	// If storing failed, the request fails. The read that change queues behind it then restores what is stored.
	c.change(func() {
		// A new map, since the dispatcher has the one before and may be reading it.
		if c.queues = maps.Clone(c.queues); c.queues == nil {
			c.queues = make(map[string]store.QueueValue)
		}
		if c.queues[cmd.Queue] = v; v.IsZero() {
			delete(c.queues, cmd.Queue)
		}
		c.e.dispatch.SetQueues(c.queues)
	})
	return err
}

// pauseKey pauses one key of a queue.
func pauseKey(v *store.QueueValue, cmd *workflow.Command, by store.Decision) error {
	keys := maps.Clone(v.Keys) // readers may use the map
	if keys == nil {
		keys = make(map[string]store.Decision)
	}
	if old, ok := keys[cmd.QueueKey]; ok {
		by = old.Again(by)
	}
	keys[cmd.QueueKey] = by
	if len(keys) > workflow.MaxPausedKeys {
		return fmt.Errorf("%w: %d keys of queue %q are paused, which is as many as can be: resume one of them, or pause the queue, and then %q",
			workflow.ErrBadCommand, workflow.MaxPausedKeys, cmd.Queue, cmd.QueueKey)
	}
	v.Keys = keys
	return nil
}
