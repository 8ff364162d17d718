package workflow

import (
	"fmt"
	"time"
)

// QueueInfo is how a queue of jobs stands in the engine that was asked.
type QueueInfo struct {
	Queue      string    `json:"queue"`                 // "" is the default one
	Workers    int       `json:"workers"`               // how many jobs it runs at a time
	Running    int       `json:"running"`               // jobs with a worker
	Waiting    int       `json:"waiting"`               // jobs that are due and have not begun: for a worker, a limit, or the end of the pause
	MaxPending int       `json:"max_pending,omitempty"` // how many jobs wait when starts are refused; 0 without a bound
	Keys       int       `json:"keys,omitempty"`        // how many keys have jobs that wait, if the queue takes turns between keys
	Paused     bool      `json:"paused,omitempty"`
	Oldest     time.Time `json:"oldest,omitzero"` // since when the first of them is due
}

// Queues lists the queues of the engine. The result has them.
func Queues() Command { return Command{Kind: KindQueues} }

// FullError refuses to start what would wait in a queue that is full. It is an [ErrFull].
type FullError struct {
	Queue   string // "" is the default one
	Pending int    // how many jobs wait to begin
	Max     int    // how many may
}

// Error names the queue.
func (e *FullError) Error() string {
	return fmt.Sprintf("queue %q is full: %d jobs wait to begin, and %d may (engine.Config.MaxPending): start it again later, or have the "+
		"engine wait with engine.Config.WaitWhenFull", e.Queue, e.Pending, e.Max)
}

// Is reports whether the target is ErrFull.
func (e *FullError) Is(target error) bool { return target == ErrFull }
