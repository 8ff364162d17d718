package store

import (
	"context"
	"iter"
	"slices"

	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// ByCase reports whether the filter selects by a property of cases that [IncidentHead] does not have.
func (f *IncidentFilter) ByCase() bool { return f.Key != "" || len(f.Labels) > 0 }

// fewCases is how many cases with a key or labels are looked at instead of all open incidents.
const fewCases = 200

// roots returns the root cases of those with the key and the labels; nil if there are more than few.
func (f *IncidentFilter) roots(ctx context.Context, v Viewer, few int) (roots []workitem.CaseID, err error) {
	err = v.View(ctx, func(r Reader) error {
		found, err := r.Cases(ctx, CaseFilter{Key: f.Key, Labels: f.Labels, Page: Page{Limit: few + 1}})
		if err != nil || len(found) > few {
			return err
		}
		roots = []workitem.CaseID{} // which selects none
		for _, c := range found {
			if !slices.Contains(roots, c.Root) {
				roots = append(roots, c.Root)
			}
		}
		return nil
	})
	return roots, err
}

// ofCases returns those of the jobs that match. The cases of so many jobs are read at once.
func (f *IncidentFilter) ofCases(ctx context.Context, v Viewer, jobs iter.Seq2[*state.Job, error]) iter.Seq2[*state.Job, error] {
	return func(yield func(*state.Job, error) bool) {
		var some []*state.Job
		flush := func() bool {
			found, err := f.inCases(ctx, v, some)
			some = some[:0]
			if err != nil {
				yield(nil, err)
				return false
			}
			for _, j := range found {
				if !yield(j, nil) {
					return false
				}
			}
			return true
		}
		for j, err := range jobs {
			if err != nil {
				yield(nil, err)
				return
			}
			if !f.matches(j) {
				continue
			}
			if some = append(some, j); (!f.ByCase() || len(some) == 500) && !flush() {
				return
			}
		}
		flush()
	}
}

// inCases returns the jobs whose case or root case has the key and the labels.
func (f *IncidentFilter) inCases(ctx context.Context, v Viewer, jobs []*state.Job) (matching []*state.Job, err error) {
	if !f.ByCase() || len(jobs) == 0 {
		return jobs, nil
	}
	var ids []workitem.CaseID
	has := make(map[workitem.CaseID]bool)
	for _, j := range jobs {
		for _, id := range []workitem.CaseID{j.Case, j.Root} {
			if _, known := has[id]; !known {
				ids, has[id] = append(ids, id), false
			}
		}
	}
	err = v.View(ctx, func(r Reader) error {
		found, err := r.Cases(ctx, CaseFilter{IDs: ids, Key: f.Key, Labels: f.Labels, Page: Page{Limit: len(ids)}})
		for _, c := range found {
			has[c.ID] = true
		}
		return err
	})
	for _, j := range jobs {
		if has[j.Case] || has[j.Root] {
			matching = append(matching, j)
		}
	}
	return matching, err
}
