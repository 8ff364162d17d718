package kernel

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// How the business key of a root case is determined, and whether another live case may hold it:
//
//	the start gives C-1                        C-1               if the definition does not say UniqueKey
//	it does not, the input has no: 7           7                 as above, of a definition that makes the key of the input
//	it has OncePer day, for C-1                C-1 2026-11-23    no
//	it has IfTaken, for C-1                    C-1               no: refused, or what IfTaken says
//	it has IfTaken queue, for C-1              C-1               yes: it waits until those before it have ended
//	it is debounced, for C-1                   C-1               yes, if it was debounced and has begun
//	it is throttled, for C-1                   C-1               as the first two, if not too many have started
//
// A child case has a key and labels so that it can be found, but holds no key: its root case does.

// keys decides whether a root case may have its business key, by the other cases that have it.
type keys struct {
	cases    BusinessKeys
	required workflow.KeyRequirements // of the start of a case
	mustWait bool                     // the case waits, since others hold its key
}

// claim gives a new root case the key that its start requires, or returns an error if it may not have it. A case that
// can wait is queued behind those that hold the key, if its start says so.
func (k *keys) claim(c *state.Case, unique bool, now time.Time, canWait bool) error {
	if k.required.Unique && c.Key == "" {
		return fmt.Errorf("%w: IfTaken and OncePer need a business key, and the case has none", workflow.ErrBadCommand)
	}
	if k.required.Throttle > 0 {
		if err := k.throttle(c, now); err != nil {
			return err
		}
	}
	if k.required.Window != "" {
		c.Key += " " + k.required.Window
		if err := (workflow.Identity{Key: c.Key}).Check(); err != nil {
			return err
		}
	}
	c.Unique = c.Key != "" && (unique || k.required.Unique || c.Unique)
	return k.mayHold(c, canWait)
}

// throttle returns an error if the business key has used up its starts within the window that ends now.
func (k *keys) throttle(c *state.Case, now time.Time) error {
	if c.Key == "" {
		return fmt.Errorf("%w: Throttle needs a business key, and the case has none", workflow.ErrBadCommand)
	}
	starts, err := k.cases.KeyStarts(c, now.Add(-k.required.Within))
	first := len(starts) - k.required.Throttle
	if err != nil || first < 0 {
		return err
	}
	again := starts[first].At.Add(k.required.Within)
	return &workflow.ThrottledError{Workflow: c.Workflow, Key: c.Key, Throttle: k.required.Throttle, Window: k.required.Within,
		Case: starts[len(starts)-1].Case, Again: again, Wait: again.Sub(now)}
}

// mayHold returns an error if another case holds the unique key: a committed one, or one of this transaction. If
// engines share a database, the look-up locks the key until the transaction ends. So if two engines start a case with
// one key at once, the second waits, and then finds the case of the first.
func (k *keys) mayHold(c *state.Case, canWait bool) error {
	if !c.Unique {
		return nil
	}
	holders, err := k.cases.KeyHolders(c)
	holders = slices.DeleteFunc(holders, func(id workitem.CaseID) bool { return slices.Contains(k.required.Except, id) })
	if err != nil || len(holders) == 0 {
		return err
	}
	if k.required.Queued && canWait {
		return k.queue(c, holders)
	}
	return &workflow.KeyTakenError{Workflow: c.Workflow, Key: c.Key, Case: holders[0]}
}

// ErrBefore says that a case would have to wait for one with a greater id, made by an engine whose clock is ahead.
// Queued cases begin in the order of their ids, so the case has to be started again with a new id.
var ErrBefore = errors.New("the id of the case is below that of one that was started before it")

// queue determines whether a root case has to wait for others that hold its key.
func (k *keys) queue(c *state.Case, holders []workitem.CaseID) (err error) {
	for _, id := range slices.Backward(holders) {
		if k.mustWait, err = k.cases.IsLive(id); !k.mustWait && err == nil {
			continue
		}
		if err == nil && bytes.Compare(c.Root[:], id[:]) < 0 {
			err = ErrBefore
		}
		return err
	}
	return nil
}

// queued reports whether a case holds its key only until it ends, see [workflow.Queued] and [workflow.Debounced].
func queued(c *state.Case) (bool, error) {
	if !c.Unique || len(c.Options) == 0 {
		return false, nil
	}
	o, err := workflow.OptionsOf(Info(c))
	return o.Queued || !o.Debounced.IsZero(), err
}
