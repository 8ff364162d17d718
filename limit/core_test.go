package limit_test

import (
	"bytes"
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tasq-dev/tasq/limit"
)

var rates = []limit.Algorithm{
	limit.SlidingWindow, limit.GCRA, limit.TokenBucket, limit.LeakyBucket, limit.FixedWindow,
}

// used is what a history used at a time, debts not counted.
type used struct{ at, n int64 }

// busiest is the most that any window sees. It is enough to look at windows that begin with a use.
func busiest(history []used, per int64) (most int64) {
	slices.SortFunc(history, func(a, b used) int { return cmp.Compare(a.at, b.at) })
	var sum int64
	first := 0
	for _, u := range history {
		sum += u.n
		for history[first].at <= u.at-per {
			sum -= history[first].n
			first++
		}
		most = max(most, sum)
	}
	return most
}

// Whatever is taken whenever there is room, and corrected in any order: no window sees more than the limit says; a state
// decides the same after it was stored; and a wait is as long as it is said to be.
func TestNoWindowSeesMoreThanItsBound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := limit.Limit{
			Name:      "x",
			N:         rapid.Int64Range(1, 200).Draw(t, "n"),
			Per:       time.Duration(rapid.Int64Range(200, 100_000).Draw(t, "per")) * 20,
			Algorithm: rapid.SampledFrom(rates).Draw(t, "algorithm"),
		}
		require.NoError(t, l.Validate())
		most := rapid.Int64Range(1, l.N).Draw(t, "most")
		var s limit.State
		var grants []limit.Grant
		var history []used
		now := rapid.Int64Range(0, 1<<61).Draw(t, "start")
		for range rapid.IntRange(1, 150).Draw(t, "steps") {
			switch rapid.IntRange(0, 9).Draw(t, "what") {
			case 0: // correct a grant downwards
				if len(grants) > 0 {
					i := rapid.IntRange(0, len(grants)-1).Draw(t, "which")
					history[i].n = min(history[i].n, rapid.Int64Range(0, grants[i].N).Draw(t, "used"))
					l.Commit(&s, &grants[i], now, history[i].n)
				}
			case 1: // a debt
				if len(grants) > 0 && rapid.IntRange(0, 9).Draw(t, "debt") == 0 {
					i := rapid.IntRange(0, len(grants)-1).Draw(t, "which")
					l.Commit(&s, &grants[i], now, grants[i].N+rapid.Int64Range(1, 3*l.N).Draw(t, "beyond"))
				}
			case 2, 3:
				now += rapid.Int64Range(0, 2*int64(l.Per)).Draw(t, "time")
			case 4:
				now += rapid.Int64Range(0, int64(l.Per)/50).Draw(t, "little time")
			default:
				n := rapid.Int64Range(1, most).Draw(t, "amount")
				wait := l.Wait(&s, now, n)
				if wait > 0 {
					if l.Wait(&s, now+int64(wait)-1, n) == 0 || l.Wait(&s, now+int64(wait), n) != 0 {
						t.Fatalf("there is room after %v, and not before", wait)
					}
					if rapid.Bool().Draw(t, "wait") {
						now += int64(wait)
						wait = 0
					}
				}
				if wait == 0 {
					grants = append(grants, l.Take(&s, now, n))
					history = append(history, used{now, n})
				}
			}
			s = stored(t, s)
		}
		require.LessOrEqual(t, busiest(history, int64(l.Per)), l.AnyWindow(most), "%v, amounts up to %d", l, most)
	})
}

func stored(t require.TestingT, s limit.State) (read limit.State) {
	data, _ := s.MarshalBinary()
	err := read.UnmarshalBinary(data)
	if again, _ := read.MarshalBinary(); err != nil || len(data) > 1500 || !bytes.Equal(data, again) {
		require.Equal(t, data, again)
		require.NoError(t, err)
	}
	return read
}

// With always something to do, at any moment or only at some, a rate gives what the table says.
func TestRatesAreUsedUp(t *testing.T) {
	for _, a := range rates {
		for _, n := range []int64{1, 2, 19, 20, 50, 999, 100_000} {
			for _, amount := range []int64{1, 7} {
				l := limit.Rate("x", n, time.Minute, a)
				if amount > n || a == limit.SlidingWindow && n > 1000 && amount == 1 {
					continue
				}
				var s limit.State
				var now, sum int64
				const windows = 50
				end := windows * int64(time.Minute)
				for {
					if now += int64(l.Wait(&s, now, amount)); now >= end {
						break
					}
					l.Take(&s, now, amount)
					sum += amount
				}
				least := 0.95
				if n < 10*amount {
					least = float64(n/amount*amount) / float64(n) * 0.95 // the last part of a window may be too small
				}
				require.GreaterOrEqual(t, float64(sum), least*float64(n)*windows, "%v in amounts of %d", l, amount)
			}
		}
	}
}

// What the table promises of the worst case happens: the bounds are no larger than they have to be.
func TestBoundsAreReached(t *testing.T) {
	for a, want := range map[limit.Algorithm]int64{
		limit.SlidingWindow: 100, limit.GCRA: 100, limit.LeakyBucket: 100, limit.TokenBucket: 199, limit.FixedWindow: 200,
	} {
		l := limit.Rate("x", 100, time.Minute, a)
		require.Equal(t, want, l.AnyWindow(1), "%v", a)
		var s limit.State
		var history []used
		take := func(now int64) {
			for l.Wait(&s, now, 1) == 0 {
				l.Take(&s, now, 1)
				history = append(history, used{now, 1})
			}
		}
		if a == limit.FixedWindow { // what begins the window is given back, and the window continues: all of it comes at its end
			first := l.Take(&s, 0, 1)
			l.Take(&s, int64(time.Minute)-1, 1)
			history = append(history, used{int64(time.Minute) - 1, 1})
			l.Commit(&s, &first, int64(time.Minute)-1, 0)
		} else {
			take(0)
		}
		for now := int64(time.Minute) - 1; now < 2*int64(time.Minute); {
			take(now)
			now += max(1, int64(l.Wait(&s, now, 1)))
		}
		require.Equal(t, want, busiest(history, int64(time.Minute)), "%v", a)
	}
	require.Zero(t, limit.Resource("x", 5).AnyWindow(1))
	require.EqualValues(t, 103, limit.Rate("x", 100, time.Minute, limit.GCRA).AnyWindow(9))
}

// A clock that goes back by hours, now and then, admits no more than if it had stopped meanwhile, and holds nothing up.
func TestAClockThatGoesBack(t *testing.T) {
	for _, a := range rates {
		l := limit.Rate("x", 10, time.Minute, a)
		var s limit.State
		now, passed := int64(100*time.Hour), int64(0)
		var history []used
		var grants []limit.Grant
		rnd := rand.New(rand.NewPCG(1, uint64(a)))
		for range 2000 {
			switch rnd.IntN(20) {
			case 0:
				now -= rnd.Int64N(int64(3 * time.Hour))
				now = max(now, 0)
			case 1:
				if i := len(grants) - 1 - rnd.IntN(10); i >= 0 {
					history[i].n = rnd.Int64N(history[i].n + 1)
					l.Commit(&s, &grants[i], now, history[i].n)
				}
			}
			wait := l.Wait(&s, now, 2)
			require.LessOrEqual(t, wait, 2*time.Minute, "%v", a)
			now, passed = now+int64(wait), passed+int64(wait)
			require.Zero(t, l.Wait(&s, now, 2))
			grants = append(grants, l.Take(&s, now, 2))
			history = append(history, used{passed, 2})
			s = stored(t, s)
		}
		require.LessOrEqual(t, busiest(history, int64(l.Per)), l.AnyWindow(2), "%v", a)
	}
}

// A bucket that is asked every millisecond drains at its rate nevertheless.
func TestAskingOftenChangesNothing(t *testing.T) {
	for _, a := range rates {
		l := limit.Rate("x", 10, 10*time.Second, a)
		var s limit.State
		count := 0
		for ms := range int64(100_000) {
			if now := ms * int64(time.Millisecond); l.Wait(&s, now, 1) == 0 {
				l.Take(&s, now, 1)
				count++
			}
		}
		require.InDelta(t, 100, count, 10, "%v", a)
	}
}

func TestUnusedAmountIsReturned(t *testing.T) {
	for _, a := range rates {
		l := limit.Rate("x", 10, 10*time.Second, a)
		var s limit.State
		g := l.Take(&s, 0, 10)
		require.Positive(t, l.Wait(&s, 0, 7), "%v", a)
		l.Commit(&s, &g, 0, 3)
		require.LessOrEqual(t, l.Used(&s, 0), int64(3), "%v", a)
		if a != limit.LeakyBucket && a != limit.GCRA {
			require.Zero(t, l.Wait(&s, 0, 7), "%v", a)
		}
		require.Positive(t, l.Wait(&s, 0, 8), "%v never gives back more than there is", a)
		hour := int64(time.Hour)
		l.Commit(&s, &g, hour, 0)
		require.Zero(t, l.Used(&s, hour), "%v", a)
		require.Positive(t, l.Wait(&s, hour, 10)+l.Wait(take(l, &s, hour, 10), hour, 1), "%v: what has passed is not", a)
	}
}

func take(l limit.Limit, s *limit.State, now, n int64) *limit.State {
	l.Take(s, now, n)
	return s
}

// What was used beyond is paid for by those who come later; and a correction of a debt gives nothing back.
func TestADebtIsPaid(t *testing.T) {
	for a, want := range map[limit.Algorithm]time.Duration{
		limit.SlidingWindow: 10 * time.Second, limit.FixedWindow: 20 * time.Second,
		limit.TokenBucket: 11 * time.Second, limit.GCRA: 20 * time.Second, limit.LeakyBucket: 20 * time.Second,
	} {
		l := limit.Rate("x", 10, 10*time.Second, a)
		var s limit.State
		g := l.Take(&s, 0, 5)
		l.Commit(&s, &g, 0, 20)
		require.Equal(t, want, l.Wait(&s, 0, 1), "%v", a)
		require.EqualValues(t, 20, l.Used(&s, 0), "%v", a)
		l.Commit(&s, &g, 0, 0)
		require.Equal(t, want, l.Wait(&s, 0, 1), "%v", a)
		require.False(t, l.Idle(&s, int64(want)-1))
		require.True(t, l.Idle(&s, int64(time.Hour)))
	}
}

// Capacity 10 in 10 seconds, the cases that other libraries document.
func TestTenInTenSeconds(t *testing.T) {
	fill := func(a limit.Algorithm) (limit.Limit, *limit.State) {
		l, s := limit.Rate("x", 10, 10*time.Second, a), new(limit.State)
		for range 10 {
			require.Zero(t, l.Wait(s, 0, 1))
			l.Take(s, 0, 1)
		}
		return l, s
	}
	for a, want := range map[limit.Algorithm]time.Duration{
		limit.TokenBucket: time.Second, limit.FixedWindow: 10 * time.Second, limit.SlidingWindow: 10 * time.Second,
	} {
		l, s := fill(a)
		require.Equal(t, want, l.Wait(s, 0, 1), "%v", a)
	}
	l, s := fill(limit.TokenBucket)
	second := int64(time.Second)
	require.Zero(t, l.Wait(s, second, 1))
	l.Take(s, second, 1)
	require.Positive(t, l.Wait(s, second, 1), "exactly one more")
}

func TestPausedAndTooMuchWaitForAChange(t *testing.T) {
	for _, a := range append(rates, limit.Slots) {
		l := limit.Rate("x", 0, time.Second, a)
		require.Equal(t, limit.Unknown, l.Wait(new(limit.State), 0, 1))
		require.Zero(t, l.Wait(new(limit.State), 0, 0))
		require.Zero(t, l.AnyWindow(1))
		require.Zero(t, l.Used(new(limit.State), 10))
		l.N = 5
		require.Equal(t, limit.Unknown, l.Wait(new(limit.State), 0, 6))
	}
}

func FuzzState(f *testing.F) {
	for _, a := range append(rates, limit.CircuitBreaker) {
		l := limit.Rate("x", 10, time.Second, a)
		var s limit.State
		l.Take(&s, 1000, 3)
		data, _ := s.MarshalBinary()
		f.Add(data)
	}
	f.Add([]byte{})
	f.Add([]byte{1, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		var s limit.State
		if s.UnmarshalBinary(data) == nil {
			again, err := s.MarshalBinary()
			require.NoError(t, err)
			var same limit.State
			require.NoError(t, same.UnmarshalBinary(again))
			require.Equal(t, s, same)
		}
	})
}
