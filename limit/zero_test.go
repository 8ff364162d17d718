package limit_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/limit"
)

// What was not made by its function, as after an error that was ignored, says so and admits nothing.
func TestZeroValuesAdmitNothing(t *testing.T) {
	var noSet *limit.Set
	var noKeys *limit.Keys
	for _, l := range []limit.Limiter{noSet, new(limit.Set), noKeys.For("ada"), new(limit.Keys).For("ada")} {
		_, err := l.Acquire(t.Context())
		require.ErrorIs(t, err, limit.ErrInvalid)
		require.ErrorContains(t, err, "its zero value: make it by limit.New")
		_, err = l.TryAcquire()
		require.ErrorIs(t, err, limit.ErrInvalid)
		_, err = l.Why()
		require.ErrorIs(t, err, limit.ErrInvalid)
		require.Equal(t, limit.Unknown, l.Wait())
	}
	_, err := noSet.Only("db")
	require.ErrorIs(t, err, limit.ErrInvalid)
	require.ErrorIs(t, noSet.Change(limit.Resource("db", 1)), limit.ErrInvalid)
	require.ErrorIs(t, noKeys.Change(limit.Resource("db", 1)), limit.ErrInvalid)
	require.Empty(t, noSet.Usage())
	require.Zero(t, noKeys.Len())
}
