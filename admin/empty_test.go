package admin_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/admin"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/enginetest"
)

// Each list of an empty database says what it would have, and with which command to begin.
func TestListsOfAnEmptyDatabaseProposeACommand(t *testing.T) {
	e := enginetest.Open(t, memory(), engine.Config{})
	h := admin.Handler(e, admin.Config{Access: as("eve")})
	for _, path := range []string{"/", "/workflows", "/cases", "/items", "/jobs", "/steps", "/events", "/limits", "/schedules", "/audit", "/bulk"} {
		w := get(h, path)
		require.Equal(t, http.StatusOK, w.Code, path)
		require.Regexp(t, `<div class="empty"><p>[^<]+</p><p><code>tasq [^<]+</code>`, w.Body.String(), path)
	}
}
