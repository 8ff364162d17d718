package cli

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/admin"
	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/limit"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workflow"
)

// Every command that has changed a queue, a limit or a workflow is in the audit with its actor, its reason, and the values before and
// after, through the command, the API and the page, and is copied with the database. What changes nothing, a dry run and a command that
// fails is not.
func TestAuditHasChangesOfSettings(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, db store.Opener, at string) {
		f := builder.MustFunc("report", func(_ context.Context, s string) (string, error) { return s, nil })
		e, err := engine.Config{Limits: []limit.Limit{limit.Resource("api", 10)}}.Open(t.Context(), db, f)
		require.NoError(t, err)
		defer func() { _ = e.Close() }() // it is closed before the copy
		do := func(c workflow.Command, by, reason string) {
			_, err := e.Do(t.Context(), workflow.With(c, workflow.By(by), workflow.Because(reason)))
			require.NoError(t, err)
		}
		do(workflow.PauseQueue("mail"), "ann", "the server moves")
		do(workflow.PauseQueue("mail"), "tom", "")
		do(workflow.ResumeQueue("mail"), "", "it has moved")
		do(workflow.SetWorkers("mail", 3), "bob", "")
		do(workflow.SetLimit("api", 4), "ann", "")
		do(workflow.ForgetLimit("api"), "eve", "")
		do(workflow.PauseKey("mail", "acme"), "ann", "")
		do(workflow.SuspendWorkflow("report"), "ann", "")
		do(workflow.ResumeWorkflow("report"), "ann", "")
		_, err = e.DryRun(t.Context(), workflow.With(workflow.PauseQueue("mail"), workflow.By("tom")))
		require.NoError(t, err)
		_, err = e.Do(t.Context(), workflow.With(workflow.SetLimit("api", -1), workflow.By("tom")))
		require.Error(t, err)

		want := []string{
			"ann resume-workflow report (suspended -> open)", "ann suspend-workflow report (open -> suspended)",
			"ann pause-queue mail (key acme open -> paused)", "eve limit forget api (4 -> 10)", "ann limit set api 4 (10 -> 4)",
			"bob set-workers mail 3 (workers not set -> 3)", " resume-queue mail (paused -> open) it has moved",
			"ann pause-queue mail (open -> paused) the server moves",
		}
		listed := func(at string) {
			code, out, errs := tasq(t, at, "audit")
			require.Zero(t, code, errs)
			lines := strings.Split(strings.TrimSpace(out), "\n")[1:]
			require.Len(t, lines, len(want), out)
			for i, line := range lines {
				require.Equal(t, strings.TrimSpace(want[i]), strings.Join(strings.Fields(line)[1:], " "))
			}
		}
		listed(at)
		for args, n := range map[string]int{"--by ann": 5, "--command pause-queue": 2, "--older 1h": 0, "--newer 1h": 8, "--limit 1": 1} {
			code, out, errs := tasq(t, at, append([]string{"audit", "-o", "json"}, strings.Fields(args)...)...)
			require.Zero(t, code, errs)
			require.Equal(t, n, strings.Count(out, `"command"`), "%s: %s", args, out)
		}
		rows := pagesOfAudit(t, e, "/api/v1/audit?by=eve")
		require.Len(t, rows, 1)
		require.Equal(t, "limit/api", rows[0].Setting)
		require.Equal(t, []store.ValueChange{{What: "limit", From: "4", To: "10"}}, rows[0].Values)
		page := httptest.NewRecorder()
		admin.Handler(e, admin.Config{Access: admin.ReadOnly}).ServeHTTP(page, httptest.NewRequest(http.MethodGet, "/audit", nil))
		require.Contains(t, page.Body.String(), "set-workers mail 3 (workers not set -&gt; 3)")
		require.Contains(t, page.Body.String(), "the server moves")

		require.NoError(t, e.Close())
		copied := filepath.Join(t.TempDir(), "copy.db")
		var out, errs bytes.Buffer
		require.Zero(t, Main(t.Context(), []string{"copy", at, copied}, Streams{In: strings.NewReader(""), Out: &out, Err: &errs}, Registry{}), errs.String())
		listed(copied)
	})
}
