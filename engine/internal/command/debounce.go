package command

import (
	"errors"
	"fmt"
	"time"

	"github.com/tasq-dev/tasq/engine/internal/commit"
	"github.com/tasq-dev/tasq/engine/internal/kernel"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// debounce starts a case that begins once there has been no further start with its key for a time. It cancels the case
// of the previous start if that has not begun:
//
//	start          0 s      4 s      8 s          quiet 5 s, longest 10 s
//	begins at      5 s      9 s     10 s          each cancels the one before; the last is not delayed beyond 10 s after the first start
//
// A debounced case that has begun continues beside the new one. A case that holds the key in another way makes the
// start fail.
func (x *Executor) debounce(
	tx *commit.Tx, fresh *state.Case, d *workflow.Definition, c *workflow.Command, o commit.Operation,
) (result workflow.Result, err error) {
	since := tx.Now()
	var beside []workitem.CaseID
	for {
		again, later := *fresh, *c // copies, since begin puts the case into a tree, which may be rolled back
		later.After = later.DebounceDelay(since, tx.Now())
		if again.Options, err = debounced(fresh, since); err != nil {
			return result, fmt.Errorf("start %s: %w", d.Name, err)
		}
		err = tx.Savepoint(func() (err error) {
			result, err = x.begin(tx, &again, d, &later, o, nil, beside...)
			return err
		})
		var taken *workflow.KeyTakenError
		if !errors.As(err, &taken) {
			return result, err
		}
		first, begun, err := x.cancelDebounced(tx, taken, o)
		switch {
		case err != nil:
			return workflow.Result{}, err
		case begun:
			beside = append(beside, taken.Case)
		default:
			since = first
		}
	}
}

// debounced returns the options of a new case with the time of the first start of the series.
func debounced(fresh *state.Case, since time.Time) ([]byte, error) {
	options, err := workflow.OptionsOf(kernel.Info(fresh))
	if err != nil {
		return nil, err
	}
	options.Debounced = since
	return options.Encode()
}

// cancelDebounced cancels the case that holds a key if it is debounced and has not begun, and returns the time of the
// first start of its series. begun reports that it has begun, and continues. It returns taken as the error if the case
// is not debounced.
func (x *Executor) cancelDebounced(tx *commit.Tx, taken *workflow.KeyTakenError, o commit.Operation) (first time.Time, begun bool, err error) {
	u, err := tx.Open(taken.Case)
	if err != nil {
		return first, false, err
	}
	holder := u.Tree.Case(u.Tree.Root)
	options, err := workflow.OptionsOf(kernel.Info(holder))
	switch {
	case err != nil:
		return first, false, err
	case options.Debounced.IsZero() || holder.State.Final():
		return first, false, taken
	case holder.Begun:
		return first, true, nil
	}
	return options.Debounced, false, cancelReplaced(tx, u, o)
}
