package limit

import "time"

// A limit of a store is taken by its users in portions: what one of them needs at a moment is charged at once, and used within a
// time that is short against the window. So a user asks the store some dozens of times in a window, however much it does.

// leastHold is the least time within which a portion is used. A store has to answer in less than half of it.
const leastHold = 100 * time.Millisecond

// Hold is how long a portion of a rate may be used after it was asked for: a fiftieth of the window, and at least 100 ms. 0 for
// slots, which are held as long as they are needed.
func (l Limit) Hold() time.Duration {
	if l.Algorithm == Slots {
		return 0
	}
	return max(l.Per/50, leastHold)
}

// Counted is the limit by which portions are charged: its window is longer by [Limit.Hold]. What is charged at one time is used up to
// that much later; so what is used in any window of the limit was charged in one window of this one, and the bound holds.
func (l Limit) Counted() Limit {
	l.Per += l.Hold()
	return l
}

// TakePortion takes up to want of a rate, and at least least, as far as there is room beside an amount that is left for others. If there
// is not so much, the grant is zero, and the time is when there may be; see [Limit.Wait]. More than the algorithm admits at once is
// taken only if least is more.
func (l Limit) TakePortion(s *State, now, least, want, others int64) (Grant, time.Duration) {
	if others > 0 && others+least > l.N {
		return Grant{}, l.Wait(s, now, l.N)
	}
	if wait := l.Wait(s, now, others+least); wait > 0 || least <= 0 {
		return Grant{}, wait
	}
	if l.paced() {
		burst, _ := l.pace()
		want = min(want, burst-others)
	}
	low, high := least, max(least, min(want, l.N-others))
	for low < high {
		if middle := high - (high-low)/2; l.Wait(s, now, others+middle) == 0 {
			low = middle
		} else {
			high = middle - 1
		}
	}
	return l.Take(s, now, low), 0
}
