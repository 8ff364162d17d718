package admin_test

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/admin"
	"github.com/tasq-dev/tasq/admin/internal/source"
	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/internal/pgtest"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/postgres"
	"github.com/tasq-dev/tasq/store/sqlite"
	"github.com/tasq-dev/tasq/workflow"
)

// The page of the doctor describes the database of each store, and checks it on demand, for those who may have that done.
func TestTheDoctorDescribesTheDatabase(t *testing.T) {
	t.Parallel()
	for name, opener := range map[string]func(t *testing.T) (o store.Opener, named string){
		"sqlite": func(t *testing.T) (store.Opener, string) {
			return sqlite.File(filepath.Join(t.TempDir(), "orders.db")), "<dd>orders.db</dd>"
		},
		"postgres": func(t *testing.T) (store.Opener, string) {
			return postgres.Open(pgtest.Database(t)), ", schema tasq</dd>"
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, named := opener(t)
			w := builder.New[any]("wait")
			w.Path(w.Start(), builder.Task(w, "wait", builder.Work[any, any]{}), w.End())
			e := enginetest.Open(t, db, engine.Config{}, w.MustBuild())
			require.NoError(t, enginetest.Do(t.Context(), e, workflow.Start("wait", nil)))
			handler := func(access func(*http.Request) (admin.User, error)) http.Handler {
				return admin.Handler(e.Engine, admin.Config{Access: access, Clock: e.Clock(), Logger: slog.New(slog.DiscardHandler)})
			}
			h := handler(as("eve"))
			page := get(h, "/doctor").Body.String()
			require.Contains(t, page, named)
			require.Regexp(t, `<dt>size</dt><dd>[0-9.]+ [kM]B`, page)
			require.Regexp(t, `<dt>schema</dt><dd>migration [1-9]`, page)
			require.Regexp(t, `<dt>journal</dt><dd>entry [1-9]`, page)
			require.Contains(t, page, "<dt>open live pages</dt><dd>0</dd>")
			require.Contains(t, page, "not checked from this page")
			require.Equal(t, http.StatusSeeOther, post(h, "/doctor").Code)
			checked(t, h)
			e.Advance(time.Minute)
			require.Contains(t, get(h, "/doctor").Body.String(), "1m ago: whole: each of 1 root case was rebuilt from the journal, 1 entries")

			var d source.Database
			require.NoError(t, json.Unmarshal(get(h, "/api/v1/database").Body.Bytes(), &d))
			require.Positive(t, d.Entry)
			require.Positive(t, d.Size)
			require.Positive(t, d.Schema)
			require.NotContains(t, d.Name, "/tmp")

			reader := handler(admin.ReadOnly)
			require.NotContains(t, get(reader, "/doctor").Body.String(), "Check the integrity now")
			require.Equal(t, http.StatusForbidden, post(reader, "/doctor").Code)
		})
	}
}
