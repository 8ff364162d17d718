// Package ration decides what an engine gets of a limit that all engines of a store share. The store keeps one short row for each
// limit and key; what becomes of it is a function of the row, the order of an engine and the time.
//
//	an engine:  what it holds, what it needs ──▶ Order ─┐
//	the store:  a row, the time, who is alive ──────────┼─▶ Decide ──▶ the next row, and an Answer
//
// Of a rate an engine gets a portion, which it uses within [limit.Limit.Hold]. Slots are counted for each engine, and those of an engine
// that is not alive are free. Slots that a case holds are its own: no engine has to be alive for that. Engines are served in the order of
// asking, so a large amount is not starved by small ones.
package ration

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/tasq-dev/tasq/limit"
)

// Order is what an engine asks of one limit of one key.
type Order struct {
	Limit limit.Limit // as it is defined now
	Held  int64       // slots that the engine uses; what it held beyond is given back
	Least int64       // the least amount that is of use; 0 if nothing is needed
	Want  int64       // how much is of use

	// Back is a portion of a rate that was not used up, with what was used of it; nil if there is none.
	Back *limit.Grant
	Used int64

	// For is the hold for which Least slots are asked: they are then the case's, and not the engine's. Nil if they are not for a hold.
	For *Hold
	// Ended are holds that have ended.
	Ended []End
}

// Situation is what an order is decided in.
type Situation struct {
	Self int64   // the engine that asks
	Live []int64 // all that are alive, this one too
	Now  int64   // nanoseconds by one clock for all
}

// Answer is what an engine gets.
type Answer struct {
	Grant limit.Grant   // N is 0 if there is not enough
	Wait  time.Duration // until there may be enough; limit.Unknown if time alone is not enough
	Taken int64         // how much of the limit is taken now, by all
	Had   bool          // the case of the order's hold had the slots already
	Holds []Hold        // of all cases, if something was asked for
}

// noEngine is a number that no engine has.
const noEngine = -1

// Forever is when a row can be removed that says something for as long as nothing changes it.
const Forever = math.MaxInt64

// row is what the store keeps.
type row struct {
	State   []byte          `json:"state,omitempty"`   // of a rate
	Held    map[int64]int64 `json:"held,omitempty"`    // slots, by engine
	Waiting []waiter        `json:"waiting,omitempty"` // engines, in the order of asking
	Holds   []Hold          `json:"holds,omitempty"`   // slots, by case
}

// waiter is an engine that did not get what it asked for.
type waiter struct {
	Engine int64 `json:"engine"`
	N      int64 `json:"n"`
	Asked  int64 `json:"asked"` // when it did so last
}

// Again is how often an engine that waits asks at least. One that has not done so for three times that waits no longer.
const Again = time.Second

// Decide returns the next row of a limit, until when it says something, and what the engine gets. The error is for a row that
// cannot be read.
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

// read decodes a row; none is the zero value.
func read(state []byte, name string) (r row, err error) {
	if len(state) == 0 {
		return r, nil
	}
	if err = json.Unmarshal(state, &r); err != nil {
		err = fmt.Errorf("the row of limit %s cannot be read: %w", name, err)
	}
	return r, err
}

// ahead drops who does not wait any more, and is how much those need who ask for longer than this engine.
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

// queue has an engine wait at its place, or no longer.
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
