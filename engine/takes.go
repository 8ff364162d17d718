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
// For example, with the definitions A and B here:
//
//	stored            here             takes   unused
//	A takes 1 of db   A takes 2 of db  A       -       has changed, so it is stored again
//	B takes 1 of db   B takes 1 of db  -       -       is as it was
//	C takes 1 of db   -                -       C       unless it has a live case, or another engine has it
func (c *controls) newTakes(ctx context.Context) (takes map[string]store.TakesValue, unused []string, err error) {
	takes = c.e.definitions.Takes()
	// What the store has already is removed from takes; mine keeps all that functions here take.
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
		// The live cases are counted only if another program, or an older version of this one, has stored something.
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
// It may begin a case of the definition, although no case is live now.
func (c *controls) knownElsewhere(ctx context.Context, fingerprint string) (bool, error) {
	f, ok := c.e.store.(store.Fleet)
	if !ok || !f.Shared() {
		return false, nil
	}
	return f.Knows(ctx, fingerprint)
}

// Nil and empty are the same, as in JSON.
func sameTakes(a, b store.TakesValue) bool {
	return maps.EqualFunc(a.Tasks, b.Tasks, sameList) && maps.EqualFunc(a.Calls, b.Calls, sameList) &&
		slices.Equal(a.FairTasks, b.FairTasks) && slices.Equal(a.FairCalls, b.FairCalls)
}

func sameList(a, b []store.Takes) bool {
	return slices.EqualFunc(a, b, func(a, b store.Takes) bool {
		return a.Limit == b.Limit && a.N == b.N && a.Keyed == b.Keyed && a.Until == b.Until && slices.Equal(a.Any, b.Any)
	})
}
