package admin_test

import (
	"context"
	"log/slog"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/admin"
	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/internal/pgtest"
	"github.com/tasq-dev/tasq/internal/printable"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/postgres"
	"github.com/tasq-dev/tasq/store/sqlite"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// The times of a workflow are those of its items in a period, however many newer items other workflows have.
func TestTimesOfATaskBesideManyItemsOfAnotherWorkflow(t *testing.T) {
	t.Parallel()
	for name, opener := range map[string]func(t *testing.T) store.Opener{
		"sqlite":   func(t *testing.T) store.Opener { return sqlite.File(filepath.Join(t.TempDir(), "slow.db")) },
		"postgres": func(t *testing.T) store.Opener { return postgres.Open(pgtest.Database(t)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			slow, many := builder.New[any]("slow"), builder.New[any]("many")
			slow.Path(slow.Start(), builder.Task(slow, "think", builder.Work[any, any]{}), slow.End())
			items := func(context.Context, *activities.Activation) ([]any, error) { return make([]any, 1001), nil }
			many.Path(many.Start(), builder.Task(many, "pack", builder.Work[any, any]{Items: items}), many.End())
			e := enginetest.Open(t, opener(t), engine.Config{}, slow.MustBuild(), many.MustBuild())
			do := func(c workflow.Command) workflow.Result {
				result, err := e.Do(t.Context(), c)
				require.NoError(t, err)
				return result
			}
			item := e.Item(do(workflow.Start("slow", nil)).Case, "think.1.1").ID
			e.Advance(20 * time.Minute)
			do(workflow.Act(item, workitem.Start, nil))
			e.Advance(40 * time.Minute)
			do(workflow.Act(item, workitem.Complete, []byte(`{}`)))
			e.Advance(time.Hour)
			do(workflow.Start("many", nil))

			h := admin.Handler(e.Engine, admin.Config{Access: as("eve"), Clock: e.Clock(), Logger: slog.New(slog.DiscardHandler)})
			page := func(query string) string {
				w := get(h, "/workflows/slow"+query)
				require.Equal(t, http.StatusOK, w.Code, w.Body)
				return w.Body.String()
			}
			about := func(d time.Duration) string { // the middle of its class
				return regexp.QuoteMeta(printable.Took(store.TookOf(store.TookClass(d))))
			}
			took := about(40*time.Minute) + " / " + about(40*time.Minute)
			for _, query := range []string{"", "?newer=7d"} {
				require.Regexp(t, `data-label="waited p50 / p95"[^>]*>`+about(20*time.Minute)+` / `, page(query))
				require.Regexp(t, `data-label="took p50 / p95"[^>]*>`+took+`<`, page(query))
			}
			require.Regexp(t, `<title>think: `+about(40*time.Minute)+` for half of the items`, page("?heat=time"))
			require.Regexp(t, `href="[^"]*heat=time&amp;newer=7d"`, page("?heat=time"), "the period and the measure are chosen apart")
			require.Contains(t, page("?heat=attempts"), `<title>think: 1.0 attempts for each completed work item`)
			require.Regexp(t, `data-label="attempts"[^>]*>1.0<`, page(""))
			require.Equal(t, 2, strings.Count(page(""), ` stroke-width="4"><title>1 work item of think completed</title>`), "the arrows to and from the task")
			e.Advance(25 * time.Hour)
			require.NotContains(t, page(""), "</title></path>", "no item completed in the period")
			require.NotRegexp(t, `data-label="took p50 / p95"[^>]*>[0-9]`, page(""))
			require.Regexp(t, `data-label="took p50 / p95"[^>]*>`+took+`<`, page("?newer=7d"))
			require.Equal(t, http.StatusBadRequest, get(h, "/workflows/slow?newer=soon").Code)
		})
	}
}
