package cli

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/admin"
	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/internal/pgtest"
	"github.com/tasq-dev/tasq/store/postgres"
)

// The list of engines says whose heartbeats have stopped, and has those that were declared dead, through the command, the API and the page.
func TestProcessesHasDeadEngines(t *testing.T) {
	t.Parallel()
	at := pgtest.Database(t)
	b := builder.New[any]("desk")
	b.Path(b.Start(), builder.Task(b, "check", builder.Work[any, any]{}), b.End())
	desk := b.MustBuild()
	open := func() *engine.Engine {
		e, err := engine.Config{Logger: slog.New(slog.DiscardHandler)}.Open(t.Context(), postgres.Open(at), desk)
		require.NoError(t, err)
		return e
	}
	require.NoError(t, open().Close())
	c, err := pgx.Connect(t.Context(), at)
	require.NoError(t, err)
	for _, statement := range []string{
		"INSERT INTO tasq.processes (id, name, state, reads, token, joined) OVERRIDING SYSTEM VALUE VALUES (1000, 'gone/7', 'live', 1, 1, now())",
		"INSERT INTO tasq.pulses (process, beat, pace, busy) VALUES (1000, now() - interval '1 h', '1s', false)",
	} {
		_, err = c.Exec(t.Context(), statement)
		require.NoError(t, err)
	}
	require.NoError(t, c.Close(t.Context()))
	code, out, errs := tasq(t, at, "processes")
	require.Zero(t, code, errs)
	require.Regexp(t, `^ID +PROCESS +STATE +SINCE .*\n1000 +gone/7 +overdue `, out)
	require.NotContains(t, out, "DIED")

	e := open()
	defer func() { require.NoError(t, e.Close()) }()
	code, out, errs = tasq(t, at, "processes")
	require.Zero(t, code, errs)
	require.Regexp(t, `^ID .* DEFINITIONS\n[0-9]+ +\S+ +live .*\nID +PROCESS +STATE +SINCE +HELD +RUNNING +SEEN +DIED +DECLARED BY\n1000 +gone/7 +dead +\S+ +0 +0 +1h\S+ ago +20\S+ +\S+/[0-9]+\n$`, out)
	code, out, errs = tasq(t, at, "processes", "-o", "json")
	require.Zero(t, code, errs)
	lines := strings.Split(strings.TrimSpace(out), "\n")
	require.Len(t, lines, 2)
	require.Contains(t, lines[0], `"state":"live"`)
	require.Contains(t, lines[1], `"name":"gone/7","state":"dead"`)
	require.Contains(t, lines[1], `"declared_by":"`)

	h := admin.Handler(e, admin.Config{Access: admin.ReadOnly})
	for path, want := range map[string]string{"/api/v1/engines": `"name":"gone/7","state":"dead"`, "/doctor": `data-label="process">gone/7</td>`} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		require.Contains(t, w.Body.String(), want)
	}
}
