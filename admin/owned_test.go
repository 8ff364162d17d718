package admin_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/admin"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/bulk"
	"github.com/tasq-dev/tasq/engine/why"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/sqlite"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// poster leaves commands for the owner of a database.
type poster interface {
	Post(ctx context.Context, command json.RawMessage) (store.Answer, error)
}

// An engine owns a file, and pages that only read it have their changes done by that engine: of one item, and of many.
func TestChangesGoThroughTheOwner(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute) // a bound against hanging
	defer cancel()
	file := filepath.Join(t.TempDir(), "owned.db")
	repairs := bulk.New(engine.Code)
	e, err := engine.Config{Logger: slog.New(slog.DiscardHandler)}.Open(ctx, sqlite.File(file), append(workflows(t, likely), repairs)...)
	require.NoError(t, err)
	defer func() { require.NoError(t, e.Close()) }()
	repairs.Serve(e)
	failed := func() (workitem.CaseID, workitem.ID) {
		started, err := e.Do(ctx, workflow.Start("bill", []byte(`{}`)))
		require.NoError(t, err)
		var item workitem.ID
		for it, err := range store.AllItems(ctx, e, store.ItemFilter{Case: started.Case}) {
			require.NoError(t, err)
			item = it.ID
		}
		_, err = e.Do(ctx, workflow.Act(item, workitem.Start, nil))
		require.NoError(t, err)
		_, err = e.Do(ctx, workflow.Fail(item, &workitem.Failure{Code: "no-funds", Message: "text"}))
		require.NoError(t, err)
		return started.Case, item
	}
	_, one := failed()
	reader, err := sqlite.File(file).Open(ctx, store.Options{Now: retry.SystemClock.Now, ReadOnly: true})
	require.NoError(t, err)
	defer func() { require.NoError(t, reader.Close()) }()
	post := sqlite.File(file).(poster).Post
	h := admin.Handler(admin.Reading(reader, post), admin.Config{Access: as("eve"), Bulk: bulk.New(engine.Code), Logger: slog.New(slog.DiscardHandler)})

	w := submit(t, h, "/act?kind=retry&item="+one.String(), "reason", "the bank is back")
	require.Equal(t, http.StatusSeeOther, w.Code, w.Body)
	it, err := e.Item(ctx, one)
	require.NoError(t, err)
	require.False(t, it.Successor.IsZero())
	require.Contains(t, get(h, "/audit").Body.String(), ">eve<")
	require.Contains(t, get(h, "/limits").Body.String(), "No workflow of this database has limits.", "the owner has answered")

	newest, err := store.Newest(ctx, e, store.JournalFilter{})
	require.NoError(t, err)
	w = command(h, `{"kind":"start","workflow":"bill","payload":{},"dryRun":true}`)
	require.Equal(t, http.StatusOK, w.Code, w.Body)
	require.Contains(t, w.Body.String(), `"workflow":"bill","changes":["case of bill opened`, "the owner has tried it")
	w = submit(t, h, "/act?kind=start&workflow=bill", "check", "1")
	require.Equal(t, http.StatusOK, w.Code, w.Body)
	require.Contains(t, w.Body.String(), "case of bill opened")
	w = command(h, `{"kind":"dry-run","payload":{"kind":"start","workflow":"bill"}}`)
	require.Equal(t, http.StatusBadRequest, w.Code, "its answer would have what a user may not see")
	require.Contains(t, w.Body.String(), "dryRun")
	after, err := store.Newest(ctx, e, store.JournalFilter{})
	require.NoError(t, err)
	require.Equal(t, newest, after)

	_, two := failed()
	_, three := failed()
	w = submit(t, h, "/bulk?kind=retry&workflow=bill&task=charge&incident=attempts&code=no-funds", "confirm", "2")
	require.Equal(t, http.StatusSeeOther, w.Code, w.Body)
	var action workitem.CaseID
	require.NoError(t, action.UnmarshalText([]byte(path.Base(strings.TrimSuffix(w.Header().Get("Location"), "?done=bulk")))))
	_, err = e.Wait(ctx, action)
	require.NoError(t, err)
	for _, id := range []workitem.ID{two, three} {
		it, err := e.Item(ctx, id)
		require.NoError(t, err)
		require.False(t, it.Successor.IsZero())
	}

	for _, ask := range []struct {
		here why.Here
		err  error
		says string
	}{
		{why.Here{}, nil, "it is not known which definitions are missing"},
		{why.Here{}, store.ErrUnavailable, "it is not known which definitions are missing"},
		{why.Here{Known: func(string) bool { return false }, Opened: time.Now().Add(-why.Grace)}, nil, "no open engine has workflow bill"},
	} {
		asked := 0
		h := admin.Handler(admin.Reading(reader, nil, admin.Ask(func(context.Context) (why.Here, error) { asked++; return ask.here, ask.err })),
			admin.Config{Access: as("eve"), Logger: slog.New(slog.DiscardHandler)})
		for _, address := range []string{"/incidents", "/api/v1/incidents", "/api/v1/incidents?kind=definition"} {
			require.Contains(t, get(h, address).Body.String(), ask.says, address)
		}
		require.Equal(t, 1, asked)
	}
	require.Contains(t, get(h, "/doctor").Body.String(), "not known: no program")

	reading := admin.Handler(admin.Reading(reader, nil), admin.Config{Access: as("eve"), Logger: slog.New(slog.DiscardHandler)})
	w = submit(t, reading, "/act?kind=start&workflow=bill")
	require.Equal(t, http.StatusForbidden, w.Code, "the pages were opened for reading only")
	require.Contains(t, get(reading, "/limits").Body.String(), "it does not answer")
}
