package admin_test

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/admin"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// Of a long payload the page shows the beginning, and links to a file with all of it, byte by byte. What is masked is not downloaded.
func TestLongPayloadsAreDownloaded(t *testing.T) {
	o := newOffice(t, "text")
	long := []byte(`{"n": 9007199254740993,  "text": "` + strings.Repeat("<b>", 10_000) + `"}`)
	started, err := o.Do(t.Context(), workflow.Start("claim", long))
	require.NoError(t, err)
	o.Drain()
	it := o.StartItem(started.Case, "register")
	_, err = o.Do(t.Context(), workflow.Act(it.ID, workitem.Complete, long))
	require.NoError(t, err)
	h := o.handler(admin.Config{Access: admin.ReadOnly})
	download := func(page string) string {
		m := regexp.MustCompile(`<a href="(/payload[^"]*)" download>Download all of it`).FindStringSubmatch(get(h, page).Body.String())
		require.NotNil(t, m, page)
		return strings.ReplaceAll(m[1], "&amp;", "&")
	}
	for page, name := range map[string]string{"/cases/" + started.Case.String() + "?tab=data": "case-" + started.Case.String() + "-input.json",
		"/items/" + it.ID.String(): "item-" + it.ID.String() + "-output.json"} {
		w := get(h, download(page))
		require.Equal(t, http.StatusOK, w.Code)
		require.Equal(t, string(long), w.Body.String())
		require.Equal(t, "application/json", w.Header().Get("Content-Type"))
		require.Equal(t, `attachment; filename="`+name+`"`, w.Header().Get("Content-Disposition"))
		require.Equal(t, "nosniff", w.Header().Get("X-Content-Type-Options"))
	}
	require.NotContains(t, get(h, "/cases/"+o.claim.String()+"?tab=data").Body.String(), "Download all of it", "all of it is shown")

	hidden := o.handler(admin.Config{Access: admin.ReadOnly, Show: func(_ admin.User, kind, _ string, raw json.RawMessage) json.RawMessage {
		if kind == "case" {
			return []byte(`"` + strings.Repeat("hidden ", 4000) + `"`)
		}
		return raw
	}})
	require.NotContains(t, get(hidden, "/cases/"+started.Case.String()+"?tab=data").Body.String(), "Download all of it")
	w := get(hidden, download("/cases/"+started.Case.String()+"?tab=data"))
	require.Equal(t, http.StatusForbidden, w.Code)
	require.Contains(t, w.Body.String(), "masked")
	require.NotContains(t, w.Body.String(), "9007199254740993")
	for _, path := range []string{"/payload", "/payload?part=input&case=none", "/payload?part=output&case=" + o.claim.String(), "/payload?part=input&item=" + o.claim.String(),
		"/payload?part=input&job=" + o.claim.String()} {
		require.Equal(t, http.StatusNotFound, get(h, path).Code, path)
	}
}
