package store

import (
	"context"
	"time"
)

// QueueBacklog counts the live work of a queue, for people and for workers.
type QueueBacklog struct {
	Queue   string    // "" is the default queue
	Items   int       // live work items
	Started int       // of them, those that were started
	Jobs    int       // live jobs
	Running int       // of them, those with a worker
	Oldest  time.Time // when the first of these items and jobs was created
	Due     int       // jobs that call a function, are due and have not begun; see [Counter.Backlog]
	Since   time.Time // when the first of those was due; zero if there is none
}

// QueueCount is a number of live work items or jobs of one queue in one state.
type QueueCount struct {
	Queue  string    // "" is the default queue
	What   string    // "item" or "job"
	State  string    // of the items or jobs
	N      int       // of those that were looked at
	Oldest time.Time // when the first of these was created
}

// MaxQueues is how many queues [Counter.Queues] looks at, by their names.
const MaxQueues = 1000

// Backlog counts the live work items and jobs of each queue, sorted by its name. Due and Since are left out.
func Backlog(ctx context.Context, v Viewer) (all []QueueBacklog, err error) {
	err = v.View(ctx, func(r Reader) error {
		all, err = r.Backlog(ctx, time.Time{})
		return err
	})
	return all, err
}
