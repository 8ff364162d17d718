package admin_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/admin"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workitem"
)

// empty is a database in which nothing is found.
type empty struct{ store.Viewer }

func (empty) View(context.Context, func(store.Reader) error) error { return store.ErrNotFound }

// A change that no owner of the database takes says that, and what to do, and not that the page is slow.
func TestAChangeThatNoOwnerTakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := admin.Handler(admin.Reading(empty{}, func(ctx context.Context, _ json.RawMessage) (store.Answer, error) {
			<-ctx.Done()
			return store.Answer{}, fmt.Errorf("the command did not happen: %w", ctx.Err())
		}), admin.Config{Access: as("eve"), Logger: slog.New(slog.DiscardHandler)})
		w := post(h, "/act", "kind", "cancel", "case", workitem.CaseID{1}.String())
		require.Equal(t, http.StatusServiceUnavailable, w.Code)
		require.Contains(t, w.Body.String(), "the command did not happen")
		require.Contains(t, w.Body.String(), "Start it, and submit the form again")
		require.Contains(t, w.Body.String(), "Code <code>unavailable</code>")
		require.NotContains(t, w.Body.String(), "takes too long")
	})
}
