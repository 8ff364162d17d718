package workflow

import (
	"errors"
	"fmt"
	"time"
)

// QueueInfo is the state of a job queue in one engine.
type QueueInfo struct {
	Queue      string `json:"queue"`                 // "" is the default one
	Workers    int    `json:"workers"`               // how many jobs it runs at a time
	Defined    int    `json:"defined"`               // how many it runs by its configuration
	Set        int    `json:"set,omitempty"`         // how many each engine is to run, see [SetWorkers]; 0 if nothing is set
	Running    int    `json:"running"`               // jobs with a worker
	Waiting    int    `json:"waiting"`               // jobs that are due and have not begun: for a worker, a limit, or the end of the pause
	MaxPending int    `json:"max_pending,omitempty"` // how many jobs wait when starts are refused; 0 without a bound
	Keys       int    `json:"keys,omitempty"`        // how many keys have jobs that wait, if the queue takes turns between keys
	Paused     bool   `json:"paused,omitempty"`

	PausedKeys []PausedKey `json:"pausedKeys,omitempty"` // the keys that are paused, sorted, see [PauseKey]

	Oldest time.Time `json:"oldest,omitzero"` // since when the first of them is due

	// At, By and Reason say when, by whom and why the queue was paused or its workers were set, whichever was last; zero if neither is
	// so. engine/why.QueuesSet reads them.
	At     time.Time `json:"at,omitzero"`
	By     string    `json:"by,omitempty"`
	Reason string    `json:"reason,omitempty"`

	// Fleet counts the jobs of all engines of the database; nil if there is only one. engine/why.QueuesOfFleet reads it.
	Fleet *QueueFleet `json:"fleet,omitempty"`
}

// PausedKey is a key of a queue whose jobs do not start.
type PausedKey struct {
	Key    string    `json:"key"`
	At     time.Time `json:"at,omitzero"`
	By     string    `json:"by,omitempty"`
	Reason string    `json:"reason,omitempty"`
}

// QueueFleet is the state of a job queue in all engines of a database.
type QueueFleet struct {
	Engines int       `json:"engines"`         // that have the database open, also if they have no workers for the queue
	Running int       `json:"running"`         // jobs with a worker
	Waiting int       `json:"waiting"`         // jobs that are due and have not begun
	Oldest  time.Time `json:"oldest,omitzero"` // since when the first of them is due
}

// Queues lists the queues of the engine. It changes nothing.
func Queues() Command { return Command{Kind: KindQueues} }

// PauseQueue stops the start of jobs of a queue, in all processes, until it is resumed. Running jobs continue. "" is the default
// queue.
func PauseQueue(queue string, opts ...Option) Command {
	return With(Command{Kind: KindPause, Queue: queue}, opts...)
}

// ResumeQueue ends the pause of a queue: its jobs start again.
func ResumeQueue(queue string, opts ...Option) Command {
	return With(Command{Kind: KindUnpause, Queue: queue}, opts...)
}

// PauseKey stops the start of the jobs of one key of a queue, in all processes, until it is resumed: the key that builder.FairBy computes, such as
// a customer. Running jobs continue, and so do jobs of other keys. At most [MaxPausedKeys] keys of a queue are paused. A key that no job has is
// accepted, since the next job may have it. For a key of a limit, such as that of builder.TakesBy, use SetLimitOf with 0.
func PauseKey(queue, key string, opts ...Option) Command {
	return ofKey(Command{Kind: KindPause, Queue: queue, QueueKey: key}, opts)
}

// ResumeKey ends the pause of a key of a queue: its jobs start again, after those of other keys that wait for the same turn. A pause of the whole
// queue stays.
func ResumeKey(queue, key string, opts ...Option) Command {
	return ofKey(Command{Kind: KindUnpause, Queue: queue, QueueKey: key}, opts)
}

func ofKey(c Command, opts []Option) Command {
	c = With(c, opts...)
	if c.QueueKey == "" {
		c.err = errors.Join(c.err, fmt.Errorf("%w: the key of queue %q is empty; name one, or use PauseQueue and ResumeQueue", ErrBadCommand, c.Queue))
	}
	return c
}

// MaxPausedKeys is the largest number of keys of a queue that are paused at a time. Engines keep them in memory.
const MaxPausedKeys = 1000

// SetWorkers sets how many jobs of a queue run concurrently in each engine, 1 or more, instead of engine.Config.Queues and Workers; "" is
// the default queue. An engine runs at most the larger of these two; an engine whose configuration stops the queue still runs none. Running
// jobs continue: with fewer workers, the next jobs start when enough have ended. The number is stored, and other engines apply it within a
// second. To stop a queue, use PauseQueue.
func SetWorkers(queue string, n int, opts ...Option) Command {
	return With(Command{Kind: KindSetWorkers, Queue: queue, N: int64(n)}, opts...)
}

// ForgetWorkers removes the number that SetWorkers set: each engine uses its configuration again.
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

// FullError is the error of a start that would add a job to a full queue. It matches ErrFull.
type FullError struct {
	Queue   string // "" is the default one
	Pending int    // the number of waiting jobs
	Max     int    // the most that may wait
}

// Error names the queue.
func (e *FullError) Error() string {
	return fmt.Sprintf("queue %q is full: %d jobs wait to begin, and %d may (engine.Config.MaxPending): start it again later, or have the "+
		"engine wait with engine.Config.WaitWhenFull", e.Queue, e.Pending, e.Max)
}

// Is reports whether the target is ErrFull.
func (e *FullError) Is(target error) bool { return target == ErrFull }
