package workflow

import "time"

// Loaded describes the definitions of an engine.
type Loaded struct {
	Opened       time.Time `json:"opened"`       // when the engine was opened
	Fingerprints []string  `json:"fingerprints"` // of its definitions
}

// Definitions lists the definitions of the engine that executes the command. It changes nothing.
func Definitions() Command { return Command{Kind: KindDefinitions} }
