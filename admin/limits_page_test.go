package admin_test

import (
	"context"
	"encoding/json"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/admin"
	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/limit"
	"github.com/tasq-dev/tasq/store/sqlite"
	"github.com/tasq-dev/tasq/workflow"
)

// A limit that the database remembers, and of which no function takes, has a form that has it forgotten.
func TestALimitWithoutAFunctionIsForgottenByItsForm(t *testing.T) {
	db := sqlite.File(filepath.Join(t.TempDir(), "s.db"))
	f := builder.MustFunc("f", func(_ context.Context, s string) (string, error) { return s, nil }, builder.Limits(builder.Takes(limit.Resource("db", 5), 1)))
	e, err := engine.Open(t.Context(), db, f)
	require.NoError(t, err)
	require.NoError(t, e.Close())
	e, err = engine.Open(t.Context(), db)
	require.NoError(t, err)
	defer func() { require.NoError(t, e.Close()) }()
	h := admin.Handler(e, admin.Config{Access: as("ann")})
	require.Contains(t, get(h, "/limits").Body.String(), "no function here")
	require.Contains(t, get(h, "/act?kind=forget-limit&limit=db").Body.String(), "Remove the settings of the limit")
	require.Equal(t, http.StatusSeeOther, post(h, "/act", "kind", "forget-limit", "limit", "db").Code)
	require.NotContains(t, get(h, "/limits").Body.String(), "no function here")
}

// The keys of a pool are rows of the page: one that is paused, one with a number of its own. A case that waits for any of them says so.
func TestTheKeysOfAPoolOnThePages(t *testing.T) {
	ask := builder.MustFunc("ask", func(_ context.Context, s string) (string, error) { return s, nil },
		builder.Limits(builder.Takes(limit.Calls(1, time.Hour), 1).AnyOf("key-1", "key-2", "key-3")))
	o := &office{Engine: enginetest.New(t, ask)}
	h := o.handler(admin.Config{Access: as("ann")})
	require.Equal(t, http.StatusSeeOther, post(h, "/act", "kind", "set-limit", "limit", "calls", "number", "0", "limitKey", "key-2").Code)
	require.Equal(t, http.StatusSeeOther, post(h, "/act", "kind", "set-limit", "limit", "calls", "number", "2", "limitKey", "key-3").Code)
	var last string
	for range 5 {
		result, err := o.Do(t.Context(), workflow.Start("ask", []byte(`"x"`)))
		require.NoError(t, err)
		last = result.Case.String()
	}
	o.Drain()
	page := get(h, "/limits").Body.String()
	require.Regexp(t, `(?s)<td[^>]*>calls</td>.*key key-2.*paused.*key key-3`, page)
	require.NotContains(t, page, "key key-1", "it has no number of its own")
	var answer struct {
		Rows []workflow.LimitInfo
	}
	require.NoError(t, json.Unmarshal(get(h, "/api/v1/limits").Body.Bytes(), &answer))
	require.EqualValues(t, 3, answer.Rows[0].Used, "one of key-1, two of key-3")
	require.Equal(t, 2, answer.Rows[0].Waiting)
	require.Contains(t, get(h, "/cases/"+last).Body.String(), "of key-1, key-2 or key-3")
	o.Advance(time.Hour)
	require.Contains(t, get(h, "/cases?workflow=ask").Body.String(), "s-completed")
	require.NotContains(t, get(h, "/cases/"+last).Body.String(), "of key-1, key-2 or key-3")
}
