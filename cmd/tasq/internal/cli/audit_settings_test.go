package cli

import (
	"bytes"
	"context"
	"encoding/csv"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
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

// A program that is opened with another definition of a limit is in the audit: the engine, what the definition was and is, and the numbers
// that are dropped with it. The other engines of the same program change nothing, nor does an earlier version beside them.
func TestAuditHasDefinitionsOfLimits(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, db store.Opener, at string) {
		open := func(owner string, l limit.Limit) *engine.Engine {
			f := builder.MustFunc("report", func(_ context.Context, s string) (string, error) { return s, nil })
			e, err := engine.Config{Owner: owner, Limits: []limit.Limit{l}, Logger: slog.New(slog.DiscardHandler)}.Open(t.Context(), db, f)
			require.NoError(t, err)
			return e
		}
		listed := func(want ...string) {
			t.Helper()
			code, out, errs := tasq(t, at, "audit", "--command", "limit define", "-o", "csv")
			require.Zero(t, code, errs)
			rows, err := csv.NewReader(strings.NewReader(out)).ReadAll()
			require.NoError(t, err)
			require.Len(t, rows, 1+len(want), out)
			for i, row := range rows[1:] {
				require.Equal(t, want[i], row[2]+" "+row[3])
			}
		}
		e := open("app/1", limit.Resource("api", 5))
		listed() // it is new
		require.NoError(t, e.Close())
		e = open("app/1", limit.Resource("api", 5))
		listed()
		require.NoError(t, e.Close())
		first := "app/2 limit define api (definition 5 slots -> 10 slots)"
		e = open("app/2", limit.Resource("api", 10))
		listed(first)
		if strings.HasPrefix(at, "postgres") {
			for _, n := range []int64{10, 5} { // the same program, and the version before it
				other := open("app/3", limit.Resource("api", n))
				listed(first)
				require.NoError(t, other.Close())
			}
		}
		for key, n := range map[string]int64{"": 3, "acme": 2} {
			c := workflow.SetLimit("api", n)
			if c.LimitKey = key; key != "" {
				c = workflow.SetLimitOf("api", key, n)
			}
			_, err := e.Do(t.Context(), c)
			require.NoError(t, err)
		}
		require.NoError(t, e.Close())
		e = open("app/4", limit.Rate("api", 100, time.Minute, limit.GCRA).Shared())
		defer func() { require.NoError(t, e.Close()) }()
		listed("app/4 limit define api (definition 10 slots -> 100 in 1m0s (gcra), shared, 3 -> 100, key acme 2 -> not set)", first)

		rows := pagesOfAudit(t, e, "/api/v1/audit?by=app/2")
		require.Len(t, rows, 1)
		require.Equal(t, []store.ValueChange{{What: "definition", From: "5 slots", To: "10 slots"}}, rows[0].Values)
		page := httptest.NewRecorder()
		admin.Handler(e, admin.Config{Access: admin.ReadOnly}).ServeHTTP(page, httptest.NewRequest(http.MethodGet, "/audit", nil))
		require.Contains(t, page.Body.String(), "limit define api (definition 5 slots -&gt; 10 slots)")

		if strings.HasPrefix(at, "postgres") { // several engines that are opened at once
			opened := make(chan *engine.Engine, 4)
			for range cap(opened) {
				go func() {
					other, err := engine.Config{Owner: "app/5", Limits: []limit.Limit{limit.Resource("api", 20)}, Logger: slog.New(slog.DiscardHandler)}.Open(t.Context(), db)
					assert.NoError(t, err)
					opened <- other
				}()
			}
			for range cap(opened) {
				if other := <-opened; other != nil {
					defer func() { require.NoError(t, other.Close()) }()
				}
			}
			require.Len(t, pagesOfAudit(t, e, "/api/v1/audit?by=app/5"), 1)
		}
	})
}
