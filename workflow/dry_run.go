package workflow

import (
	"encoding/json"
	"fmt"

	"github.com/tasq-dev/tasq/workitem"
)

// Preview is what a command would do, as one process reports it to another; the reader of the database decodes it with
// [github.com/tasq-dev/tasq/engine.ReadPreview].
type Preview struct {
	Result   Result           `json:"result"` // its ids are not those that the command would assign
	Trees    []PreviewTree    `json:"trees,omitempty"`
	Settings []PreviewSetting `json:"settings,omitempty"`
}

// PreviewTree is what a command would do to one root case with its descendants.
type PreviewTree struct {
	Root    workitem.CaseID `json:"root"`
	Seq     int64           `json:"seq,omitempty"` // the position of the last journal entry of the case before the command; 0 if it would create the case
	Changes json.RawMessage `json:"changes"`       // in the encoding of the journal
}

// PreviewSetting is what a command would do to one setting of the store.
type PreviewSetting struct {
	Name string          `json:"name"`           // as that of a stored setting
	From json.RawMessage `json:"from,omitempty"` // nil if there is no such setting
	To   json.RawMessage `json:"to,omitempty"`   // nil if there would be none
}

// DryRun asks what a command would do. The engine executes the command, with its callbacks and their SQL, and rolls it back; the result
// has a Preview. The error is the one that the command would return.
//
// A kind of its own, and not a field of the command: an engine that does not know it refuses it, and does not execute the command.
func DryRun(c Command) Command {
	tried := Command{Kind: KindDryRun, Actor: c.Actor, err: c.Check()}
	if tried.err == nil {
		tried.Payload, tried.err = json.Marshal(c)
	}
	return tried
}

// Tried returns the command that a dry run tries, and any other command itself.
func (c *Command) Tried() (Command, error) {
	if c.Kind != KindDryRun {
		return *c, nil
	}
	tried, err := Decode(c.Payload)
	if err == nil && tried.Kind == KindDryRun {
		err = fmt.Errorf("%w: a dry run tries a command that is no dry run itself", ErrBadCommand)
	}
	return tried, err
}
