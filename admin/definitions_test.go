package admin_test

import (
	"encoding/json"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/admin"
	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/engine/why"
	"github.com/tasq-dev/tasq/workflow"
)

// A definition that live cases need and no program has is on the page of the incidents, with a link to the cases, and in the API.
func TestADefinitionThatNoProgramHasIsAnIncident(t *testing.T) {
	t.Parallel()
	version := func(v, queue string) *builder.Workflow[any] {
		b := builder.New[any]("desk", builder.Version(v))
		b.Path(b.Start(), builder.Task(b, "check", builder.Work[any, any]{Queue: queue}), b.End())
		return b.MustBuild()
	}
	one, two := version("1", "old"), version("2", "new")
	e := enginetest.New(t, one)
	require.NoError(t, enginetest.Do(t.Context(), e, workflow.Start("desk", nil)))
	e.Crash(two)
	h := admin.Handler(e.Engine, admin.Config{Access: as("eve"), Clock: e.Clock(), Logger: slog.New(slog.DiscardHandler)})
	require.Contains(t, get(h, "/incidents").Body.String(), "There are no incidents.")
	e.Advance(why.Grace)
	page := get(h, "/incidents").Body.String()
	require.Contains(t, page, "not-loaded: no open engine has workflow desk version 1, which 1 live case needs")
	require.Contains(t, page, ">version 1<", "the row names the definition")
	require.Contains(t, page, "/cases?fingerprint="+one.Untyped().Fingerprint+"&amp;state=started")
	require.Contains(t, page, "1<span class=\"sr\"> open</span>")
	var list struct {
		Rows []struct {
			Kind, Workflow, Version string
			Cases                   int
		}
	}
	require.NoError(t, json.Unmarshal(get(h, "/api/v1/incidents?kind=definition").Body.Bytes(), &list))
	require.Len(t, list.Rows, 1)
	require.Equal(t, "desk", list.Rows[0].Workflow)
	require.Equal(t, "1", list.Rows[0].Version)
	require.Equal(t, 1, list.Rows[0].Cases)
	e.Crash(one)
}
