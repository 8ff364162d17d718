package admin_test

import (
	"encoding/json"
	"encoding/xml"
	"html"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/admin"
	"github.com/tasq-dev/tasq/workflow"
)

// The list of cases leads to event logs of all that its filters select, without what the user may not see.
func TestEventLogs(t *testing.T) {
	o := newOffice(t, "text")
	_, err := o.Do(t.Context(), workflow.Start("bill", []byte(`{}`), workflow.BusinessKey("C-secret"), workflow.Label("customer", "ada-secret")))
	require.NoError(t, err)
	h := o.handler(admin.Config{Prefix: "/tasq", Access: admin.ReadOnly, Show: func(_ admin.User, kind, _ string, raw json.RawMessage) json.RawMessage {
		if kind == "key" || kind == "label" {
			return []byte(`"masked"`)
		}
		return raw
	}})
	page := get(h, "/tasq/cases?workflow=bill&root-only=true").Body.String()
	files := make(map[string]string)
	for _, m := range regexp.MustCompile(`href="([^"]*)" download>([^<]*)</a>`).FindAllStringSubmatch(page, -1) {
		files[m[2]] = html.UnescapeString(m[1])
	}
	ocel := get(h, files["Event log (OCEL)"])
	require.Equal(t, http.StatusOK, ocel.Code, ocel.Body)
	require.Equal(t, `attachment; filename="events.json"`, ocel.Header().Get("Content-Disposition"))
	var log struct {
		Objects []struct{ Type string }
		Events  []struct{ Type string }
	}
	require.NoError(t, json.Unmarshal(ocel.Body.Bytes(), &log))
	require.NotEmpty(t, log.Events)
	for _, object := range log.Objects {
		require.Contains(t, []string{"bill", "work item"}, object.Type)
	}
	xes := get(h, files["Event log (XES)"])
	require.Equal(t, http.StatusOK, xes.Code, xes.Body)
	require.Equal(t, "application/xml", xes.Header().Get("Content-Type"))
	require.NoError(t, xml.Unmarshal(xes.Body.Bytes(), new(struct{})))
	require.Equal(t, 2, strings.Count(xes.Body.String(), "<trace>"))
	for _, w := range []string{ocel.Body.String(), xes.Body.String()} {
		require.Contains(t, w, "masked")
		require.NotContains(t, w, "secret")
	}
	require.Equal(t, 1, strings.Count(get(h, "/tasq/api/v1/export?format=xes&case="+o.claim.String()).Body.String(), "<trace>"))
	for path, status := range map[string]int{
		"?format=csv": http.StatusBadRequest, "?sate=failed": http.StatusBadRequest, "?case=" + strings.Repeat("0", 36): http.StatusBadRequest,
		"?case=00000000-0000-0000-0000-000000000001": http.StatusNotFound,
	} {
		require.Equal(t, status, get(h, "/tasq/api/v1/export"+path).Code, path)
	}
	require.Len(t, strings.Split(strings.TrimSpace(get(h, "/tasq/api/v1/cases?code=no-funds", "application/x-ndjson").Body.String()), "\n"), 1)
}
