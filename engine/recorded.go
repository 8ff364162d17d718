package engine

import (
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
