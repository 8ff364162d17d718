package why

import (
	"context"
	"maps"
	"slices"

	"github.com/tasq-dev/tasq/engine/internal/quota"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workflow"
)

// ReadLimits adds to the answer of an engine to [workflow.Limits] what only the database has: the cases that hold slots
// over several tasks, and how many engines there are. Without an answer, it lists the limits as they are set; the only usage that is known then is that
// of holds.
func ReadLimits(ctx context.Context, r store.Reader, known []workflow.LimitInfo) ([]workflow.LimitInfo, error) {
	list := slices.Clone(known)
	if len(known) == 0 {
		all, err := r.Settings(ctx)
		if err != nil {
			return nil, err
		}
		set, _, err := store.ReadControls(all)
		if err != nil {
			return nil, err
		}
		list = LimitsSet(set)
	}
	engines, err := engines(ctx, r)
	if err != nil {
		return nil, err
	}
	view, err := r.LimitRows(ctx, store.LimitFilter{Text: quota.HasHolds})
	if err != nil {
		return nil, err
	}
	for i := range list {
		for k := range view.Rows {
			if row := &view.Rows[k]; row.Limit == list[i].Limit.Name {
				if err := addHolders(&list[i], row); err != nil {
					return nil, err
				}
			}
		}
		list[i].Used = max(list[i].Used, list[i].Held)
		if list[i].Loaded {
			list[i].Engines = engines
		}
	}
	return list, nil
}

// addHolders adds the cases in the row of a limit that hold slots.
func addHolders(l *workflow.LimitInfo, row *store.LimitRow) error {
	holds, err := quota.HoldsIn(row.State, row.Limit)
	for i := range holds {
		h := &holds[i]
		l.Held += h.N
		if len(l.Holders) == workflow.MaxHolders {
			l.MoreHolders++
			continue
		}
		l.Holders = append(l.Holders, workflow.LimitHolder{Case: h.Case, Key: row.Key, N: h.N, Task: h.Task})
	}
	return err
}

// LimitsSet returns the limits as they are set, by name, without their usage.
func LimitsSet(set map[string]store.LimitValue) (list []workflow.LimitInfo) {
	for _, name := range slices.Sorted(maps.Keys(set)) {
		l := set[name]
		list = append(list, workflow.LimitInfo{Limit: l.Current(), Defined: l.Limit.N, Set: KeysSet(l), At: l.At, By: l.By, Reason: l.Reason})
	}
	return list
}

// KeysSet returns the keys of a limit that have definitions of their own.
func KeysSet(l store.LimitValue) (list []workflow.KeyLimit) {
	for _, key := range slices.Sorted(maps.Keys(l.Keys)) {
		set := l.Keys[key]
		list = append(list, workflow.KeyLimit{Key: key, N: set.N, At: set.At, By: set.By, Reason: set.Reason})
	}
	return list
}
