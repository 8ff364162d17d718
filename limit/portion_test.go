package limit_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/limit"
)

func TestTimeOfPortions(t *testing.T) {
	require.Equal(t, 1200*time.Millisecond, limit.Rate("x", 1, time.Minute, limit.SlidingWindow).Hold())
	require.Equal(t, 100*time.Millisecond, limit.Rate("x", 1, time.Second, limit.SlidingWindow).Hold(), "the least")
	require.Zero(t, limit.Resource("x", 1).Hold())
	counted := limit.Rate("x", 1, time.Minute, limit.SlidingWindow).Counted()
	require.Equal(t, 61200*time.Millisecond, counted.Per)
}

func TestAlgorithmsHaveNames(t *testing.T) {
	require.Equal(t, "circuit-breaker", limit.CircuitBreaker.String())
	_, err := limit.CircuitBreaker.MarshalText()
	require.NoError(t, err)
	none := limit.CircuitBreaker + 1
	require.Equal(t, "algorithm(7)", none.String())
	_, err = none.MarshalText()
	require.ErrorIs(t, err, limit.ErrInvalid)
}

// A portion is as much as is wanted and available, at least what is needed, and leaves what others wait for.
func TestTakePortion(t *testing.T) {
	const now = int64(time.Hour)
	for _, a := range []limit.Algorithm{limit.SlidingWindow, limit.FixedWindow, limit.TokenBucket} {
		l := limit.Rate("x", 10, time.Minute, a)
		for _, c := range []struct{ before, least, want, others, granted int64 }{
			{0, 2, 5, 0, 5},
			{5, 4, 9, 0, 5},
			{5, 5, 5, 0, 5},
			{5, 6, 9, 0, 0},
			{10, 1, 1, 0, 0},
			{0, 2, 10, 3, 7},
			{7, 1, 5, 2, 1},
			{7, 1, 5, 3, 0},
			{0, 7, 9, 3, 7},
			{0, 8, 9, 3, 0}, // all of it is for the others
			{0, 0, 5, 0, 0},
			{0, 3, 1, 0, 3}, // wants less than it needs
		} {
			var s limit.State
			if c.before > 0 {
				l.Take(&s, now, c.before)
			}
			g, wait := l.TakePortion(&s, now, c.least, c.want, c.others)
			require.Equal(t, c.granted, g.N, "%v %+v", a, c)
			require.Equal(t, c.before+c.granted, l.Used(&s, now), "%v %+v", a, c)
			if c.granted == 0 && c.before > 0 {
				require.Positive(t, wait, "%v %+v", a, c)
			}
		}
	}
}
