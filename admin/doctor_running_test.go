package admin_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/admin"
	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/limit"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/sqlite"
	"github.com/tasq-dev/tasq/workflow"
)

// The doctor says what waits for limits and workers in the program that owns the database, in that program and in another one.
func TestTheDoctorAsksTheProgramWhatWaits(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "owned.db")
	begun, end := make(chan struct{}), make(chan struct{})
	f := builder.MustFunc("call", func(context.Context, string) (string, error) { begun <- struct{}{}; <-end; return "", nil }, builder.OnQueue("models"),
		builder.Limits(builder.Takes(limit.Resource("calls", 1), 1)))
	e, err := engine.Config{Queues: map[string]int{"models": 4}, Logger: slog.New(slog.DiscardHandler)}.Open(t.Context(), sqlite.File(file), f)
	require.NoError(t, err)
	defer func() { require.NoError(t, e.Close()) }()
	defer close(end) // before the engine is closed
	reader, err := sqlite.File(file).Open(t.Context(), store.Options{Now: retry.SystemClock.Now, ReadOnly: true})
	require.NoError(t, err)
	defer func() { require.NoError(t, reader.Close()) }()
	pages := func(b admin.Backend) http.Handler {
		return admin.Handler(b, admin.Config{Access: as("eve"), Logger: slog.New(slog.DiscardHandler)})
	}
	asking := func() http.Handler { return pages(admin.Reading(reader, sqlite.File(file).(poster).Post)) } // each remembers answers for seconds
	own, asked := pages(e), asking()
	text := func(h http.Handler) string { return plainText(get(h, "/doctor").Body.String()) }
	for _, h := range []http.Handler{own, asked} {
		require.Contains(t, text(h), "no work waits for one")
	}
	for range 3 {
		_, err := f.Start(t.Context(), e, "x")
		require.NoError(t, err)
	}
	<-begun
	require.Eventually(t, func() bool {
		result, err := e.Do(t.Context(), workflow.Limits())
		return err == nil && result.Limits[0].Waiting == 2
	}, time.Minute, time.Millisecond)
	asked = asking()
	for _, h := range []http.Handler{own, asked} {
		page := text(h)
		require.Contains(t, page, "limit calls")
		require.Contains(t, page, "2 jobs in line; 1 of 1 in use; free on release")
		require.NotContains(t, page, "no work waits for one")
	}
	require.Contains(t, text(asked), "2 due and not begun, the first since ")
	require.Equal(t, 2, strings.Count(linked(t, asked, "queue models")[0], `<td data-label="job">`), "the due jobs")
	require.Contains(t, text(asked), "; 1 of 4 workers run")
	_, err = e.Do(t.Context(), workflow.PauseQueue("models"))
	require.NoError(t, err)
	_, err = e.Do(t.Context(), workflow.SetLimit("calls", 0))
	require.NoError(t, err)
	asked = asking()
	require.Contains(t, text(asked), "; it is paused")
	require.Contains(t, text(asked), "2 jobs in line; it is set to 0")

	silent := pages(admin.Reading(reader, func(ctx context.Context, _ json.RawMessage) (store.Answer, error) {
		<-ctx.Done()
		return store.Answer{}, ctx.Err()
	}))
	require.Contains(t, text(silent), "not known: only the program that runs the functions knows their usage")
}
