package admin_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/admin"
	"github.com/tasq-dev/tasq/workitem"
)

// The retry policy of a repair is a field of the API and of the forms, for one and for many.
func TestWorkIsRetriedWithAnotherPolicy(t *testing.T) {
	o := newOffice(t, "text")
	ids := o.bills(t, 3)
	h := o.handler(admin.Config{Access: as("eve")})
	item := func(i int) workitem.ID { return o.Item(ids[i], "charge.1.1").ID }
	policy := func(i int) string { return string(o.Item(ids[i], "charge").Retry) }

	w := submit(t, h, "/act?kind=retry&item="+item(0).String(), "attempts", "5", "wait", "10s", "jitter", "full", "backoff", "linear")
	require.Equal(t, http.StatusSeeOther, w.Code, w.Body)
	require.JSONEq(t, `{"attempts":5,"backoff":"linear","initial":10000000000,"jitter":"full","before":1}`, policy(0))
	require.Contains(t, get(h, w.Header().Get("Location")).Body.String(), "5 attempts, linear, first wait 10s, full jitter")
	for name, value := range map[string]string{"attempts": "many", "wait": "10", "waits": "1s, x", "base": "x", "backoff": "x"} {
		refused := submit(t, h, "/act?kind=retry&item="+item(1).String(), name, value)
		require.Equal(t, http.StatusUnprocessableEntity, refused.Code, name)
	}
	answer := commandTo(h, "/api/v1/commands", `{"kind":"retry","item":"`+item(1).String()+`","retry":{"attempts":7,"waits":[1000000000]}}`)
	require.Equal(t, http.StatusOK, answer.Code, answer.Body)
	require.JSONEq(t, `{"attempts":7,"waits":[1000000000],"before":1}`, policy(1))
	require.Contains(t, get(h, "/api/v1/items/"+o.Item(ids[1], "charge").ID.String()).Body.String(), `"retry":{"attempts":7,"waits":[1000000000],"before":1}`)

	answer = commandTo(h, "/api/v1/bulk", `{"kind":"retry","targets":["`+item(2).String()+`"],"retry":{"attempts":2}}`)
	require.Equal(t, http.StatusOK, answer.Code, answer.Body)
	var run struct{ ID string }
	require.NoError(t, json.Unmarshal(answer.Body.Bytes(), &run))
	o.Drain()
	require.JSONEq(t, `{"attempts":2,"before":1}`, policy(2))
	for _, kind := range []string{"cancel", "skip"} {
		require.Equal(t, http.StatusBadRequest, commandTo(h, "/api/v1/bulk", `{"kind":"`+kind+`","targets":["`+item(2).String()+`"],"retry":{"attempts":2}}`).Code)
	}

	more := o.bills(t, 1)
	form := "/bulk?kind=retry&workflow=bill&task=charge&incident=attempts&case=" + more[0].String()
	w = submit(t, h, form, "attempts", "9")
	require.Equal(t, http.StatusSeeOther, w.Code, w.Body)
	o.Drain()
	require.JSONEq(t, `{"attempts":9,"before":1}`, string(o.Item(more[0], "charge").Retry))
}
