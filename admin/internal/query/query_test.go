package query_test

import (
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/admin/internal/query"
)

// The filters of lists take the bounds of a period as ages or as times.
func TestPeriodsAreBoundedByAgesOrTimes(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	q := query.Of(url.Values{"newer": {"2026-11-21T02:00:00Z"}, "older": {"2026-11-21T04:00:00+01:00"}}, at)
	f := q.Cases()
	require.NoError(t, q.Err())
	require.True(t, f.Since.Equal(time.Date(2026, 11, 21, 2, 0, 0, 0, time.UTC)), f.Since)
	require.True(t, f.Before.Equal(time.Date(2026, 11, 21, 3, 0, 0, 0, time.UTC)), f.Before)

	q = query.Of(url.Values{"newer": {"1d"}}, at)
	require.Equal(t, at.Add(-24*time.Hour), q.Items().Since)
	require.NoError(t, q.Err())

	q = query.Of(url.Values{"older": {"yesterday"}}, at)
	q.Rates()
	require.ErrorContains(t, q.Err(), "2026-11-22T12:00:00Z")
}

// A parameter of one value that is given twice is refused, as the second would select nothing; one that takes several is not.
func TestAParameterOfOneValueIsGivenOnce(t *testing.T) {
	t.Parallel()
	v := url.Values{"code": {"late", "torn"}, "state": {"failed", "canceled"}}
	q := query.Of(v, time.Time{})
	require.Len(t, q.Items().States, 2)
	require.EqualError(t, q.Err(), "the parameter code takes one value, and is given 2 times")
}
