package workflow

import (
	"errors"

	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/net/verify"
)

// Hold is an amount of a limit that a case holds from the start of one task to the end of the same or another one. Like other uses of
// limits, holds are not part of the fingerprint.
type Hold struct {
	Use      // Amount, Any and Steps are not set, N is, and Limit has slots
	From, To net.TaskID
	Pos      net.Pos // where it was declared
}

// ErrHoldDeadlock is wrapped by the error of opening an engine with workflows whose cases can deadlock over limits that they
// hold.
var ErrHoldDeadlock = errors.New("these workflows cannot be opened together")

// VerifyHolds checks whether cases of the definitions can deadlock over limits that they hold. It assumes that all cases use the same key
// of a limit, since they can. A limit that is defined as paused is ignored, since its number is set later. A composite task is taken to
// have one child case at a time, of any of its workflows.
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
