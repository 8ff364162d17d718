package admin_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/admin"
	"github.com/tasq-dev/tasq/admin/internal/api"
	"github.com/tasq-dev/tasq/store"
)

// A program starts a case with each line of a body, under the name of the user, once for each line and key.
func TestStartCasesByAPI(t *testing.T) {
	o := newOffice(t, "text")
	h := o.handler(admin.Config{Access: mayNot("none")})
	cases := func() (n int) {
		for c, err := range store.AllCases(t.Context(), o.Engine, store.CaseFilter{Workflow: "bill", Labels: map[string]string{"import": "may"}}) {
			require.NoError(t, err)
			n++
			require.Equal(t, "bill", c.Workflow)
		}
		return n
	}
	path, body := "/api/v1/cases?workflow=bill&label=import=may", "{\"n\":1}\n\n{\n{\"n\":4}\n"
	w := commandTo(h, path+"&dryRun=true", body, "Idempotency-Key", "may")
	require.Equal(t, http.StatusOK, w.Code, w.Body)
	require.Contains(t, w.Body.String(), `{"started":0,"wouldStart":2,"refused":1,"lines":[{"line":3,"code":"bad-command"`)
	w = commandTo(h, "/api/v1/cases?workflow=nothing&dryRun=true", "1\n")
	require.Contains(t, w.Body.String(), `"started":0,"refused":1,"lines":[{"line":1,"code":"unknown-workflow"`)
	require.Zero(t, cases())
	for range 2 {
		w := commandTo(h, path, body, "Idempotency-Key", "may")
		require.Equal(t, http.StatusOK, w.Code, w.Body)
		require.JSONEq(t, `{"started":2,"refused":1,"lines":[{"line":3,"code":"bad-command","error":"bad command: invalid JSON: unexpected end of JSON input"}]}`, w.Body.String())
		require.Equal(t, 2, cases())
	}
	require.Contains(t, get(h, "/api/v1/audit?by=eve&command=start").Body.String(), `"command":"start bill`)

	for path, code := range map[string]int{
		"/api/v1/cases": http.StatusBadRequest, "/api/v1/cases?workflow=bill&label=x": http.StatusBadRequest, "/api/v1/cases?workflow=bill&workflow=desk": http.StatusBadRequest,
		"/api/v1/cases?workflow=bill&wrong=1": http.StatusBadRequest,
	} {
		require.Equal(t, code, commandTo(h, path, "1\n").Code, path)
	}
	w = commandTo(h, "/api/v1/cases?workflow=nothing", "1\n2\n")
	require.Equal(t, http.StatusOK, w.Code)
	require.Contains(t, w.Body.String(), `"started":0,"refused":2,"lines":[{"line":1,"code":"unknown-workflow"`)

	long := strings.Repeat(" ", api.MaxLines) + "1\n"
	w = commandTo(h, path, "{\"n\":7}\n"+long, "Idempotency-Key", "june")
	require.Equal(t, http.StatusRequestEntityTooLarge, w.Code)
	require.Contains(t, w.Body.String(), "1 cases were started, and 0 lines refused, before; the same request starts the others, and none of them again")
}
