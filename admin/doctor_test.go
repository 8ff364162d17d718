package admin_test

import (
	"database/sql"
	"encoding/json"
	"log/slog"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
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

// linked checks that each check of the doctor has a link to what it is about, and returns the pages behind those whose name has a word.
func linked(t *testing.T, h http.Handler, word string) (about []string) {
	t.Helper()
	page := get(h, "/doctor").Body.String()
	_, list, _ := strings.Cut(page, `<table id="checks"`)
	list, _, _ = strings.Cut(list, "</table>")
	links := regexp.MustCompile(`data-label="check"><a href="([^"]+)"[^>]*>([^<]+)</a>`).FindAllStringSubmatch(list, -1)
	require.Len(t, links, strings.Count(list, `data-label="check"`), list)
	for _, l := range links {
		to, name := strings.ReplaceAll(l[1], "&amp;", "&"), l[2]
		if id, here := strings.CutPrefix(to, "#"); here {
			require.Contains(t, page, `id="`+id+`"`)
			continue
		}
		answer := get(h, to)
		require.Equal(t, http.StatusOK, answer.Code, to)
		if strings.Contains(name, word) {
			about = append(about, answer.Body.String())
		}
	}
	require.NotEmpty(t, about, list)
	return about
}

// Each check leads to what it is about, whether it is well or not, and a stranded case is named by its business key.
func TestTheChecksOfTheDoctorLead(t *testing.T) {
	t.Parallel()
	flows := compiled(t, line)
	e := enginetest.New(t, flows...)
	started, err := e.Do(t.Context(), workflow.Start("line", nil, workflow.BusinessKey("R-4711")))
	require.NoError(t, err)
	h := admin.Handler(e.Engine, admin.Config{Access: as("eve"), Clock: e.Clock(), Logger: slog.New(slog.DiscardHandler)})
	for _, word := range []string{"due work", "incidents", "definitions", "cases"} {
		linked(t, h, word)
	}
	e.Crash(inQueue())
	h = admin.Handler(e.Engine, admin.Config{Access: as("eve"), Clock: e.Clock(), Logger: slog.New(slog.DiscardHandler)})
	require.Contains(t, linked(t, h, "workflow line")[0], started.Case.String())
	require.Contains(t, get(h, "/doctor").Body.String(), `<td data-label="key">R-4711</td>`)
	e.Crash(flows...)
}

// The page of the doctor describes the database of each store, and checks it on demand, for those who may have that done.
func TestTheDoctorDescribesTheDatabase(t *testing.T) {
	t.Parallel()
	for name, opener := range map[string]func(t *testing.T) (o store.Opener, driver, place, named string){
		"sqlite": func(t *testing.T) (store.Opener, string, string, string) {
			file := filepath.Join(t.TempDir(), "orders.db")
			return sqlite.File(file), "sqlite", file, "<dd>orders.db</dd>"
		},
		"postgres": func(t *testing.T) (store.Opener, string, string, string) {
			dsn := pgtest.Database(t)
			return postgres.Open(dsn), "pgx", dsn, ", schema tasq</dd>"
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, driver, place, named := opener(t)
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
			engines := get(h, "/api/v1/engines").Body.String()
			if driver == "sqlite" {
				require.NotContains(t, page, "Engines")
				require.JSONEq(t, `{"rows":[]}`, engines)
			} else {
				require.Regexp(t, `data-label="since"[^>]*>[^<]*<time [^>]*>[^<]*</time>`, page)
				require.Contains(t, page, `data-label="definitions">1: wait</td>`)
				require.Contains(t, engines, `"lag":"0s","definitions":1,"knows":["wait"]`)
			}
			require.Equal(t, http.StatusSeeOther, post(h, "/doctor").Code)
			checked(t, h)
			e.Advance(time.Minute)
			require.Contains(t, get(h, "/doctor").Body.String(), "1m ago: whole: each of 1 root case was rebuilt from the journal, 1 entries")

			other, err := sql.Open(driver, place)
			require.NoError(t, err)
			_, err = other.ExecContext(t.Context(), map[string]string{"sqlite": "DROP INDEX jobs_due", "pgx": "DROP INDEX tasq.jobs_due"}[driver])
			require.NoError(t, err)
			require.NoError(t, other.Close())
			require.Equal(t, http.StatusSeeOther, post(h, "/doctor").Code)
			checked(t, h)
			require.Contains(t, get(h, "/doctor").Body.String(), "no data is lost, but indexes are missing, and tasq migrate makes them: jobs_due of the table jobs")

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
