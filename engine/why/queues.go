package why

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workflow"
)

// ReadQueues returns the queues as the database has them, for use when no engine answers [workflow.Queues]: those with
// due jobs, those that are paused, and those whose workers are set. The running jobs, workers, bounds and keys are not
// known then. It reads each live item and job.
func ReadQueues(ctx context.Context, r store.Reader, now time.Time) ([]workflow.QueueInfo, error) {
	settings, err := r.Settings(ctx)
	if err != nil {
		return nil, err
	}
	_, set, err := store.ReadControls(settings)
	if err != nil {
		return nil, err
	}
	backlog, err := r.Backlog(ctx, now)
	if err != nil {
		return nil, err
	}
	var list []workflow.QueueInfo
	for _, b := range backlog {
		if b.Due > 0 {
			list = append(list, workflow.QueueInfo{Queue: b.Queue, Waiting: b.Due, Oldest: b.Since})
		}
	}
	for name, v := range set {
		last := v.Last()
		i := slices.IndexFunc(list, func(q workflow.QueueInfo) bool { return q.Queue == name })
		if i < 0 {
			i, list = len(list), append(list, workflow.QueueInfo{Queue: name})
		}
		if list[i].Paused = v.Paused; v.Workers != nil {
			list[i].Set = v.Workers.N
		}
		list[i].At, list[i].By, list[i].Reason = last.At, last.By, last.Reason
	}
	slices.SortFunc(list, func(a, b workflow.QueueInfo) int { return cmp.Compare(a.Queue, b.Queue) })
	return list, nil
}

// QueuesSet adds to a list of queues, as a running program reports it, when, by whom and why they were paused or their workers were set.
func QueuesSet(ctx context.Context, r store.Reader, list []workflow.QueueInfo) error {
	settings, err := r.Settings(ctx)
	if err != nil {
		return err
	}
	_, set, err := store.ReadControls(settings)
	for i := range list {
		last := set[list[i].Queue].Last()
		list[i].At, list[i].By, list[i].Reason = last.At, last.By, last.Reason
	}
	return err
}
