package limit_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tasq-dev/tasq/limit"
)

// asked is an acquisition of a random history.
type asked struct {
	number  int
	amounts map[string]int64
	cancel  context.CancelFunc
	done    chan struct{} // closed when it was settled
	lease   limit.Lease
	err     error
	at      int64 // when it was admitted
}

// history is a random run of a set, and what is known of it without looking inside.
type history struct {
	t     *rapid.T
	set   *limit.Set
	start time.Time
	all   []*asked
}

func (h *history) now() int64 { return int64(time.Since(h.start)) }

// ask starts an acquisition, and waits until it is settled or waits.
func (h *history) ask() {
	a := &asked{number: len(h.all), amounts: make(map[string]int64), done: make(chan struct{})}
	var amounts []limit.Amount
	for _, u := range h.set.Usage() {
		n := rapid.SampledFrom([]int64{0, 1, 1, 2, u.Limit.N / 2, u.Limit.N}).Draw(h.t, u.Limit.Name)
		n = min(n, u.Limit.N)
		a.amounts[u.Limit.Name] = n
		amounts = append(amounts, limit.Take(u.Limit.Name, n))
	}
	ctx, cancel := context.WithCancel(context.Background())
	a.cancel = cancel
	h.all = append(h.all, a)
	go func() {
		a.lease, a.err = h.set.Acquire(ctx, amounts...)
		a.at = h.now()
		close(a.done)
	}()
	synctest.Wait()
}

func (h *history) pick(of func(*asked) bool) *asked {
	var some []*asked
	for _, a := range h.all {
		if of(a) {
			some = append(some, a)
		}
	}
	if len(some) == 0 {
		return nil
	}
	return rapid.SampledFrom(some).Draw(h.t, "which")
}

func (a *asked) settled() bool {
	select {
	case <-a.done:
		return true
	default:
		return false
	}
}

func (a *asked) holds() bool { return a.settled() && a.lease != nil }

// inBubble is a test without a deadline, which a bubble does not have.
type inBubble struct{ *testing.T }

// Random acquisitions of several limits, releases, commits, cancellations and changes: no slot beyond the capacity, no
// window beyond its bound, no overtaking, and nothing is left at the end.
func TestRandomHistoriesOfASet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rapid.Check(inBubble{t}, func(t *rapid.T) {
			limits := []limit.Limit{
				limit.Resource("slots", rapid.Int64Range(1, 4).Draw(t, "slots")),
				limit.Rate("rate", rapid.Int64Range(2, 30).Draw(t, "n"), time.Minute, rapid.SampledFrom(rates).Draw(t, "how")),
				limit.Calls(rapid.Int64Range(1, 30).Draw(t, "calls"), 10*time.Second),
			}
			h := &history{t: t, set: limit.Must(limit.NewSet(limits...)), start: time.Now()}
			released := make(map[*asked]bool)
			for range rapid.IntRange(1, 60).Draw(t, "steps") {
				switch rapid.IntRange(0, 9).Draw(t, "what") {
				case 0, 1, 2, 3:
					h.ask()
				case 4, 5, 6:
					if a := h.pick(func(a *asked) bool { return a.holds() && !released[a] }); a != nil {
						if n := a.amounts["rate"]; n > 0 && rapid.Bool().Draw(t, "commit") {
							n = rapid.Int64Range(0, n).Draw(t, "used")
							require.NoError(t, a.lease.Commit("rate", n))
							a.amounts["rate"] = n
						}
						a.lease.Release()
						released[a] = true
					}
				case 7:
					if a := h.pick(func(a *asked) bool { return !a.settled() }); a != nil {
						a.cancel()
					}
				default:
					<-time.After(time.Duration(rapid.Int64Range(0, int64(30*time.Second)).Draw(t, "time")))
				}
				synctest.Wait()
				h.check(limits, released)
			}
			h.finish(released)
			h.bounds(limits)
		})
	})
}

// check compares what is held with the capacity, and says that no one waits for nothing.
func (h *history) check(limits []limit.Limit, released map[*asked]bool) {
	var held int64
	waiting := make(map[string]bool)
	for _, a := range h.all {
		if a.holds() && !released[a] {
			held += a.amounts["slots"]
		}
		if a.settled() {
			continue
		}
		first := true
		for name, n := range a.amounts {
			if n > 0 && waiting[name] {
				first = false
			}
			waiting[name] = waiting[name] || n > 0
		}
		if first {
			var amounts []limit.Amount
			for name, n := range a.amounts {
				amounts = append(amounts, limit.Take(name, n))
			}
			require.Positive(h.t, h.set.Wait(amounts...), "number %d is the first, and waits for %v", a.number, a.amounts)
		}
	}
	require.LessOrEqual(h.t, held, limits[0].N)
	require.Equal(h.t, held, h.set.Usage()[0].Used)
}

// finish releases everything as it is admitted; so all are, in the order of asking for each limit.
func (h *history) finish(released map[*asked]bool) {
	for settled := false; !settled; {
		settled = true
		for _, a := range h.all {
			if !a.settled() {
				settled = false
			} else if a.lease != nil && !released[a] {
				a.lease.Release()
				released[a] = true
			}
		}
		<-time.After(time.Second)
	}
	for _, u := range h.set.Usage() {
		require.Zero(h.t, u.Waiting)
		if u.Limit.Algorithm == limit.Slots {
			require.Zero(h.t, u.Used)
		}
	}
	<-time.After(time.Hour)
	require.Equal(h.t, "[0 0 0]", fmt.Sprint([]int64{h.set.Usage()[0].Used, h.set.Usage()[1].Used, h.set.Usage()[2].Used}))
	for _, a := range h.all {
		for _, b := range h.all[:a.number] {
			if a.err != nil || b.err != nil || !share(a, b) {
				continue
			}
			require.False(h.t, a.at < b.at, "number %d overtook number %d: %v, %v", a.number, b.number, a.amounts, b.amounts)
		}
		a.cancel()
	}
}

// share reports whether two acquisitions want one of the limits.
func share(a, b *asked) bool {
	for name, n := range a.amounts {
		if n > 0 && b.amounts[name] > 0 {
			return true
		}
	}
	return false
}

func (h *history) bounds(limits []limit.Limit) {
	for _, l := range limits[1:] {
		var uses []used
		for _, a := range h.all {
			if a.err == nil {
				uses = append(uses, used{a.at, a.amounts[l.Name]})
			}
		}
		uses = slices.DeleteFunc(uses, func(u used) bool { return u.n == 0 })
		if len(uses) > 0 {
			require.LessOrEqual(h.t, busiest(uses, int64(l.Per)), l.AnyWindow(l.N), "%v", l)
		}
	}
}
