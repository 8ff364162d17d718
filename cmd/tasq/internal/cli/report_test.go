package cli

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/limit"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workflow"
)

// What the commands say of queues and limits without an engine is what the database has of what an engine says.
func TestQueuesAndLimitsWithoutAnEngine(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, db store.Opener, at string) {
		mail := builder.MustFunc("mail", func(_ context.Context, s string) (string, error) { return s, nil },
			builder.OnQueue("mail"), builder.Limits(builder.Takes(limit.Resource("smtp", 5), 1)))
		e, err := engine.Open(t.Context(), db, mail)
		require.NoError(t, err)
		ran(t, at, "queue", "pause", "mail", "--by", "ann")
		ran(t, at, "limit", "set", "smtp", "3")
		for range 3 {
			_, err := mail.Run(t.Context(), e, "ada")
			require.NoError(t, err)
		}
		require.NoError(t, e.Drain(t.Context())) // until they wait for the queue
		queue := func() (q workflow.QueueInfo) {
			t.Helper()
			for line := range strings.Lines(ran(t, at, "queues", "-o", "json")) {
				require.NoError(t, json.Unmarshal([]byte(line), &q))
				if q.Queue == "mail" {
					return q
				}
			}
			require.Fail(t, "the queue is not listed")
			return q
		}
		with, stats := queue(), ran(t, at, "stats", "-o", "json")
		require.Equal(t, 3, with.Waiting)
		require.NotZero(t, with.Workers)
		require.Regexp(t, `(?m)^smtp +slots +3 +5 +0 +0 +now *$`, ran(t, at, "limits"))
		require.NoError(t, e.Close())

		with.Workers, with.Defined = 0, 0
		require.Equal(t, with, queue())
		require.Equal(t, stats, ran(t, at, "stats", "-o", "json"))
		require.Regexp(t, `(?m)^smtp +slots +3 +5 +0 +0 +no function here *$`, ran(t, at, "limits"))
	})
}
