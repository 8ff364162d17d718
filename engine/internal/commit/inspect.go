package commit

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// Queued returns the number of queued requests whose context has a value for key.
func (w *Writer) Queued(key any) (n int) {
	w.queue.mu.Lock()
	defer w.queue.mu.Unlock()
	for _, r := range w.queue.list[w.queue.taken:] {
		if r.ctx != nil && r.ctx.Value(key) != nil {
			n++
		}
	}
	return n
}

// InMemory returns the number of root cases in memory, and the number of cached steps.
// A request reads them, since they belong to the goroutine of the writer.
func (w *Writer) InMemory(ctx context.Context) (cases, steps int, err error) {
	err = w.Submit(ctx, &Request{Reads: true, Run: func(*Tx) error {
		cases, steps = len(w.trees.byRoot), w.trees.steps
		return nil
	}})
	return cases, steps, err
}

// CheckSteps compares the cached steps with those in the store. They must be equal. It returns how many it compared.
// Tests call it after random histories.
func (w *Writer) CheckSteps(ctx context.Context) (n int, err error) {
	return n, w.Submit(ctx, &Request{Reads: true, Run: func(tx *Tx) error {
		for root, c := range w.trees.byRoot {
			_, j := c.tree.Job(c.steps.job)
			steps, known := w.trees.stepsOf(root, c.steps.job)
			if !known || j == nil {
				continue
			}
			if err := compareSteps(tx, j, steps); err != nil {
				return err
			}
			n += len(steps)
		}
		return nil
	}})
}

// The owner is the item for a run, which may have had earlier jobs: their steps are left out, as those of the claim
// were.
func compareSteps(tx *Tx, j *state.Job, steps []*workitem.Step) error {
	owner := [16]byte(j.ID)
	if j.Kind == state.JobRun {
		owner = j.Item
	}
	stored, err := tx.s.Steps(tx.ctx, owner)
	if err != nil {
		return err
	}
	stored = slices.DeleteFunc(stored, func(s *workitem.Step) bool { return s.Job != j.ID })
	if len(steps) != len(stored) {
		return fmt.Errorf("job %s: %d steps are remembered, and %d stored", j.ID, len(steps), len(stored))
	}
	for i, s := range steps {
		if !reflect.DeepEqual(s, stored[i]) {
			return fmt.Errorf("job %s: step %q is remembered as %+v, and stored as %+v", j.ID, s.Name, s, stored[i])
		}
	}
	return nil
}
