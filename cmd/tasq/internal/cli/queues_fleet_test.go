package cli

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/admin"
	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/internal/pgtest"
	"github.com/tasq-dev/tasq/limit"
	"github.com/tasq-dev/tasq/store/postgres"
	"github.com/tasq-dev/tasq/workflow"
)

// Of several engines one answers for its queues and limits. What runs and waits in all of them is read from the database.
func TestQueuesOfAFleet(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Database(t)
	release, running := make(chan struct{}), make(chan struct{}, 5)
	work := func(ctx context.Context, n int) (int, error) {
		running <- struct{}{}
		select {
		case <-release:
		case <-ctx.Done():
		}
		return n, nil
	}
	f := builder.MustFunc("render", work, builder.OnQueue("render"), builder.Limits(builder.Takes(limit.Resource("disk", 9), 1)))
	var engines []*engine.Engine
	for range 2 {
		e, err := engine.Config{Workers: 1, Logger: slog.New(slog.DiscardHandler)}.Open(t.Context(), postgres.Open(dsn), f)
		require.NoError(t, err)
		defer func() { require.NoError(t, e.Close()) }()
		engines = append(engines, e)
	}
	defer close(release)
	for n := range 5 {
		_, err := f.Run(t.Context(), engines[n%2], n)
		require.NoError(t, err)
	}
	<-running
	<-running // each engine has one worker

	code, out, errs := tasq(t, dsn, "queues", "-o", "json")
	require.Zero(t, code, errs)
	var q workflow.QueueInfo
	for line := range strings.Lines(out) {
		if strings.Contains(line, `"render"`) {
			require.NoError(t, json.Unmarshal([]byte(line), &q))
		}
	}
	require.Equal(t, 1, q.Running, "of the engine that has answered")
	require.NotNil(t, q.Fleet, out)
	require.Equal(t, []int{2, 2, 3}, []int{q.Fleet.Engines, q.Fleet.Running, q.Fleet.Waiting})
	require.WithinDuration(t, time.Now(), q.Fleet.Oldest, time.Hour)
	code, out, errs = tasq(t, dsn, "queues")
	require.Zero(t, code, errs)
	require.Regexp(t, `(?m)^render +1 +1 +1 .* 2 +3$`, out)
	require.Contains(t, errs, "WORKERS to AT MOST are those of one of 2 engines")

	code, out, errs = tasq(t, dsn, "limits")
	require.Zero(t, code, errs)
	require.Contains(t, out, "disk")
	require.Contains(t, errs, "WAITING, and IN USE of limits that are not shared, are those of one of 2 engines")

	pages := admin.Handler(engines[0], admin.Config{Access: admin.ReadOnly})
	get := func(path string) string {
		w := httptest.NewRecorder()
		pages.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		require.Equal(t, http.StatusOK, w.Code, w.Body)
		return w.Body.String()
	}
	require.Contains(t, get("/api/v1/limits"), `"engines":2`)
	require.Contains(t, get("/api/v1/queues"), `"running":2`)
	require.Contains(t, get("/limits"), "is that of one of 2 programs")
}
