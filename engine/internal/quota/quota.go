// Package quota divides a limit among the engines that share a store. The store keeps one small row per limit and key;
// [Decide] computes the next row from it, the order of an engine and the time.
//
//	an engine:  what it holds and needs ──────▶ Order ─┐
//	the store:  the row, the time, live engines ───────┼─▶ Decide ──▶ the next row, and an Answer
//
// An engine gets a portion of a rate, which it has to use within [limit.Limit.Hold]. Slots are counted per engine, and
// those of a dead engine are free again. Slots that a case holds belong to the case, and do not depend on any engine.
// Engines are served in the order in which they began to wait, so that small orders do not starve a large one. With 5
// slots:
//
//	engine 1 orders 3 ──▶ gets 3     held {1: 3}
//	engine 2 orders 4 ──▶ waits      held {1: 3}  waiting [2: 4]
//	engine 1 orders 1 ──▶ waits      held {1: 3}  waiting [2: 4, 1: 1]    2 are free, but engine 2 is first
//	engine 1 is dead  ──▶ 5 are free; engine 2 gets 4 with its next order
package quota

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/tasq-dev/tasq/limit"
)

// Order is the request of an engine for one limit and key.
type Order struct {
	Limit limit.Limit // its current definition
	Held  int64       // slots that the engine still uses; it returns the others
	Least int64       // the least useful amount; 0 if nothing is needed
	Want  int64       // the most useful amount

	// Back is a portion of a rate to return, of which Used was used; nil if there is none.
	Back *limit.Grant
	Used int64

	// For is the hold for which Least slots are ordered. They then belong to the case, and not to the engine. Nil if
	// they are not for a hold.
	For *Hold
	// Ended are the ends of holds since the last order.
	Ended []End
}

// Situation is the state of the fleet when an order is decided.
type Situation struct {
	Self int64   // the engine that orders
	Live []int64 // all live engines, with Self
	Now  int64   // nanoseconds, by the clock of the store
}

// Answer is the result of an order.
type Answer struct {
	Grant limit.Grant   // N is 0 if nothing was granted
	Wait  time.Duration // until there may be enough; limit.Unknown if time alone is not enough
	Taken int64         // the amount that all engines and cases have of the limit now
	Had   bool          // the case had the hold of the order already
	Holds []Hold        // of all cases, if something was ordered
}

// noEngine is a number that no engine has.
const noEngine = -1

// Forever is the expiry of a row that must be kept until it is changed.
const Forever = math.MaxInt64

// row is the state of a limit and key in the store, as JSON.
type row struct {
	State   []byte          `json:"state,omitempty"`   // of a rate
	Held    map[int64]int64 `json:"held,omitempty"`    // slots, by engine
	Waiting []waiter        `json:"waiting,omitempty"` // engines, in the order in which they began to wait
	Holds   []Hold          `json:"holds,omitempty"`   // slots, by case
}

// waiter is an engine whose last order was not granted.
type waiter struct {
	Engine int64 `json:"engine"`
	N      int64 `json:"n"`
	Asked  int64 `json:"asked"` // the time of its last order
}

// Again is the longest interval between two orders of an engine that waits. An engine loses its place after three times
// that without an order.
const Again = time.Second

// Decide returns the next row of a limit, the time from which on the row has no effect and can be removed, and the
// answer to the order. It fails if the row cannot be decoded.
func Decide(before []byte, o Order, in Situation) (after []byte, until int64, a Answer, err error) {
	r, err := read(before, o.Limit.Name)
	if err != nil {
		return nil, 0, a, err
	}
	ahead := r.ahead(in)
	if o.Limit.Algorithm == limit.Slots {
		a, until = r.slots(o, in, ahead)
	} else if a, until, err = r.rate(o, in, ahead); err != nil {
		return nil, 0, a, err
	}
	r.queue(o, in, a.Grant.N == 0)
	if len(r.Waiting) > 0 {
		until = max(until, in.Now+3*int64(Again))
	}
	after, err = json.Marshal(r)
	return after, until, a, err
}

// read decodes a row; an absent one is the zero value.
func read(state []byte, name string) (r row, err error) {
	if len(state) == 0 {
		return r, nil
	}
	if err = json.Unmarshal(state, &r); err != nil {
		err = fmt.Errorf("the row of limit %s cannot be read: %w", name, err)
	}
	return r, err
}

// ahead removes the engines that no longer wait, and returns the total amount for which others wait before this engine.
func (r *row) ahead(in Situation) (n int64) {
	r.Waiting = slices.DeleteFunc(r.Waiting, func(w waiter) bool {
		return !slices.Contains(in.Live, w.Engine) || w.Asked+3*int64(Again) < in.Now
	})
	for _, w := range r.Waiting {
		if w.Engine == in.Self {
			break
		}
		n += w.N
	}
	return n
}

// queue updates the place of the engine among those that wait: it is added, keeps its place, or is removed. An engine
// that is alone does not queue, since it has its own line.
func (r *row) queue(o Order, in Situation, nothing bool) {
	at := slices.IndexFunc(r.Waiting, func(w waiter) bool { return w.Engine == in.Self })
	next := waiter{in.Self, min(o.Least, o.Limit.N), in.Now}
	switch waits := nothing && next.N > 0 && len(in.Live) > 1; {
	case waits && at >= 0:
		r.Waiting[at] = next
	case waits:
		r.Waiting = append(r.Waiting, next)
	case at >= 0:
		r.Waiting = slices.Delete(r.Waiting, at, at+1)
	}
}

// slots decides an order for slots. Those of dead engines and of ended holds are free first.
func (r *row) slots(o Order, in Situation, ahead int64) (a Answer, until int64) {
	for engine := range r.Held {
		if !slices.Contains(in.Live, engine) {
			delete(r.Held, engine)
		}
	}
	if r.Held == nil {
		r.Held = make(map[int64]int64)
	}
	r.Held[in.Self] = o.Held
	r.Holds = slices.DeleteFunc(r.Holds, func(h Hold) bool {
		return slices.ContainsFunc(o.Ended, func(e End) bool { return e.Ends(&h) })
	})
	for _, n := range r.Held {
		a.Taken += n
	}
	for _, h := range r.Holds {
		a.Taken += h.N
	}
	switch free := o.Limit.N - a.Taken - ahead; {
	case o.Least <= 0:
	case o.For != nil && r.has(o.For):
		a.Grant.N, a.Had = o.Least, true
	case free < o.Least:
		a.Wait = limit.Unknown
	case o.For != nil:
		a.Grant.N = o.Least
		r.Holds = append(r.Holds, *o.For)
	default:
		a.Grant.N = min(o.Want, free)
		r.Held[in.Self] += a.Grant.N
	}
	if !a.Had {
		a.Taken += a.Grant.N
	}
	if o.Least > 0 {
		a.Holds = slices.Clone(r.Holds)
	}
	if r.Held[in.Self] == 0 {
		delete(r.Held, in.Self)
	}
	if len(r.Held)+len(r.Holds) > 0 {
		until = Forever
	}
	return a, until
}

// rate decides an order for a portion of a rate.
func (r *row) rate(o Order, in Situation, ahead int64) (a Answer, until int64, err error) {
	var s limit.State
	if err := s.UnmarshalBinary(r.State); err != nil {
		return a, 0, fmt.Errorf("the row of limit %s cannot be read: %w", o.Limit.Name, err)
	}
	l := o.Limit.Counted()
	if o.Back != nil {
		l.Commit(&s, o.Back, in.Now, o.Used)
	}
	if o.Least > 0 {
		a.Grant, a.Wait = l.TakePortion(&s, in.Now, o.Least, o.Want, ahead)
	}
	a.Taken = l.Used(&s, in.Now)
	switch {
	case l.Idle(&s, in.Now):
	case l.N == 0:
		until = Forever
	default:
		until = in.Now + int64(l.Wait(&s, in.Now, l.N))
	}
	r.State = nil
	if until > 0 {
		r.State, err = s.MarshalBinary()
	}
	return a, until, err
}
