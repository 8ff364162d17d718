package workflow

import (
	"fmt"
	"time"
)

// QueueInfo is how a queue of jobs stands in the engine that was asked.
type QueueInfo struct {
	Queue      string    `json:"queue"`                 // "" is the default one
	Workers    int       `json:"workers"`               // how many jobs it runs at a time
	Defined    int       `json:"defined"`               // how many it runs by its configuration
	Set        int       `json:"set,omitempty"`         // how many each engine is to run, see [SetWorkers]; 0 if nothing is set
	Running    int       `json:"running"`               // jobs with a worker
	Waiting    int       `json:"waiting"`               // jobs that are due and have not begun: for a worker, a limit, or the end of the pause
	MaxPending int       `json:"max_pending,omitempty"` // how many jobs wait when starts are refused; 0 without a bound
	Keys       int       `json:"keys,omitempty"`        // how many keys have jobs that wait, if the queue takes turns between keys
	Paused     bool      `json:"paused,omitempty"`
	Oldest     time.Time `json:"oldest,omitzero"` // since when the first of them is due
}

// Queues lists the queues of the engine. The result has them.
func Queues() Command { return Command{Kind: KindQueues} }

// PauseQueue has no job of a queue begin until it is resumed, in whatever process. Those that run go on. "" is the default queue.
func PauseQueue(queue string, opts ...Option) Command {
	return With(Command{Kind: KindPause, Queue: queue}, opts...)
}

// ResumeQueue has the jobs of a paused queue begin again.
func ResumeQueue(queue string, opts ...Option) Command {
	return With(Command{Kind: KindUnpause, Queue: queue}, opts...)
}

// SetWorkers has n jobs of a queue run at a time, 1 or more, in each engine that runs jobs of it, in place of what engine.Config.Queues and Workers
// say; "" is the default queue. An engine runs at most as many as the larger of these two; one that stops the queue leaves it alone. What runs
// goes on: with fewer workers, the next jobs begin when enough have ended. The store remembers the number, and other engines learn it within a second. To have none begin, use [PauseQueue].
func SetWorkers(queue string, n int, opts ...Option) Command {
	return With(Command{Kind: KindSetWorkers, Queue: queue, N: int64(n)}, opts...)
}

// ForgetWorkers forgets what [SetWorkers] set: each engine has the number of its configuration again.
func ForgetWorkers(queue string, opts ...Option) Command {
	return With(Command{Kind: KindForgetWorkers, Queue: queue}, opts...)
}

// MaxWorkers is the largest number that [SetWorkers] takes.
const MaxWorkers = 1_000_000

func (c *Command) checkWorkers() error {
	switch {
	case c.Kind != KindSetWorkers || c.N >= 1 && c.N <= MaxWorkers:
		return nil
	case c.N == 0:
		return fmt.Errorf("%w: a queue has 1 worker or more; to have none of its jobs begin, pause it (tasq queue pause, workflow.PauseQueue)", ErrBadCommand)
	}
	return fmt.Errorf("%w: %d workers: give 1 to %d", ErrBadCommand, c.N, MaxWorkers)
}

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
