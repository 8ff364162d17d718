package workflow

import (
	"time"

	"github.com/tasq-dev/tasq/workitem"
)

// Loaded describes the definitions of an engine.
type Loaded struct {
	Opened       time.Time `json:"opened"`       // when the engine was opened
	Fingerprints []string  `json:"fingerprints"` // of its definitions
}

// Definitions lists the definitions of the engine that executes the command. It changes nothing.
func Definitions() Command { return Command{Kind: KindDefinitions} }

// LimitWaits lists the limits that jobs of a root case and its descendants wait for, in the engine that executes the command. It changes
// nothing.
func LimitWaits(root workitem.CaseID) Command { return Command{Kind: KindLimitWaits, Case: root} }
