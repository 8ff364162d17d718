package quota

import (
	"time"

	"github.com/tasq-dev/tasq/limit"
)

// HasHolds occurs in the JSON of a row if and only if the row has holds. Stores search for it, so that they need not
// decode rows.
const HasHolds = `"holds":`

// Outlook is the usage of a limit, read without asking for anything.
type Outlook struct {
	Wait  time.Duration // until there is room: 0 if there is, limit.Unknown if time alone gives none
	Taken int64         // the amount that all engines and cases have of the limit
	Holds []Hold        // of all cases
}

// HoldsIn returns the holds in a row of the limit with that name.
func HoldsIn(state []byte, name string) ([]Hold, error) {
	r, err := read(state, name)
	return r.Holds, err
}

// Look returns how long it takes until a limit has room for n, by its row, after the engines that already wait. If of
// is not nil, the amount is for that hold, which waits for nothing if its case has it already. in.Self is ignored.
func Look(state []byte, l limit.Limit, n int64, of *Hold, in Situation) (out Outlook, err error) {
	r, err := read(state, l.Name)
	if err != nil {
		return out, err
	}
	out.Holds = r.Holds
	in.Self = noEngine
	_, _, a, err := Decide(state, Order{Limit: l, Least: n, Want: n, For: of}, in)
	if err != nil {
		return out, err
	}
	switch out.Taken = a.Taken - a.Grant.N; {
	case a.Had:
		out.Taken = a.Taken // which are among what is taken
	case n <= 0 || a.Grant.N > 0:
	case a.Wait == 0:
		out.Wait = limit.Unknown
	default:
		out.Wait = a.Wait
	}
	return out, nil
}
