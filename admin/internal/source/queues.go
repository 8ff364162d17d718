package source

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// Queue is how a queue stands: the work items in it, which people or workers do, and the jobs of workers.
type Queue struct {
	Queue   string    `json:"queue"` // "" is the default queue
	Paused  bool      `json:"paused"`
	Workers int       `json:"workers,omitempty"` // how many of its jobs each program is to run at a time; 0 if nothing is set
	Items   int64     `json:"items"`             // that no one has started
	Started int64     `json:"started"`           // items
	Pending int64     `json:"pending"`           // jobs
	Running int64     `json:"running"`
	Waiting int64     `json:"waiting"`                 // for steps, events or a decision
	Oldest  time.Time `json:"oldest_pending,omitzero"` // when the oldest item that no one has started, or pending job, was created
}

// MaxCounted is how many items, and jobs of a state, the lists of queues look at.
const MaxCounted = 1000

// Queues lists the queues that have live items or jobs, are paused or have workers that were set, by name. It looks at the oldest most
// items, and at as many jobs of each state; whole is false if there are more.
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
	}
	items, err := r.Items(ctx, store.ItemFilter{States: []workitem.State{workitem.Initialized, workitem.Started}, Page: store.Page{Limit: most}})
	if err != nil {
		return nil, false, err
	}
	whole = len(items) < most
	for _, it := range items {
		of(it.Queue).countItem(it.Item)
	}
	for _, st := range []state.JobState{state.JobPending, state.JobRunning, state.JobWaiting} {
		jobs, err := r.Jobs(ctx, store.JobFilter{Kind: state.JobRun, States: []state.JobState{st}, Page: store.Page{Limit: most}})
		if err != nil {
			return nil, false, err
		}
		whole = whole && len(jobs) < most
		for _, j := range jobs {
			of(j.Queue).count(j)
		}
	}
	for _, q := range byName {
		queues = append(queues, *q)
	}
	slices.SortFunc(queues, func(a, b Queue) int { return strings.Compare(a.Queue, b.Queue) })
	return queues, whole, nil
}

func (q *Queue) countItem(it *workitem.Item) {
	if it.State == workitem.Started {
		q.Started++
		return
	}
	q.Items++
	q.waitsSince(it.Created)
}

func (q *Queue) waitsSince(t time.Time) {
	if q.Oldest.IsZero() || t.Before(q.Oldest) {
		q.Oldest = t
	}
}

func (q *Queue) count(j *state.Job) {
	switch j.State {
	case state.JobPending:
		q.Pending++
		q.waitsSince(j.Created)
	case state.JobRunning:
		q.Running++
	case state.JobWaiting:
		q.Waiting++
	}
}
