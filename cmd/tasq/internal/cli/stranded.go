package cli

import (
	"context"
	"time"

	"github.com/tasq-dev/tasq/engine/why"
	"github.com/tasq-dev/tasq/internal/printable"
	"github.com/tasq-dev/tasq/store"
)

// examineLive lists the live cases that cannot end.
func (a *app) examineLive(ctx context.Context, older time.Duration) error {
	search := why.Search{Now: now(), Older: older}
	found := 0
	err := a.withStore(ctx, func(s store.Store) error {
		for strand, err := range why.Stranded(ctx, s, search) {
			if err != nil {
				return err
			}
			found++
			if a.output == "json" {
				if err := a.object(strand); err != nil {
					return err
				}
				continue
			}
			if err := a.say("case %s of %s (%s): %s\n  to repair it: %s", strand.Case, strand.Workflow, strand.Cause, strand.Reason, strand.Repair); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	a.remark("only the programs know whether one has the definition of each case, and what their limits have free: the page Doctor of each says so")
	if found > 0 {
		return exit(ExitNo, "stranded: %s", printable.Plural(found, "case"))
	}
	a.remark("every live case can end, and something moves it")
	return nil
}
