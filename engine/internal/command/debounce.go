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

// debounce starts a case that begins when no start with its key has come for a time, and cancels the one that waits for that:
//
//	start          0 s      4 s      8 s          quiet 5 s, longest 10 s
//	begins at      5 s      9 s     10 s          the third takes the place of the second, and is put off no further
//
// A debounced case that has begun goes on beside the fresh one. Whatever else holds the key refuses it.
func (x *Executor) debounce(
	tx *commit.Tx, fresh *state.Case, d *workflow.Definition, c *workflow.Command, o commit.Operation,
) (result workflow.Result, err error) {
	since := tx.Now()
	var beside []workitem.CaseID
	for {
		again, later := *fresh, *c // what begins becomes a part of a tree
		later.After = later.PutOff(since, tx.Now())
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
		first, begun, err := x.makeWay(tx, taken, o)
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

// debounced are the options of a fresh case with the time of the first start.
func debounced(fresh *state.Case, since time.Time) ([]byte, error) {
	options, err := workflow.OptionsOf(kernel.Info(fresh))
	if err != nil {
		return nil, err
	}
	options.Debounced = since
	return options.Encode()
}

// makeWay cancels the case that holds a key, if it is put off, and returns when the first start came for which it was. The error is taken if
// the case was not debounced.
func (x *Executor) makeWay(tx *commit.Tx, taken *workflow.KeyTakenError, o commit.Operation) (first time.Time, begun bool, err error) {
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
