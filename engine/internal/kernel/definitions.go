package kernel

import (
	"fmt"

	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// definitions finds the definitions of the cases of a command. A definition is found by its fingerprint, which a case keeps for its
// life.
type definitions struct {
	host Definitions
}

// of returns the definition of a case.
func (ds *definitions) of(c *state.Case) (*workflow.Definition, error) {
	if d := ds.host.Definition(c.Fingerprint); d != nil {
		return d, nil
	}
	return nil, &NotLoadedError{Case: c.ID, Workflow: c.Workflow, Version: c.Version, Fingerprint: c.Fingerprint}
}

// NotLoadedError says that the engine was not opened with the definition of a case. It is an [ErrUnknown].
type NotLoadedError struct {
	Case     workitem.CaseID
	Workflow string
	Version  string // "" for a definition without one

	Fingerprint string // of the definition
}

// Error names the case, the definition, and what to do.
func (e *NotLoadedError) Error() string {
	return fmt.Sprintf("case %s runs on %s, which the engine was not opened with: open it with that too, or act through the program "+
		"that has it", e.Case, versioned(e.Workflow, e.Version))
}

// Is reports whether the target is [ErrUnknown].
func (e *NotLoadedError) Is(target error) bool { return target == ErrUnknown }

// versioned returns the name of a workflow with its version, if it has one, for errors.
func versioned(name, version string) string {
	if version == "" {
		return "workflow " + name
	}
	return "workflow " + name + " version " + version
}

// task returns the part of a definition that concerns one task, besides the net: callbacks, policy, timers.
func (ds *definitions) task(c *state.Case, t net.TaskID) (*workflow.Task, error) {
	d, err := ds.of(c)
	if err != nil {
		return nil, err
	}
	return &d.Tasks[t], nil
}
