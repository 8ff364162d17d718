package admin_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/admin"
	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/sqlite"
	"github.com/tasq-dev/tasq/workflow"
)

// audited is an engine whose integrity checks call a function after the audit, and another one once the cases are checked.
type audited struct {
	*engine.Engine
	begun, last func()
}

func (b audited) View(ctx context.Context, f func(store.Reader) error) error {
	return b.Engine.View(ctx, func(r store.Reader) error { return f(&auditedReader{Reader: r, of: b}) })
}

// auditedReader knows that it is of a check once it is asked for an audit.
type auditedReader struct {
	store.Reader
	of     audited
	checks bool
}

func (r *auditedReader) Audit(ctx context.Context, most int) (store.Audit, error) {
	r.checks = true
	r.of.begun()
	return r.Reader.(store.Auditor).Audit(ctx, most)
}

func (r *auditedReader) MissingIndexes(ctx context.Context) ([]store.Index, error) {
	return r.Reader.(store.Auditor).MissingIndexes(ctx)
}

func (r *auditedReader) Counts(ctx context.Context) ([]store.Count, error) {
	if r.checks {
		r.of.last()
	}
	return r.Reader.Counts(ctx)
}

// checkedPages are the pages of a file with a case, whose checks call the functions.
func checkedPages(t *testing.T, begun, last func()) http.Handler {
	t.Helper()
	w := builder.New[any]("wait")
	w.Path(w.Start(), builder.Task(w, "wait", builder.Work[any, any]{}), w.End())
	e := enginetest.Open(t, sqlite.File(filepath.Join(t.TempDir(), "checked.db")), engine.Config{}, w.MustBuild())
	require.NoError(t, enginetest.Do(t.Context(), e, workflow.Start("wait", nil)))
	return admin.Handler(audited{e.Engine, begun, last}, admin.Config{Access: as("eve"), Clock: e.Clock(), Logger: slog.New(slog.DiscardHandler)})
}

// checked is the page of the doctor once no check is running.
func checked(t *testing.T, h http.Handler) (page string) {
	t.Helper()
	require.Eventually(t, func() bool {
		page = get(h, "/doctor").Body.String()
		return !strings.Contains(page, "a check is running")
	}, browserBound, 10*time.Millisecond)
	return page
}

// A check that takes long continues when its request ends, and the page shows how far it is; another request begins no second one.
func TestTheProgressOfAnIntegrityCheck(t *testing.T) {
	t.Parallel()
	reached, resume, begun := make(chan struct{}), make(chan struct{}), 0
	h := checkedPages(t, func() { begun++ }, func() { reached <- struct{}{}; <-resume })
	gone, leave := context.WithCancel(t.Context())
	leave()
	r := httptest.NewRequestWithContext(gone, http.MethodPost, "/doctor", nil)
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	require.Equal(t, http.StatusSeeOther, w.Code)
	<-reached
	page := get(h, "/doctor").Body.String()
	require.Contains(t, page, "a check is running: 1 of 1 entries of the journal, in 1 root case")
	require.Contains(t, page, `data-stream="/live?`, "the page is updated")
	require.Equal(t, http.StatusSeeOther, post(h, "/doctor").Code)
	resume <- struct{}{}
	page = checked(t, h)
	require.Contains(t, page, "whole: each of 1 root case was rebuilt")
	require.NotContains(t, page, `data-stream="/live?`)
	require.Equal(t, 1, begun)
}

// After a check that panics, the page says so, and another one can begin.
func TestAnIntegrityCheckThatPanics(t *testing.T) {
	t.Parallel()
	broken := true
	h := checkedPages(t, func() {
		if broken {
			panic("a row without an id")
		}
	}, func() {})
	require.Equal(t, http.StatusSeeOther, post(h, "/doctor").Code)
	page := checked(t, h)
	require.Contains(t, page, "it was not completed: it panicked; the log of the program says where")
	require.NotContains(t, page, "a row without an id")
	broken = false
	require.Equal(t, http.StatusSeeOther, post(h, "/doctor").Code)
	require.Contains(t, checked(t, h), "whole: each of 1 root case was rebuilt")
}
