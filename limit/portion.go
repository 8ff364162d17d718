package limit

import "time"

// A limit of a store is taken by its users in portions: what one of them needs at a moment is charged at once, and used within a
// time that is short against the window. So a user asks the store some dozens of times in a window, however much it does.

// leastHold is the least time within which a portion is used. A store has to answer in less than half of it.
const leastHold = 100 * time.Millisecond

// Hold returns how long a portion of a rate may be used after it was acquired: a fiftieth of the window, and at least 100 ms.
// It is 0 for slots, which are held until they are released.
func (l Limit) Hold() time.Duration {
	if l.Algorithm == Slots {
		return 0
	}
	return max(l.Per/50, leastHold)
}

// Counted returns the limit that portions are charged to: its window is longer by [Limit.Hold]. A portion may be used up to Hold
// after it was charged, so everything that is used in a window of the limit was charged in one window of this longer one, and the
// bound holds.
func (l Limit) Counted() Limit {
	l.Per += l.Hold()
	return l
}

// TakePortion acquires an amount from least to want of a rate, as much as is available after reserving others for other engines. If not
// even least is available, the grant is zero, and the duration is how long to wait, see [Limit.Wait]. It acquires more than the
// algorithm admits at once only if least is more.
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
