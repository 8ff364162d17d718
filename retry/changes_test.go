package retry_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/retry"
)

func to[T any](v T) *T { return &v }

func TestChangesOfAPolicy(t *testing.T) {
	t.Parallel()
	base := retry.Policy{Attempts: 3, Initial: time.Second, Base: 2, Jitter: retry.JitterProportional, Spread: 0.5}
	table := retry.Table(time.Second, time.Minute)
	for _, c := range []struct {
		text    string
		changes retry.Changes
		of      retry.Policy
		want    string
	}{
		{"nothing", retry.Changes{}, base, "3 attempts, exponential 1s x2, proportional jitter 0.5"},
		{"1 attempt", retry.Changes{Attempts: to(1)}, base, "1 attempt"},
		{"6 attempts, first wait 5s", retry.Changes{Attempts: to(6), Initial: to(5 * time.Second)}, base, "6 attempts, exponential 5s x2, proportional jitter 0.5"},
		{"linear, full jitter", retry.Changes{Backoff: to(retry.BackoffLinear), Jitter: to(retry.JitterFull)}, base, "3 attempts, linear 1s, full jitter"},
		{"waits [2s]", retry.Changes{Waits: []time.Duration{2 * time.Second}}, base, "3 attempts, table [2s], proportional jitter 0.5"},
		{"constant, first wait 3s", retry.Changes{Backoff: to(retry.BackoffConstant), Initial: to(3 * time.Second)}, table, "3 attempts, constant 3s"},
		{"base 3, at most 1m0s, within 1h0m0s, spread 0.1", retry.Changes{Base: to(3.0), MaxWait: to(time.Minute), MaxElapsed: to(time.Hour), Spread: to(0.1)}, base,
			"3 attempts, exponential 1s x3, at most 1m0s, within 1h0m0s, proportional jitter 0.1"},
	} {
		got := c.changes.Of(c.of)
		require.Equal(t, c.want, got.String())
		require.NoError(t, got.Validate(), c.want)
		require.Equal(t, c.text, c.changes.String())
		raw, err := json.Marshal(c.changes)
		require.NoError(t, err)
		var back retry.Changes
		require.NoError(t, json.Unmarshal(raw, &back))
		require.Equal(t, c.changes, back)
	}
	require.Equal(t, "2 attempts, linear, first wait 1s", retry.Changes{Attempts: to(9), Waits: table.Waits, Initial: to(time.Second)}.
		Then(retry.Changes{Attempts: to(2), Backoff: to(retry.BackoffLinear)}).String(), "of two changes of a field the later one")
	require.Equal(t, "waits [1s 1m0s], none jitter", retry.Changes{Backoff: to(retry.BackoffLinear), Jitter: to(retry.JitterProportional), Spread: to(0.1)}.
		Then(retry.Changes{Waits: table.Waits, Jitter: to(retry.JitterNone)}).String())
	require.ErrorIs(t, json.Unmarshal([]byte(`{"backoff":"steep"}`), new(retry.Changes)), retry.ErrInvalid)
	require.ErrorIs(t, json.Unmarshal([]byte(`{"jitter":"some"}`), new(retry.Changes)), retry.ErrInvalid)
	_, err := json.Marshal(retry.Changes{Backoff: to(retry.Backoff(9))})
	require.ErrorIs(t, err, retry.ErrInvalid)
	_, err = json.Marshal(retry.Changes{Jitter: to(retry.Jitter(9))})
	require.ErrorIs(t, err, retry.ErrInvalid)
}
