package engine

import (
	"context"
	"maps"
	"slices"

	"github.com/tasq-dev/tasq/store"
)

// newTakes returns what the functions here take of limits, where the store has something else, and the definitions
// whose stored takes are no longer needed: no engine has them, and all their cases have ended. An engine that is opened
// with one of them stores its takes again.
func (c *controls) newTakes(ctx context.Context) (takes map[string]store.TakesValue, unused []string, err error) {
	takes = c.e.definitions.Takes()
	mine := maps.Clone(takes)
	var others []string
	err = c.e.View(ctx, func(r store.Reader) error {
		all, err := r.Settings(ctx)
		if err != nil {
			return err
		}
		known, err := store.ReadTakes(all)
		for fingerprint, v := range known {
			switch own, ok := mine[fingerprint]; {
			case !ok:
				others = append(others, fingerprint)
			case sameTakes(v, own):
				delete(takes, fingerprint)
			}
		}
		if err != nil || len(others) == 0 {
			return err
		}
		counts, err := r.CountsByDefinition(ctx, true)
		for _, n := range counts {
			others = slices.DeleteFunc(others, func(fingerprint string) bool { return fingerprint == n.Fingerprint && n.N > 0 })
		}
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	for _, fingerprint := range others {
		elsewhere, err := c.knownElsewhere(ctx, fingerprint)
		if err != nil {
			return nil, nil, err
		}
		if !elsewhere {
			unused = append(unused, fingerprint)
		}
	}
	slices.Sort(unused)
	return takes, unused, nil
}

// knownElsewhere reports whether another live engine has a definition.
func (c *controls) knownElsewhere(ctx context.Context, fingerprint string) (bool, error) {
	f, ok := c.e.store.(store.Fleet)
	if !ok || !f.Shared() {
		return false, nil
	}
	return f.Knows(ctx, fingerprint)
}

func sameTakes(a, b store.TakesValue) bool {
	return maps.EqualFunc(a.Tasks, b.Tasks, sameList) && maps.EqualFunc(a.Calls, b.Calls, sameList) &&
		slices.Equal(a.FairTasks, b.FairTasks) && slices.Equal(a.FairCalls, b.FairCalls)
}

func sameList(a, b []store.Takes) bool {
	return slices.EqualFunc(a, b, func(a, b store.Takes) bool {
		return a.Limit == b.Limit && a.N == b.N && a.Keyed == b.Keyed && a.Until == b.Until && slices.Equal(a.Any, b.Any)
	})
}
