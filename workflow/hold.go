package workflow

import (
	"cmp"
	"errors"

	"github.com/tasq-dev/tasq/limit"
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
var ErrHoldDeadlock = errors.New("cases can wait for each other without end")

// VerifyHolds looks for cases of the definitions that can wait for each other for what they hold. Slots of different keys of a limit count as the
// same, as cases can have the same keys. A limit that is defined as paused bounds nothing: it is given slots later.
func VerifyHolds(definitions []*Definition, o verify.Options) verify.HoldReport {
	var holders []verify.Holder
	capacity := make(map[string]int64)
	bound := func(l limit.Limit) {
		if l.Algorithm == limit.Slots && l.N > 0 {
			capacity[l.Name] = l.N
		}
	}
	for _, d := range definitions {
		h := verify.Holder{Net: d.Net}
		for i := range d.Holds {
			hold := &d.Holds[i]
			bound(hold.Limit)
			h.Holds = append(h.Holds, verify.Hold{Limit: hold.Limit.Name, N: hold.N, From: hold.From, To: hold.To, Pos: hold.Pos})
		}
		for t := range d.Tasks {
			for i := range d.Tasks[t].Limits {
				if u := &d.Tasks[t].Limits[i]; !u.Steps && u.Any == nil {
					h.Takes = append(h.Takes, verify.Take{Limit: u.Limit.Name, N: cmp.Or(u.N, u.Limit.Each, 1), Task: net.TaskID(t)})
				}
			}
		}
		holders = append(holders, h)
	}
	return verify.Holds(holders, capacity, o)
}
