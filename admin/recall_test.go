package admin_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/admin"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/internal/pgtest"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/postgres"
	"github.com/tasq-dev/tasq/store/sqlite"
)

// Without an owner of the database, only the first view of the pages Limits and Doctor waits for its answer.
func TestTheSecondViewDoesNotWaitForAnOwner(t *testing.T) {
	t.Parallel()
	for name, opener := range map[string]func(t *testing.T) store.Opener{
		"sqlite":   func(t *testing.T) store.Opener { return sqlite.File(filepath.Join(t.TempDir(), "buy.db")) },
		"postgres": func(t *testing.T) store.Opener { return postgres.Open(pgtest.Database(t)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := opener(t)
			e, err := engine.Config{Logger: slog.New(slog.DiscardHandler)}.Open(t.Context(), db, workflows(t, likely)...)
			require.NoError(t, err)
			require.NoError(t, e.Close())
			reader, err := db.Open(t.Context(), store.Options{Now: retry.SystemClock.Now, ReadOnly: true})
			require.NoError(t, err)
			defer func() { require.NoError(t, reader.Close()) }()
			var questions atomic.Int64
			h := admin.Handler(admin.Reading(reader, func(ctx context.Context, _ json.RawMessage) (store.Answer, error) {
				questions.Add(1)
				<-ctx.Done()
				return store.Answer{}, ctx.Err()
			}), admin.Config{Access: as("eve"), Logger: slog.New(slog.DiscardHandler)})
			for range 3 {
				for path, says := range map[string]string{"/limits": "it does not answer", "/doctor": "only the program that runs the functions knows their usage"} {
					begun := time.Now()
					w := get(h, path)
					require.Equal(t, http.StatusOK, w.Code, w.Body)
					require.Contains(t, w.Body.String(), says)
					t.Log(path, time.Since(begun), questions.Load())
				}
			}
			require.LessOrEqual(t, questions.Load(), int64(2), "the second only if the machine is so slow that the answer is too old")
		})
	}
}
