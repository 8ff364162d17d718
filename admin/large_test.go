package admin_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/admin"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// newLarge is an engine with a case of a net with so many tasks: groups of a task that splits, two branches, and a task that joins them.
func newLarge(t testing.TB, tasks int) (*enginetest.Engine, workitem.CaseID) {
	t.Helper()
	var b strings.Builder
	b.WriteString("workflow large\n  start begin\n  end over\n")
	words := []string{"register order", "check credit", "check stock", "confirm delivery"}
	name := func(i int) string { return fmt.Sprintf("%s_%d", strings.ReplaceAll(words[i%4], " ", "_"), i) }
	before := "begin"
	for i := 0; i < tasks; i += 4 {
		split, one, two, join := name(i), name(i+1), name(i+2), name(i+3)
		fmt.Fprintf(&b, "  task %s split=and\n  task %s\n  task %s\n  task %s join=and\n", split, one, two, join)
		fmt.Fprintf(&b, "  flow %s -> %s\n  flow %s -> %s, %s\n  flow %s -> %s\n  flow %s -> %s\n", before, split, split, one, two, one, join, two, join)
		before = join
	}
	fmt.Fprintf(&b, "  flow %s -> over\n", before)
	e := engineOf(t, b.String())
	started, err := e.Do(t.Context(), workflow.Start("large", []byte(`{}`)))
	require.NoError(t, err)
	return e, started.Case
}

// progress completes so many tasks of the case.
func progress(t testing.TB, e *enginetest.Engine, id workitem.CaseID, tasks int) {
	t.Helper()
	for done := 0; done < tasks; {
		require.NoError(t, e.Update(t.Context(), func(tx *engine.Tx) error {
			c, err := tx.Case(t.Context(), id)
			for it := range c.Items.All() {
				if err != nil || it.State.Final() {
					continue
				}
				done++
				if _, err = tx.Do(t.Context(), workflow.Act(it.ID, workitem.Start, nil)); err == nil {
					_, err = tx.Do(t.Context(), workflow.Act(it.ID, workitem.Complete, []byte(`{}`)))
				}
			}
			return err
		}))
	}
}

// The pages of a net of 500 tasks, new, half completed or almost completed, send no more than the budget of a page, 25 kB.
func TestThePagesOfALargeNetAreSmall(t *testing.T) {
	e, id := newLarge(t, 500)
	h := admin.Handler(e, admin.Config{Access: admin.AllowAll})
	completed := 0
	for _, more := range []int{0, 240, 240} {
		progress(t, e, id, more)
		completed += more
		for _, path := range []string{"/cases/" + id.String(), "/workflows/large"} {
			r := httptest.NewRequest(http.MethodGet, path, nil)
			r.Header.Set("Accept-Encoding", "gzip")
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			require.Equal(t, http.StatusOK, w.Code)
			require.Less(t, w.Body.Len(), 25_000, "%s with %d tasks completed", path, completed)
		}
	}
	require.Contains(t, get(h, "/cases/"+id.String()).Body.String(), "register_order_200: completed")
}

// The page of a case of 200 tasks, half of them completed, most of which is the picture of its net.
func BenchmarkALargeNet(b *testing.B) {
	e, id := newLarge(b, 200)
	h := admin.Handler(e, admin.Config{Access: admin.AllowAll})
	progress(b, e, id, 100)
	for b.Loop() {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/cases/"+id.String(), nil))
		require.Equal(b, http.StatusOK, w.Code)
	}
}
