package source

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// Queue is the state of a queue: the numbers of its work items and of its jobs.
type Queue struct {
	Queue   string    `json:"queue"` // "" is the default queue
	Paused  bool      `json:"paused"`
	Workers int       `json:"workers,omitempty"` // the number of jobs that run at once in each program; 0 if it is not set
	Items   int64     `json:"items"`             // not started
	Started int64     `json:"started"`           // items
	Pending int64     `json:"pending"`           // jobs
	Running int64     `json:"running"`
	Waiting int64     `json:"waiting"`                 // for steps, events or a decision
	Oldest  time.Time `json:"oldest_pending,omitzero"` // the creation time of the oldest item or job that has not started

	PausedKeys []workflow.PausedKey `json:"paused_keys,omitempty"` // the keys whose jobs do not start, sorted
}

// MaxCounted is the number up to which the lists of queues count the items of a queue, and its jobs in each state.
const MaxCounted = 1000

// Queues returns the queues that have live items or jobs, are paused, or have a set number of workers, by name. It
// counts at most the given number of items of each, and of jobs in each state; whole is false if there are more.
func Queues(ctx context.Context, r store.Reader, most int) (queues []Queue, whole bool, err error) {
	byName := make(map[string]*Queue)
	of := func(name string) *Queue {
		if byName[name] == nil {
			byName[name] = &Queue{Queue: name}
		}
		return byName[name]
	}
	settings, err := r.Settings(ctx)
	if err != nil {
		return nil, false, err
	}
	_, set, err := store.ReadControls(settings)
	if err != nil {
		return nil, false, err
	}
	for name, v := range set {
		q := of(name)
		if q.Paused = v.Paused; v.Workers != nil {
			q.Workers = v.Workers.N
		}
		q.PausedKeys = v.PausedKeys()
	}
	counts, whole, err := r.Queues(ctx, most)
	if err != nil {
		return nil, false, err
	}
	for _, c := range counts {
		of(c.Queue).add(c)
	}
	for _, q := range byName {
		queues = append(queues, *q)
	}
	slices.SortFunc(queues, func(a, b Queue) int { return strings.Compare(a.Queue, b.Queue) })
	return queues, whole, nil
}

// add adds a count to the queue. Items and jobs that have not started are waiting.
func (q *Queue) add(c store.QueueCount) {
	n, waits := &q.Waiting, false
	switch c.State {
	case workitem.Initialized.String():
		n, waits = &q.Items, true
	case workitem.Started.String():
		n = &q.Started
	case state.JobPending.String():
		n, waits = &q.Pending, true
	case state.JobRunning.String():
		n = &q.Running
	}
	*n += int64(c.N)
	if waits && (q.Oldest.IsZero() || c.Oldest.Before(q.Oldest)) {
		q.Oldest = c.Oldest
	}
}
