package cli

import (
	"context"
	"time"

	"github.com/tasq-dev/tasq/engine/why"
	"github.com/tasq-dev/tasq/internal/printable"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workitem"
)

// examineLive lists the live cases that cannot end.
func (a *app) examineLive(ctx context.Context, older time.Duration) error {
	search := why.Search{Now: now(), Older: older}
	known := false
	var root workitem.CaseID
	cases, ofRoot := 0, make(map[workitem.CaseID]bool) // a case is found once for each cause and repair
	err := a.withStore(ctx, func(s store.Store) error {
		err := s.View(ctx, func(r store.Reader) (err error) {
			search.Here, err = a.here(ctx, r)
			return err
		})
		if err != nil {
			return err
		}
		known = search.Known != nil
		for strand, err := range why.Stranded(ctx, s, search) {
			if err != nil {
				return err
			}
			if strand.Root != root {
				root = strand.Root
				clear(ofRoot)
			}
			if !ofRoot[strand.Case] {
				ofRoot[strand.Case] = true
				cases++
			}
			if a.output == "json" {
				if err := a.object(strand); err != nil {
					return err
				}
				continue
			}
			if err := a.sayWrapped("case %s of %s (%s): %s\n  to repair it: %s", strand.Case, strand.Workflow, strand.Cause, strand.Reason, strand.Repair); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	unknown := "what their limits have free: the page Doctor of each says so"
	if !known {
		unknown = "whether one has the definition of each case, and " + unknown
	}
	a.remark("only the programs know %s", unknown)
	if cases > 0 {
		return exit(ExitNo, "stranded: %s", printable.Plural(cases, "case"))
	}
	a.remark("every live case can end, and something moves it")
	return nil
}
