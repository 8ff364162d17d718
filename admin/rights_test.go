package admin_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/admin"
)

// look is the right of a route that only needs access.
const look = ""

// rights is the one table of what each route needs: access alone, or the right to the command that its example asks for. A new route
// must be added here.
func (o *office) rights(t *testing.T) map[string]struct{ right, example, body string } {
	t.Helper()
	id := o.claim.String()
	item, job := o.Item(o.claim, "withdraw").ID.String(), ""
	for _, path := range o.paths(t) {
		if after, ok := strings.CutPrefix(path, "/jobs/"); ok {
			job = after
		}
	}
	type row = struct{ right, example, body string }
	all := map[string]row{
		"POST /act":                     {"item", "/act", "kind=item-start&item=" + item},
		"POST /bulk":                    {"retry", "/bulk", "kind=retry&workflow=bill&confirm=1"},
		"POST /presets":                 {look, "/presets", "name=x&path=/cases&query=state%3Dfailed"},
		"POST /doctor":                  {"doctor", "/doctor", ""},
		"POST /api/v1/commands":         {"suspend", "/api/v1/commands", `{"kind":"suspend","case":"` + id + `"}`},
		"POST /api/v1/cases":            {"start", "/api/v1/cases?workflow=bill", "{}\n"},
		"POST /api/v1/schedules":        {"tasq-schedule start", "/api/v1/schedules", `{"name":"x","workflow":"bill","every":"1h"}`},
		"POST /api/v1/schedules/{name}": {"tasq-schedule", "/api/v1/schedules/none", `{"do":"pause"}`},
		"POST /api/v1/bulk":             {"retry", "/api/v1/bulk", `{"kind":"retry","filter":{"workflow":["bill"]}}`},
		"POST /api/v1/bulk/{id}":        {"suspend", "/api/v1/bulk/" + id, `{"do":"pause"}`},
		"GET /act":                      {"cancel", "/act?kind=cancel&case=" + id, ""},
		"GET /bulk":                     {"retry", "/bulk?kind=retry&workflow=bill", ""},
		"GET /payload":                  {look, "/payload?part=input&case=" + id, ""},
		"GET /live":                     {look, "/live", ""},
		"GET /assets/{name}":            {look, "/assets/none", ""},
		"GET /":                         {look, "/nowhere", ""},
		"GET /api/":                     {look, "/api/v1/nothing", ""},
		"GET /{$}":                      {look, "/", ""},
		"GET /api/v1/stream":            {look, "/api/v1/stream?root=none", ""},
		"GET /api/v1/openapi.json":      {look, "/api/v1/openapi.json", ""},
		"GET /api/v1/cases/{id}/film":   {look, "/api/v1/cases/" + id + "/film", ""}, "GET /api/v1/cases/{id}/way": {look, "/api/v1/cases/" + id + "/way", ""},
		"GET /api/v1/cases/{id}/why": {look, "/api/v1/cases/" + id + "/why", ""}, "GET /api/v1/cases/{id}/differences": {look, "/api/v1/cases/" + id + "/differences", ""},
		"GET /cases/{id}/differences": {look, "/cases/" + id + "/differences", ""}, "GET /api/v1/cases/{id}/history": {look, "/api/v1/cases/" + id + "/history", ""},
	}
	for _, path := range strings.Fields("workflows cases items jobs steps events incidents limits schedules stats doctor audit search help api/v1/cases api/v1/search api/v1/items " +
		"api/v1/jobs api/v1/steps api/v1/events api/v1/incidents api/v1/definitions api/v1/counts api/v1/audit api/v1/failures api/v1/engines api/v1/doctor api/v1/database api/v1/stats api/v1/export api/v1/queues api/v1/limits api/v1/schedules api/v1/bulk") {
		all["GET /"+path] = row{look, "/" + path, ""}
	}
	for path, one := range map[string]string{"cases": id, "items": item, "jobs": job, "bulk": id} {
		all["GET /"+path+"/{id}"] = row{look, "/" + path + "/" + one, ""}
		all["GET /api/v1/"+path+"/{id}"] = row{look, "/api/v1/" + path + "/" + one, ""}
	}
	for _, path := range []string{"workflows", "schedules", "api/v1/schedules"} {
		all["GET /"+path+"/{name}"] = row{look, "/" + path + "/claim", ""}
	}
	return all
}

// Each route is in the table, and does what the table says: nothing without access, no change without the right to it.
func TestRightsOfEveryRoute(t *testing.T) {
	first := newOffice(t, "text")
	rights := first.rights(t)
	for _, pattern := range admin.Patterns(first.Engine.Engine, admin.Config{}) {
		require.Contains(t, rights, pattern, "a new route needs a row in the table of rights")
	}
	require.Len(t, rights, len(admin.Patterns(first.Engine.Engine, admin.Config{})), "the table has routes that are not there")
	may := func(right string) func(*http.Request) (admin.User, error) {
		return func(*http.Request) (admin.User, error) {
			return admin.User{Name: "eve", May: func(kind, _ string) bool { return slices.Contains(strings.Fields(right), kind) }}, nil
		}
	}
	refuse := func(*http.Request) (admin.User, error) { return admin.User{}, errors.New("signed out") }
	for pattern, row := range rights {
		o := first
		if row.right != look { // what one row does must not be why another one is refused
			o = newOffice(t, "text")
			row = o.rights(t)[pattern]
		}
		code := func(access func(*http.Request) (admin.User, error)) int {
			method, _, _ := strings.Cut(pattern, " ")
			r := httptest.NewRequest(method, row.example, strings.NewReader(row.body))
			r.Header.Set("Sec-Fetch-Site", "same-origin")
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			w := httptest.NewRecorder()
			o.handler(admin.Config{Access: access}).ServeHTTP(w, r)
			return w.Code
		}
		require.Equal(t, http.StatusForbidden, code(refuse), "%s without access", pattern)
		if row.right == look {
			require.NotEqual(t, http.StatusForbidden, code(admin.ReadOnly), "%s for a look", pattern)
			continue
		}
		require.Equal(t, http.StatusForbidden, code(admin.ReadOnly), "%s by a user who may only look", pattern)
		require.Equal(t, http.StatusForbidden, code(may("something else")), "%s by a user with another right", pattern)
		require.NotEqual(t, http.StatusForbidden, code(may(row.right)), "%s by a user who has the right", pattern)
	}
}
