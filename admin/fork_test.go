package admin_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/admin"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// The page of a past state leads to a fork of the case from there, which continues by itself; the case stays as it is.
func TestAForkOfAPastStateByItsForm(t *testing.T) {
	o := newOffice(t, "text")
	h := o.handler(admin.Config{Prefix: "/tasq", Access: as("eve")})
	page := "/tasq/cases/" + o.claim.String()
	require.NotContains(t, get(h, page).Body.String(), "Fork from here", "the state of now is not past")
	fork := regexp.MustCompile(`href="([^"]*)">Fork from here`).FindStringSubmatch(get(h, page+"?entry=1").Body.String())
	require.NotNil(t, fork)
	form := strings.ReplaceAll(fork[1], "&amp;", "&")
	look := o.handler(admin.Config{Prefix: "/tasq", Access: admin.ReadOnly})
	require.NotContains(t, get(look, page+"?entry=1").Body.String(), "Fork from here")
	require.Equal(t, http.StatusForbidden, get(look, form).Code)

	seq := regexp.MustCompile(`seq=(\d+)`).FindStringSubmatch(form)[1]
	w := submit(t, h, form, "seq", seq, "reason", "what if")
	require.Equal(t, http.StatusSeeOther, w.Code, w.Body)
	to := strings.TrimPrefix(w.Header().Get("Location"), "/tasq/cases/")
	var fresh workitem.CaseID
	require.NoError(t, fresh.UnmarshalText([]byte(to[:36])))
	require.NotEqual(t, o.claim, fresh)
	require.Equal(t, state.CaseStarted, o.stateOf(t, o.claim))
	require.Equal(t, workitem.Initialized, o.Item(fresh, "register").State, "the fork stands where the case stood after its first entry")
	require.Equal(t, workitem.Completed, o.Item(o.claim, "register.1.1").State)
	history := get(h, "/tasq/cases/"+to[:36]+"?tab=history").Body.String()
	require.Contains(t, history, "by eve")
	require.Contains(t, history, "what if")
	require.Contains(t, history, "forked from case")
	require.Contains(t, history, "fork of <a")

	w = submit(t, h, form, "seq", "soon")
	require.Equal(t, http.StatusUnprocessableEntity, w.Code)
	require.Contains(t, w.Body.String(), "is not a whole number")
	w = submit(t, h, form, "seq", "")
	require.Equal(t, http.StatusUnprocessableEntity, w.Code)
}
