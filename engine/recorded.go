package engine

import (
	"context"
	"encoding/json"

	"github.com/tasq-dev/tasq/engine/internal/commit"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workflow"
)

// recorded runs a command that changes a setting, and records what has changed in the same transaction. A command that changes nothing is
// not recorded.
func (c *controls) recorded(tx *commit.Tx, cmd *workflow.Command, change func() error) error {
	name := settingOf(cmd)
	before, err := tx.Store().Setting(tx.Context(), name)
	if err != nil {
		return err
	}
	if err := change(); err != nil {
		return err
	}
	after, err := tx.Store().Setting(tx.Context(), name)
	if err != nil {
		return err
	}
	values := store.ValuesChanged(name, before, after)
	if len(values) == 0 {
		return nil
	}
	whole := *cmd // its keys may be names of customers, and are in the values, which pages can hide
	whole.QueueKey, whole.LimitKey = "", ""
	return store.NoteSetting(tx.Context(), tx.Store(), c.e.ids.NewID(tx.Now()).String(),
		store.SettingChange{Decision: decided(tx, cmd), Command: whole.String(), Setting: name, Values: values})
}

// define stores the setting of a limit that the program of this engine defines, and records a definition that replaces another one. Who
// has changed it is the engine that was opened first with the new definition: for the next ones of a fleet it is no change.
func (c *controls) define(ctx context.Context, tx store.Tx, was, now store.LimitValue) error {
	name, at := store.LimitSetting+now.Limit.Name, c.e.now()
	before, err := json.Marshal(was)
	if err != nil {
		return err
	}
	after, err := json.Marshal(now)
	if err != nil {
		return err
	}
	if err := tx.Set(ctx, name, after); err != nil || was.Limit.Name == "" {
		return err
	}
	return store.NoteSetting(ctx, tx, c.e.ids.NewID(at).String(), store.SettingChange{Decision: store.Decision{At: at, By: c.e.cfg.Owner},
		Command: "limit define " + now.Limit.Name, Setting: name, Values: store.ValuesChanged(name, before, after)})
}
