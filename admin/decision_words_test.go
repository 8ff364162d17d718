package admin_test

import (
	"log/slog"
	"net/http"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/admin"
	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/internal/pgtest"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/postgres"
	"github.com/tasq-dev/tasq/store/sqlite"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// A page says what a person can decide, in the picture, its text alternative and the card, and has buttons for it: no command line with ids,
// which the API has.
func TestAPageSaysADecisionWithoutCommands(t *testing.T) {
	t.Parallel()
	for name, opener := range map[string]func(t *testing.T) store.Opener{
		"sqlite":   func(t *testing.T) store.Opener { return sqlite.File(filepath.Join(t.TempDir(), "buy.db")) },
		"postgres": func(t *testing.T) store.Opener { return postgres.Open(pgtest.Database(t)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := builder.New[any]("buy")
			w.Path(w.Start(), builder.Task(w, "pay", builder.Work[any, any]{Policy: workitem.Incident(workitem.Policy{})}), w.End())
			e := enginetest.Open(t, opener(t), engine.Config{}, w.MustBuild())
			started, err := e.Do(t.Context(), workflow.Start("buy", nil))
			require.NoError(t, err)
			e.FailItem(started.Case, "pay.1.1", workitem.Failf("no-funds", "the account is empty"))
			h := admin.Handler(e.Engine, admin.Config{Access: as("eve"), Clock: e.Clock(), Logger: slog.New(slog.DiscardHandler)})

			reply := get(h, "/cases/"+started.Case.String())
			require.Equal(t, http.StatusOK, reply.Code)
			page := reply.Body.String()
			words := "a person decides: retry it, skip it or give it up"
			require.Regexp(t, `<title>pay: [^<]*`+words, page)
			require.Regexp(t, `<b>pay</b>[^<]*`+words, page)
			require.Regexp(t, `<p>[^<]*`+words+`</p>`, page)
			require.NotContains(t, page, "tasq item")
			require.NotContains(t, page, "tasq incident")

			answer := get(h, "/api/v1/cases/"+started.Case.String()+"/why").Body.String()
			item := e.Item(started.Case, "pay.1.1").ID.String()
			require.Contains(t, answer, `"commands":["tasq item retry `+item+`","tasq item skip `+item+`","tasq incident give-up `+item+`"]`)
		})
	}
}
