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
		list[i].PausedKeys = v.PausedKeys()
		list[i].At, list[i].By, list[i].Reason = last.At, last.By, last.Reason
	}
	slices.SortFunc(list, func(a, b workflow.QueueInfo) int { return cmp.Compare(a.Queue, b.Queue) })
	return list, nil
}

// The functions below add to what one engine answers what only the database has: who changed a setting, when and why, and
// the jobs of other engines.

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

// QueuesOfFleet adds to a list of queues, as one of several engines reports it, the jobs of all engines as the database has
// them, and the queues that only other engines have. It changes nothing if the database has one engine at most. It reads
// each live item and job.
func QueuesOfFleet(ctx context.Context, r store.Reader, now time.Time, list []workflow.QueueInfo) ([]workflow.QueueInfo, error) {
	engines, err := engines(ctx, r)
	if err != nil || engines == 0 {
		return list, err
	}
	backlog, err := r.Backlog(ctx, now)
	if err != nil {
		return nil, err
	}
	list = slices.Clone(list)
	for i := range list {
		list[i].Fleet = &workflow.QueueFleet{Engines: engines}
	}
	for _, b := range backlog {
		i := slices.IndexFunc(list, func(q workflow.QueueInfo) bool { return q.Queue == b.Queue })
		switch {
		case b.Running+b.Due == 0:
			continue
		case i < 0:
			i, list = len(list), append(list, workflow.QueueInfo{Queue: b.Queue})
		}
		list[i].Fleet = &workflow.QueueFleet{Engines: engines, Running: b.Running, Waiting: b.Due, Oldest: b.Since}
	}
	slices.SortFunc(list, func(a, b workflow.QueueInfo) int { return cmp.Compare(a.Queue, b.Queue) })
	return list, nil
}

// engines returns how many engines have the database open; 0 if there is one at most.
func engines(ctx context.Context, r store.Reader) (int, error) {
	fleet, ok := r.(store.Members)
	if !ok {
		return 0, nil
	}
	members, err := fleet.Members(ctx)
	if err != nil || len(members) < 2 {
		return 0, err
	}
	return len(members), nil
}
