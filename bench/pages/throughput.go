package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

const (
	callers = 16 // that execute cases meanwhile
	pairs   = 7  // of a time in which the watched case changes and one in which it does not
)

// throughput compares how many cases the engine executes while viewers look at a case that changes with how many it executes while that case does not.
// The viewers stay connected in both. It returns the median of the ratios.
func throughput(ctx context.Context, e *engine.Engine, id string, length time.Duration) (float64, error) {
	var ratios, watched, alone []float64
	for range pairs {
		with, err := whileItChanges(ctx, e, id, length)
		if err != nil {
			return 0, err
		}
		without, err := perSecondOf(ctx, e, length)
		if err != nil {
			return 0, err
		}
		ratios, watched, alone = append(ratios, with/without), append(watched, with), append(alone, without)
	}
	for _, all := range [][]float64{ratios, watched, alone} {
		slices.Sort(all)
	}
	fmt.Printf("cases a second with %d callers, while the watched case changes and while it does not: %.0f and %.0f; ratio %.2f (%.2f to %.2f)\n", callers,
		watched[pairs/2], alone[pairs/2], ratios[pairs/2], ratios[0], ratios[pairs-1])
	return ratios[pairs/2], nil
}

func whileItChanges(ctx context.Context, e *engine.Engine, id string, length time.Duration) (float64, error) {
	changed := make(chan error)
	go func() {
		_, err := change(ctx, e, id, int(length.Seconds()*perSecond))
		changed <- err
	}()
	n, err := perSecondOf(ctx, e, length)
	return n, errors.Join(err, <-changed)
}

// perSecondOf is how many cases a second callers start and complete.
func perSecondOf(ctx context.Context, e *engine.Engine, length time.Duration) (float64, error) {
	var done atomic.Int64
	var wait sync.WaitGroup
	failed := make(chan error, callers)
	began := time.Now()
	for range callers {
		wait.Go(func() {
			for time.Since(began) < length {
				if err := execute(ctx, e); err != nil {
					failed <- err
					return
				}
				done.Add(1)
			}
		})
	}
	wait.Wait()
	close(failed)
	return float64(done.Load()) / time.Since(began).Seconds(), <-failed
}

// execute starts a case, and does the work of its person in two further commands.
func execute(ctx context.Context, e *engine.Engine) error {
	started, err := e.Do(ctx, workflow.Start("claim", anOrder, workflow.By("portal")))
	if err != nil {
		return err
	}
	var open *workitem.Item
	if err := e.Update(ctx, func(tx *engine.Tx) error {
		open, err = openItem(ctx, tx, started.Case)
		if err != nil {
			return err
		}
		_, err = tx.Do(ctx, workflow.Act(open.ID, workitem.Start, nil, workflow.By("ann")))
		return err
	}); err != nil {
		return err
	}
	_, err = e.Do(ctx, workflow.Act(open.ID, workitem.Complete, anOrder))
	return err
}
