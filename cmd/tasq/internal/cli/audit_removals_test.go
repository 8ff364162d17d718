package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/admin"
	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/internal/integrity"
	"github.com/tasq-dev/tasq/internal/record"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// The removal of a case is in the audit with its actor and its reason, through the command and the API, among the entries
// of the journal; each is on one page. What the engine or a dry run removes is not.
func TestAuditHasRemovals(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, db store.Opener, at string) {
		f := builder.MustFunc("report", func(_ context.Context, s string) (string, error) { return s, nil })
		swept := builder.MustFunc("swept", func(_ context.Context, s string) (string, error) { return s, nil }, builder.Keep(0))
		e, err := engine.Open(t.Context(), db, f, swept)
		require.NoError(t, err)
		defer func() { require.NoError(t, e.Close()) }()
		var ids []string
		var kept workitem.CaseID
		for i := range 4 {
			run, err := f.Start(t.Context(), e, fmt.Sprint(i), workflow.By("ann"))
			require.NoError(t, err)
			_, err = e.Wait(t.Context(), run)
			require.NoError(t, err)
			kept, ids = run, append(ids, run.String())
		}
		run, err := swept.Start(t.Context(), e, "x", workflow.By("ann"))
		require.NoError(t, err)
		_, err = e.Wait(t.Context(), run)
		require.NoError(t, err)
		_, err = e.DryRun(t.Context(), workflow.With(workflow.Remove(kept), workflow.By("tom")))
		require.NoError(t, err)
		for _, args := range [][]string{
			{"case", "remove", ids[0], "--by", "bob", "--reason", "asked by the customer"},
			{"case", "remove", ids[2], "--by", "eve"},
		} {
			code, _, errs := tasq(t, at, args...)
			require.Zero(t, code, errs)
		}
		code, out, errs := tasq(t, at, "audit")
		require.Zero(t, code, errs)
		lines := strings.Split(strings.TrimSpace(out), "\n")
		require.Len(t, lines, 5, out) // the head, two removals, two starts that are left
		require.Contains(t, lines[1], "eve  case remove "+ids[2])
		require.Regexp(t, `^ +\S+ +bob  case remove `+ids[0]+` +asked by the customer$`, lines[2])
		require.Contains(t, lines[3], "start")

		for args, want := range map[string]int{"--by bob": 1, "--command start": 2, "--command 'case remove'": 2, "--case " + ids[0]: 1, "--newer 1h": 4,
			"--older 1h": 0, "--limit 1": 1, "--limit 3": 3} {
			words := append([]string{"audit", "-o", "json"}, strings.Fields(strings.ReplaceAll(args, "'case remove'", "case|remove"))...)
			for i := range words {
				words[i] = strings.ReplaceAll(words[i], "|", " ")
			}
			code, out, errs = tasq(t, at, words...)
			require.Zero(t, code, errs)
			require.Equal(t, want, strings.Count(out, `"command"`), "%s: %s", args, out)
		}
		code, _, errs = tasq(t, at, "audit", "--case", run.String())
		require.Equal(t, ExitNotFound, code, errs)

		_, err = e.Do(t.Context(), workflow.Remove(run))
		require.ErrorIs(t, err, store.ErrNotFound)
		require.Len(t, pagesOfAudit(t, e, "/api/v1/audit?limit=1"), 4)
		rows := pagesOfAudit(t, e, "/api/v1/audit?limit=2&by=bob")
		require.Len(t, rows, 1)
		require.Equal(t, "asked by the customer", rows[0].Reason)
		page := httptest.NewRecorder()
		admin.Handler(e, admin.Config{Access: admin.ReadOnly}).ServeHTTP(page, httptest.NewRequest(http.MethodGet, "/audit", nil))
		require.Contains(t, page.Body.String(), "asked by the customer")
		require.NotContains(t, page.Body.String(), "/cases/"+ids[0])
		require.NoError(t, integrity.Check(t.Context(), e))
	})
}

// pagesOfAudit returns all rows of a list, by its pages.
func pagesOfAudit(t *testing.T, e *engine.Engine, path string) (all []record.Act) {
	t.Helper()
	h := admin.Handler(e, admin.Config{Access: admin.ReadOnly})
	for next := int64(-1); next != 0; {
		url := path
		if next > 0 {
			url += fmt.Sprint("&before=", next)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, url, nil))
		require.Equal(t, http.StatusOK, w.Code, w.Body)
		var page struct {
			Rows []record.Act `json:"rows"`
			Next int64        `json:"next"`
		}
		require.NoError(t, json.Unmarshal(w.Body.Bytes(), &page))
		all, next = append(all, page.Rows...), page.Next
	}
	seen := make(map[string]bool)
	for _, a := range all {
		key := a.Command + a.Root.String()
		require.False(t, seen[key], key)
		seen[key] = true
	}
	return all
}
