package admin_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/admin"
	"github.com/tasq-dev/tasq/store"
)

// The reasons that forms ask for are in the history, or with the setting.
func TestReasonsOfForms(t *testing.T) {
	o := newOffice(t, "text")
	h := o.handler(admin.Config{Access: as("eve")})
	done := func(form string, fields ...string) {
		t.Helper()
		w := submit(t, h, form, fields...)
		require.Equal(t, http.StatusSeeOther, w.Code, w.Body)
	}
	item := o.Item(o.claim, "withdraw").ID.String()
	done("/act?kind=item-start&item="+item, "reason", "the reason of a start")
	done("/act?kind=item-reset&item="+item, "reason", "the reason of a reset")
	done("/act?kind=start&workflow=bill", "payload", `{"n":1}`, "reason", "the reason of a case")
	done("/act?kind=send&case="+o.order.String(), "event", "paid", "payload", `"now"`, "reason", "the reason of an event")
	o.Drain() // the order ends with its event, and is restarted
	done("/act?kind=restart&case="+o.order.String(), "reason", "the reason of a restart")
	w := command(h, `{"kind":"add-item","case":"`+o.claim.String()+`","task":"withdraw","reason":{"message":"the reason of an addition"}}`)
	require.Equal(t, http.StatusOK, w.Code, w.Body)
	audit := get(h, "/audit").Body.String()
	require.Contains(t, audit, "the reason of an addition")
	for _, form := range []string{"kind=remove&case=" + o.order.String(), "kind=resume-queue&queue=mail", "kind=forget-limit&limit=openai", "kind=resume-workflow&workflow=bill"} {
		require.Contains(t, get(h, "/act?"+form).Body.String(), `name="reason"`, form)
	}
	require.Equal(t, http.StatusSeeOther, submit(t, h, "/act?kind=resume-queue&queue=mail", "reason", "it is up").Code)
	for _, what := range []string{"start", "reset", "case", "event", "restart"} {
		noun := "a "
		if what == "event" {
			noun = "an "
		}
		require.Contains(t, audit, "the reason of "+noun+what)
	}
	done("/act?kind=pause-queue&queue=mail", "reason", "the server is down")
	require.NoError(t, o.View(t.Context(), func(r store.Reader) error {
		all, err := r.Settings(t.Context())
		if err != nil {
			return err
		}
		_, queues, err := store.ReadControls(all)
		require.Equal(t, "the server is down", queues["mail"].Reason)
		return err
	}))
}
