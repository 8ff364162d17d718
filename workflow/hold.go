package workflow

import (
	"errors"

	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/net/verify"
)

// Hold is what a case holds of a limit from the start of one task to the end of another, or of the same one. Like other uses of limits, holds
// are no part of the fingerprint.
type Hold struct {
	Use      // Amount, Any and Steps are not set, N is, and Limit has slots
	From, To net.TaskID
	Pos      net.Pos // where it was declared
}

// ErrHoldDeadlock is wrapped by the error of opening workflows together whose cases can wait for each other for what they hold.
var ErrHoldDeadlock = errors.New("these workflows cannot be opened together")

// VerifyHolds looks for cases of the definitions that can wait for each other for what they hold. Slots of different keys of a limit count as the
// same, as cases can have the same keys. A limit that is defined as paused bounds nothing: it is given slots later. A composite task has one child
// case at a time, of any of its workflows.
func VerifyHolds(definitions []*Definition, o verify.Options) (verify.HoldReport, error) {
	var holders []verify.Holder
	capacity := make(map[string]int64)
	for _, d := range definitions {
		h, err := flatten(d, capacity)
		if err != nil {
			return verify.HoldReport{}, err
		}
		holders = append(holders, h)
	}
	return verify.Holds(holders, capacity, o), nil
}

// HasHolds reports whether cases of the definition, or child cases of them, hold slots of limits.
func (d *Definition) HasHolds() bool { return d.hasHolds(maxDepth) }

func (d *Definition) hasHolds(depth int) bool {
	if len(d.Holds) > 0 {
		return true
	}
	for i := range d.Tasks {
		for _, child := range d.Tasks[i].Of {
			if depth > 0 && child.hasHolds(depth-1) {
				return true
			}
		}
	}
	return false
}
