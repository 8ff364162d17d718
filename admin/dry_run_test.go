package admin_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/admin"
	"github.com/tasq-dev/tasq/store/state"
)

// A command of the API with dryRun answers what it would do, and does nothing. The forms of settings have the same preview.
func TestDryRunsByAPI(t *testing.T) {
	t.Parallel()
	o := newOffice(t, "text")
	h := o.handler(admin.Config{Access: as("eve")})
	type preview struct {
		Cases []struct {
			Case    string
			Changes []string
		}
		Settings []string
	}
	tried := func(body string) (p preview) {
		t.Helper()
		w := command(h, body)
		require.Equal(t, http.StatusOK, w.Code, w.Body)
		require.NoError(t, json.Unmarshal(w.Body.Bytes(), &p))
		return p
	}
	p := tried(`{"kind":"cancel","case":"` + o.claim.String() + `","dryRun":true}`)
	require.Len(t, p.Cases, 1)
	require.Equal(t, o.claim.String(), p.Cases[0].Case)
	require.NotEmpty(t, p.Cases[0].Changes)
	require.Equal(t, state.CaseStarted, o.stateOf(t, o.claim))
	p = tried(`{"kind":"pause-queue","queue":"mail","dryRun":true}`)
	require.Equal(t, []string{`queue "mail": open -> paused by eve`}, p.Settings)
	require.NotContains(t, get(h, "/limits").Body.String(), "paused by eve")
	require.Equal(t, http.StatusBadRequest, command(h, `{"kind":"pause-queue","queue":"mail","dryRun":"yes"}`).Code)
	w := submit(t, h, "/act?kind=pause-queue&queue=mail", "check", "check")
	require.Contains(t, w.Body.String(), "queue &#34;mail&#34;: open -&gt; paused by eve")
}
