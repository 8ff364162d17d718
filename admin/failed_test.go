package admin_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/admin"
	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// failing is an engine whose views fail.
type failing struct {
	admin.Backend
	err error
}

func (f failing) View(context.Context, func(store.Reader) error) error { return f.err }

// Each class of errors has a page with what it is, its code and what to do; the API has the same code.
func TestErrorsHavePagesAndCodes(t *testing.T) {
	o := newOffice(t, "text")
	none := "01900000-0000-7000-8000-000000000000"
	refuse := func(*http.Request) (admin.User, error) { return admin.User{}, errors.New("signed out") }
	healthy := o.handler(admin.Config{Access: admin.ReadOnly, Prefix: "/tasq"})
	broken := func(err error) http.Handler {
		return admin.Handler(failing{o.Engine.Engine, err}, admin.Config{Access: admin.ReadOnly, Prefix: "/tasq", Clock: o.Clock(), Logger: slog.New(slog.DiscardHandler)})
	}
	for _, c := range []struct {
		name, path, code, says string
		h                      http.Handler
		status                 int
	}{
		{"no case", "/cases/" + none, "not-found", "Not found", healthy, http.StatusNotFound},
		{"no address", "/case/" + none, "not-found", "at this address", healthy, http.StatusNotFound},
		{"a bad filter", "/cases?state=asleep", "bad-parameter", "asleep", healthy, http.StatusBadRequest},
		{"no access", "/cases", "not-allowed", "signed out", o.handler(admin.Config{Access: refuse, Prefix: "/tasq"}), http.StatusForbidden},
		{"a store that is lost", "/cases", "lost", "database", broken(store.ErrLost), http.StatusServiceUnavailable},
		{"another error", "/cases", "error", "log", broken(errors.New("the disk is on fire")), http.StatusInternalServerError},
	} {
		page := get(c.h, "/tasq"+c.path)
		require.Equal(t, c.status, page.Code, c.name)
		body := page.Body.String()
		require.Contains(t, page.Header().Get("Content-Type"), "text/html", c.name)
		require.Equal(t, 1, strings.Count(body, "<h1"), c.name)
		require.Contains(t, body, "<main", c.name)
		require.Contains(t, body, "Code <code>"+c.code+"</code>, HTTP status "+strconv.Itoa(c.status), c.name)
		require.Contains(t, body, c.says, c.name)
		answer := get(c.h, "/tasq/api/v1"+c.path)
		require.Equal(t, "application/problem+json", answer.Header().Get("Content-Type"), c.name)
		require.Contains(t, answer.Body.String(), `"code":"`+c.code+`"`, c.name)
		require.Equal(t, c.status, answer.Code, "%s: %s", c.name, answer.Body)
	}
	require.NotContains(t, get(o.handler(admin.Config{Access: refuse}), "/cases").Body.String(), "<a ", "what is refused has no links")
}

// The page of a failed case says what continues if it is resumed; nothing does in a completed one.
func TestTheCaseThatCanBeResumedSaysWhatContinues(t *testing.T) {
	b := builder.New[string]("payment")
	pay := builder.Task(b, "pay", builder.Work[string, string]{Input: builder.CaseInput(b)})
	b.Path(b.Start(), pay, b.End())
	o := &office{Engine: enginetest.New(t, b.MustBuild())}
	h := o.handler(admin.Config{Access: admin.ReadOnly})
	ends := func(end func(id workitem.CaseID)) string {
		started, err := o.Do(t.Context(), workflow.Start("payment", []byte(`"1"`)))
		require.NoError(t, err)
		end(started.Case)
		return get(h, "/cases/"+started.Case.String()).Body.String()
	}
	failed := ends(func(id workitem.CaseID) { o.FailItem(id, "pay", &workitem.Failure{Code: "no-funds"}) })
	require.Contains(t, failed, "Nothing: the case has ended. If it is resumed, it continues with pay.")
	completed := ends(func(id workitem.CaseID) {
		o.StartItem(id, "pay")
		enginetest.CompleteItem(o.Engine, id, "pay", "2")
	})
	require.Contains(t, completed, "Nothing: the case has ended.")
	require.NotContains(t, completed, "If it is resumed")
}
