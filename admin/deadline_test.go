package admin_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/admin"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workitem"
)

// waiting is a database that answers nothing before the context of a view ends, or at once if that has no end.
type waiting struct{ store.Viewer }

func (waiting) View(ctx context.Context, _ func(store.Reader) error) error {
	if _, ends := ctx.Deadline(); !ends {
		return store.ErrUnavailable
	}
	<-ctx.Done()
	return ctx.Err()
}

// An answer of the API that takes long is an error that says what to do. A stream and an export take as long as they need.
func TestAnAnswerOfTheAPIHasADeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := admin.Reading(waiting{}, nil)
		h := admin.Handler(b, admin.Config{Access: as("eve"), Logger: slog.New(slog.DiscardHandler)})
		ask := func(path, accept string) *httptest.ResponseRecorder {
			r := httptest.NewRequest(http.MethodGet, path, nil)
			r.Header.Set("Accept", accept)
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			return w
		}
		asked := 0
		for _, pattern := range admin.Patterns(b, admin.Config{}) {
			path, ok := strings.CutPrefix(pattern, "GET /api/v1/")
			if !ok || strings.HasSuffix(path, "openapi.json") || path == "stream" || path == "export" || path == "limits" {
				continue // the limits are asked of an engine, which has ten seconds
			}
			path = "/api/v1/" + strings.NewReplacer("{id}", workitem.CaseID{1}.String(), "{name}", "x").Replace(path)
			begun := time.Now()
			w := ask(path, "application/json")
			require.Equal(t, http.StatusServiceUnavailable, w.Code, "%s: %s", path, w.Body)
			if time.Since(begun) == 0 { // without bulk actions and schedules the answer is known at once
				require.NotContains(t, w.Body.String(), `"busy"`, path)
				continue
			}
			asked++
			require.Equal(t, 10*time.Second, time.Since(begun), path)
			require.Contains(t, w.Body.String(), `"code":"busy"`, path)
			require.Contains(t, w.Body.String(), "select less with the filters and limit", path)
			require.Equal(t, "1", w.Header().Get("Retry-After"), path)
		}
		require.Greater(t, asked, 15)
		for _, export := range []string{"/api/v1/cases?format=csv", "/api/v1/export?format=csv"} {
			require.NotContains(t, ask(export, "*/*").Body.String(), `"busy"`, export)
		}
		require.NotContains(t, ask("/api/v1/cases", "application/x-ndjson").Body.String(), `"busy"`)
	})
}
