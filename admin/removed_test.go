package admin_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/admin"
	"github.com/tasq-dev/tasq/workflow"
)

// The addresses of a case that was removed say who removed it, when and why; those of one that never was do not.
func TestARemovedCaseIsGone(t *testing.T) {
	o := newOffice(t, "text")
	h := o.handler(admin.Config{Access: as("eve")})
	id := o.failed.String()
	_, err := o.Do(t.Context(), workflow.Remove(o.failed, workflow.By("ann"), workflow.Because("entered <twice>")))
	require.NoError(t, err)
	const told = "was removed by ann at 20"
	for _, path := range []string{"", "?tab=history", "/differences"} {
		page := get(h, "/cases/"+id+path)
		require.Equal(t, http.StatusGone, page.Code, path)
		require.Contains(t, page.Body.String(), told)
		require.Contains(t, page.Body.String(), "entered &lt;twice&gt;")
		require.Contains(t, page.Body.String(), `href="/audit?case=`+id+`"`)
	}
	require.Contains(t, get(h, "/audit?case="+id).Body.String(), "entered &lt;twice&gt;")
	for _, path := range []string{"", "/why", "/way", "/film", "/history", "/differences?from=1"} {
		answer := get(h, "/api/v1/cases/"+id+path)
		require.Equal(t, http.StatusGone, answer.Code, path)
		require.Contains(t, answer.Body.String(), `"code":"removed"`, path)
		require.Contains(t, answer.Body.String(), told, path)
	}
	never := strings.Replace(id, id[:8], "01999999", 1)
	require.Equal(t, http.StatusNotFound, get(h, "/cases/"+never).Code)
	require.Equal(t, http.StatusNotFound, get(h, "/api/v1/cases/"+never+"/why").Code)
}
