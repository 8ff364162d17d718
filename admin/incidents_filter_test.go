package admin_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/admin"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// Incidents are selected by the key and the labels of their cases, and by their time, in the API and on the page.
func TestIncidentsOfAKeyALabelAndATime(t *testing.T) {
	t.Parallel()
	e := enginetest.New(t, deskOf("1"))
	for _, options := range [][]workflow.Option{
		{workflow.BusinessKey("C-1"), workflow.Label("customer", "ada")},
		{workflow.BusinessKey("C-2"), workflow.Label("customer", "ada"), workflow.Label("region", "north")},
		{workflow.BusinessKey("C-3"), workflow.Label("customer", "bob")},
	} {
		started, err := e.Do(t.Context(), workflow.Start("desk", nil, options...))
		require.NoError(t, err)
		e.FailItem(started.Case, "check.1.1", &workitem.Failure{Code: "unsigned"})
		e.Advance(time.Hour)
	}
	h := admin.Handler(e, admin.Config{Access: admin.ReadOnly})
	for filter, n := range map[string]int{
		"": 3, "key=C-2": 1, "key=C-4": 0, "label=customer%3Dada": 2, "label=customer%3Dada&label=region%3Dnorth": 1, "label=customer%3Dada&key=C-3": 0,
		"newer=90m": 1, "newer=150m": 2, "older=90m": 2, "older=90m&newer=150m": 1,
	} {
		var list struct{ Incidents, Items, Rows []json.RawMessage }
		a := get(h, "/api/v1/incidents?"+filter)
		require.Equal(t, http.StatusOK, a.Code, a.Body.String())
		require.NoError(t, json.Unmarshal(a.Body.Bytes(), &list))
		require.Len(t, append(append(list.Incidents, list.Items...), list.Rows...), n, "%s: %s", filter, a.Body)
		page := get(h, "/incidents?"+filter).Body.String()
		if n == 0 {
			require.NotContains(t, page, "</span> desk/check", filter)
			continue
		}
		require.Contains(t, page, "</span> "+string(rune('0'+n))+"</span> desk/check", filter)
	}
	require.Equal(t, http.StatusBadRequest, get(h, "/api/v1/incidents?"+url.Values{"label": {"ada"}}.Encode()).Code)
}
