package activities_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/retry"
)

func TestARetryThatCannotWorkIsRefused(t *testing.T) {
	for want, p := range map[string]retry.Policy{
		"Attempts is 0":    {},
		"Attempts is -1":   {Attempts: -1},
		"Initial is -1s":   retry.Exponential(3, -time.Second),
		"Base is 0.5":      {Attempts: 3, Base: 0.5},
		"Waits[1] is -1ns": retry.Table(1, -1),
	} {
		for _, answer := range []func(context.Context, *activities.Change) error{
			activities.Retry(p), activities.Resume(p), activities.All(nil, activities.All(activities.Retry(p))),
		} {
			require.ErrorContains(t, activities.Refused(answer), want)
			require.ErrorIs(t, activities.Refused(answer), retry.ErrInvalid)
			require.ErrorContains(t, answer(t.Context(), new(activities.Change)), want, "also where it was not asked before")
		}
	}
	called := func(context.Context, *activities.Change) error { panic("it must not be called") }
	for _, answer := range []func(context.Context, *activities.Change) error{
		nil, called, activities.Retry(retry.Constant(1, 0)), activities.Retry(retry.Table()), activities.All(called, nil),
	} {
		require.NoError(t, activities.Refused(answer))
	}
	require.NoError(t, activities.All[int](func(context.Context, int) error { return nil })(t.Context(), 1))
}
