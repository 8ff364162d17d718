package admin_test

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/admin"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// strandedOf is what the API has of stranded cases.
type strandedOf struct {
	Cases, Examined int
	All             bool
	Since           time.Time
}

func strandedBy(t *testing.T, h http.Handler) strandedOf {
	t.Helper()
	var counts struct{ Stranded strandedOf }
	w := get(h, "/api/v1/counts")
	require.Equal(t, http.StatusOK, w.Code, w.Body)
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &counts))
	return counts.Stranded
}

// The overview and the API count the cases that nothing moves, without those that have an incident, and say when they were examined: in the program, and
// beside it. What was examined in the last seconds is not examined again.
func TestTheOverviewCountsStrandedCases(t *testing.T) {
	t.Parallel()
	e := enginetest.New(t, compiled(t, line)...)
	var ids []workitem.CaseID
	for _, name := range []string{"line", "line", "line", "bill"} {
		id, err := enginetest.Start(t.Context(), e, name, json.RawMessage("1"))
		require.NoError(t, err)
		ids = append(ids, id)
	}
	e.Drain()
	e.FailItem(ids[3], "charge", &workitem.Failure{Code: "no-funds", Message: "12.50 EUR are there"})
	quiet := slog.New(slog.DiscardHandler)
	handlers := map[string]http.Handler{
		"program": admin.Handler(e.Engine, admin.Config{Access: as("eve"), Clock: e.Clock(), Logger: quiet}),
		"beside":  admin.Handler(&beside{Backend: admin.Reading(e, nil), now: e.Now}, admin.Config{Access: admin.ReadOnly, Logger: quiet}),
	}
	for name, h := range handlers {
		begun := e.Now()
		require.Equal(t, strandedOf{Examined: 4, All: true, Since: begun.UTC()}, strandedBy(t, h), name)
		page := get(h, "/").Body.String()
		require.NotContains(t, page, "nothing moves")
		require.Regexp(t, `Find stranded cases</a> · examined <time datetime="`+begun.UTC().Format("2006-01-02T15:04:00"), page, name)
		for _, id := range ids[:2] {
			require.NoError(t, enginetest.Do(t.Context(), e, workflow.Suspend(id)))
		}
		require.Zero(t, strandedBy(t, h).Cases, "it was examined a moment before")
		e.Advance(2 * time.Second)
		page = get(h, "/").Body.String()
		require.Regexp(t, `<a href="/doctor#part-stranded"><b class="s-bad"><span aria-hidden="true">[^<]*</span> 2</b> <span>cases that nothing moves</span>`, page, name)
		require.Equal(t, strandedOf{Cases: 2, Examined: 4, All: true, Since: begun.Add(2 * time.Second).UTC()}, strandedBy(t, h), name)
		require.Regexp(t, `(?s)suspended.*suspended.*no-funds`, doctorOf(h), "incidents are the last, as they are listed by themselves")
		for _, id := range ids[:2] {
			require.NoError(t, enginetest.Do(t.Context(), e, workflow.Resume(id, nil)))
		}
		e.Advance(2 * time.Second)
		require.NotContains(t, get(h, "/").Body.String(), "nothing moves", name)
	}
}

// beside is a Backend with the clock of a test.
type beside struct {
	admin.Backend
	now func() time.Time
}

func (b *beside) Now() time.Time { return b.now() }

func doctorOf(h http.Handler) string { return get(h, "/doctor").Body.String() }

// Of more cases than one page examines, each visit examines some more beside the page, where the last one stopped, until all are known. The doctor lists what
// was found, however new it is.
func TestManyCasesAreExaminedOverTime(t *testing.T) {
	t.Parallel()
	e := enginetest.New(t, compiled(t, line)...)
	require.NoError(t, e.Update(t.Context(), func(tx *engine.Tx) error {
		for range 130 {
			if _, err := tx.Do(t.Context(), workflow.Start("line", nil)); err != nil {
				return err
			}
		}
		return nil
	}))
	var last workitem.CaseID
	for c, err := range store.AllCases(t.Context(), e, store.CaseFilter{}) {
		require.NoError(t, err)
		last = c.ID
	}
	require.NoError(t, enginetest.Do(t.Context(), e, workflow.Suspend(last)))
	h := admin.Handler(e.Engine, admin.Config{Access: as("eve"), Clock: e.Clock(), Logger: slog.New(slog.DiscardHandler)})
	begun := e.Now().UTC()
	require.Equal(t, strandedOf{Examined: 100, Since: begun}, strandedBy(t, h))
	require.Contains(t, get(h, "/").Body.String(), "the oldest 100 examined")
	require.NotContains(t, doctorOf(h), shortID(last))
	e.Advance(9 * time.Second)
	require.Equal(t, strandedOf{Examined: 100, Since: begun}, strandedBy(t, h), "the next pass begins after ten seconds")
	e.Advance(time.Second)
	require.Eventually(t, func() bool { return strandedBy(t, h) == strandedOf{Cases: 1, Examined: 130, All: true, Since: begun} }, time.Minute, time.Millisecond)
	require.Contains(t, get(h, "/").Body.String(), "case that nothing moves")
	require.Contains(t, doctorOf(h), shortID(last))
	require.Contains(t, doctorOf(h), "All 130 live root cases were examined in the last 10s")

	require.NoError(t, enginetest.Do(t.Context(), e, workflow.Cancel(last, nil)))
	e.Advance(10 * time.Second)
	require.Eventually(t, func() bool { return strandedBy(t, h).Cases == 0 && strandedBy(t, h).Examined == 129 }, time.Minute, time.Millisecond)
}
