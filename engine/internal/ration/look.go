package ration

import (
	"time"

	"github.com/tasq-dev/tasq/limit"
)

// HasHolds is a text that a row contains if and only if cases hold slots of it.
const HasHolds = `"holds":`

// Outlook is what a row says to those who look and ask for nothing.
type Outlook struct {
	Wait  time.Duration // until there is room: 0 if there is, limit.Unknown if time alone gives none
	Taken int64         // how much of the limit is taken now, by all
	Holds []Hold        // of all cases
}

// HoldsIn lists what cases hold by a row of the limit with that name.
func HoldsIn(state []byte, name string) ([]Hold, error) {
	r, err := read(state, name)
	return r.Holds, err
}

// Look says how long it takes until a limit has room for so much, by its row. Engines that wait go first. The amount may be for a hold: its case
// waits for nothing if it has that already. The Self of the situation is left out.
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
