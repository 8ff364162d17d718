package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/internal/printable"
	"github.com/tasq-dev/tasq/internal/record"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// caseFailedAgain returns an error that says why a case that was resumed has failed again at once, and which work item did; nil if it
// has not failed.
func caseFailedAgain(ctx context.Context, r store.Finder, c *state.Case) error {
	if c.State != state.CaseFailed {
		return nil
	}
	item, err := failedWith(ctx, r, c)
	if err != nil {
		return err
	}
	text := fmt.Sprintf("case %s of %s failed again%s", c.ID, c.Workflow, because(c.Failure))
	if item != nil {
		text += fmt.Sprintf("; work item %s (%s/%s)", item.ID, item.Workflow, item.Label())
	}
	return exit(ExitNo, "%s", text)
}

// failedWith returns the work item whose failure ended the case: its own, or that of a child case; nil if there is none.
func failedWith(ctx context.Context, r store.Finder, c *state.Case) (*store.ItemRow, error) {
	last := store.ItemFilter{Page: store.Page{Desc: true, Limit: 1}, States: []workitem.State{workitem.Failed}}
	own, all := last, last
	own.Case, all.Root = c.ID, c.Root
	for _, f := range []store.ItemFilter{own, all} {
		found, err := r.Items(ctx, f)
		if err != nil {
			return nil, err
		}
		if len(found) > 0 && found[0].Ended.Equal(c.Ended) {
			return found[0], nil
		}
	}
	return nil, nil
}

// itemFailedAgain returns an error that says why a work item that was retried has failed again at once; nil if it has not failed.
func itemFailedAgain(it *store.ItemRow) error {
	if it.State != workitem.Failed {
		return nil
	}
	return exit(ExitNo, "work item %s (%s/%s) failed again, attempt %d%s", it.ID, it.Workflow, it.Label(), it.Attempt, because(it.Failure))
}

func because(f *workitem.Failure) string {
	if f == nil {
		return ""
	}
	return ": " + printable.Line(f.String())
}

// showRepaired prints a work item after a command of the kind. The error says why one that was retried has failed again.
func (a *app) showRepaired(ctx context.Context, kind workflow.Kind, id workitem.ID) error {
	return a.view(ctx, func(r store.Reader) error {
		it, err := findItem(ctx, r, id)
		if err != nil {
			return err
		}
		if kind == workflow.KindRetry {
			err = itemFailedAgain(it)
		}
		switch {
		case a.output == "json":
			return errors.Join(a.object(record.OfItem(it)), err)
		case err != nil:
			return err
		}
		return a.say("work item %s (%s/%s) is %s, attempt %d", it.ID, it.Workflow, it.Label(), it.State, it.Attempt)
	})
}

// wantsData names the flag to an error about a payload that was not given.
func (q *asking) wantsData(err error) error {
	if q.data.a == nil || q.data.json != nil || engine.Code(err) != "invalid-payload" {
		return err
	}
	return fmt.Errorf("%w; give it with --data", err)
}
