package limit_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/limit"
)

// What was not made by its function, as after an error that was ignored, says so and admits nothing.
func TestZeroValuesAdmitNothing(t *testing.T) {
	var noSet *limit.Set
	var noKeys *limit.Keys
	var noPool *limit.Pool
	for _, l := range []limit.Limiter{noSet, new(limit.Set), noKeys.For("ada"), new(limit.Keys).For("ada"), noPool, new(limit.Pool)} {
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
	for _, none := range []*limit.Set{nil, new(limit.Set)} {
		_, err = limit.NewPool(limit.Member{Name: "a", Set: none})
		require.ErrorIs(t, err, limit.ErrInvalid)
	}
}

// A context that is nil is a mistake of the program, and a panic that says so. What Do lacks is an error.
func TestNilArguments(t *testing.T) {
	set := limit.Must(limit.NewSet(limit.Resource("db", 1)))
	keys := limit.Must(limit.NewKeys(limit.Resource("db", 1)))
	pool := limit.Must(limit.NewPool(limit.Member{Name: "a", Set: set}))
	var none context.Context
	for of, l := range map[string]limit.Limiter{"limit.Set.Acquire": set, "Acquire of limit.Keys": keys.For("ada"), "limit.Pool.Acquire": pool} {
		require.PanicsWithValue(t, "tasq: "+of+" is given a nil context: pass that of the caller, or context.Background()",
			func() { _, _ = l.Acquire(none) })
	}
	_, err := limit.Do[int](t.Context(), set, nil)
	require.ErrorIs(t, err, limit.ErrInvalid)
	_, err = limit.Do(t.Context(), nil, func(context.Context, limit.Lease) (int, error) { return 1, nil })
	require.ErrorIs(t, err, limit.ErrInvalid)
	require.Zero(t, set.Usage()[0].Used, "nothing was acquired")
}
