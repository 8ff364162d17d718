package admin_test

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/admin"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/bulk"
	"github.com/tasq-dev/tasq/engine/why"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// slow is an engine whose views, and tries of commands, never end by themselves.
type slow struct{ *engine.Engine }

func (slow) View(ctx context.Context, _ func(store.Reader) error) error {
	<-ctx.Done()
	return ctx.Err()
}

func (slow) Now() time.Time { return time.Now() }

func (slow) Here() why.Here { return why.Here{} }

func (slow) DryRun(ctx context.Context, _ workflow.Command) (engine.Preview, error) {
	<-ctx.Done()
	return engine.Preview{}, ctx.Err()
}

// A form takes as long as any other page at most, also while all views are taken.
func TestFormsHaveTheTimeOfAPage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := admin.Handler(slow{}, admin.Config{Access: as("ann"), Bulk: bulk.New(nil)})
		id := workitem.CaseID{1}.String()
		for _, path := range []string{"/act?kind=cancel&case=" + id, "/act?kind=move&case=" + id, "/bulk?kind=retry", "/bulk?kind=cancel&state=started", "/cases"} {
			before := time.Now()
			w := get(h, path)
			require.Equal(t, http.StatusServiceUnavailable, w.Code, path)
			require.Contains(t, w.Body.String(), "takes too long", path)
			require.LessOrEqual(t, time.Since(before), 10*time.Second, path)
		}
		w := post(h, "/bulk", "kind", "retry", "confirm", "1")
		require.Equal(t, http.StatusServiceUnavailable, w.Code)
		require.Contains(t, w.Body.String(), "takes too long")
	})
}
