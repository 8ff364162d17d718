package admin_test

import (
	"encoding/json"
	"html"
	"net/http"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/admin"
	"github.com/tasq-dev/tasq/engine/bulk"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// bills starts bills whose charge has failed, and returns their cases.
func (o *office) bills(t *testing.T, n int) (ids []workitem.CaseID) {
	t.Helper()
	for range n {
		result, err := o.Do(t.Context(), workflow.Start("bill", []byte(`{}`)))
		require.NoError(t, err)
		o.FailItem(result.Case, "charge", &workitem.Failure{Code: "no-funds", Message: "text"})
		ids = append(ids, result.Case)
	}
	return ids
}

// mayNot is an Access for a user who may do everything but commands on some targets.
func mayNot(targets ...string) func(*http.Request) (admin.User, error) {
	return func(*http.Request) (admin.User, error) {
		return admin.User{Name: "eve", May: func(_, target string) bool {
			for _, t := range targets {
				if t == target {
					return false
				}
			}
			return true
		}}, nil
	}
}

// Targets for which the user does not have the right are left out, and the form says how many these are.
func TestABulkActionLeavesOutWhatTheUserMayNotDo(t *testing.T) {
	o := newOffice(t, "text")
	ids := o.bills(t, 3)
	denied := o.Item(ids[1], "charge.1.1").ID.String()
	h := o.handler(admin.Config{Access: mayNot(denied)})
	const form = "/bulk?kind=retry&workflow=bill"
	page := get(h, form).Body.String()
	require.Contains(t, page, "Retry: 3 incidents")
	require.Contains(t, page, "Left out: 1 incident more, since you do not have the right")
	w := submit(t, h, form, "confirm", "3")
	require.Equal(t, http.StatusSeeOther, w.Code, w.Body)
	o.Drain()
	require.Contains(t, get(h, w.Header().Get("Location")).Body.String(), "3 of 3 are done, and 0 refused.")
	for i, id := range ids {
		if i != 1 {
			require.Equal(t, 2, o.Item(id, "charge").Attempt)
		}
	}
	require.Equal(t, workitem.Failed, o.Item(ids[1], "charge.1.1").State)
}

var buttonHref = regexp.MustCompile(`<a class="button[^"]*" href="([^"]*)">([^<]*)…</a>`)

// press sends the form of a button of a page.
func press(t *testing.T, h http.Handler, path, text string) string {
	t.Helper()
	for _, m := range buttonHref.FindAllStringSubmatch(get(h, path).Body.String(), -1) {
		if m[2] == text {
			w := submit(t, h, html.UnescapeString(m[1]))
			require.Equal(t, http.StatusSeeOther, w.Code, w.Body)
			return w.Header().Get("Location")
		}
	}
	require.Fail(t, "there is no such button", "%s on %s", text, path)
	return ""
}

// The page of an action pauses, resumes and cancels it, and lists what was refused while it still runs.
func TestABulkActionIsPausedByItsPage(t *testing.T) {
	o := newOffice(t, "text")
	ids := o.bills(t, 3)
	var targets []string
	for _, id := range ids {
		targets = append(targets, o.Item(id, "charge.1.1").ID.String())
	}
	first, err := workitem.ParseID(targets[0])
	require.NoError(t, err)
	_, err = o.Do(t.Context(), workflow.Skip(first, []byte(`{}`)))
	require.NoError(t, err)
	_, err = o.Do(t.Context(), workflow.PauseQueue(bulk.Name)) // it begins when the test says so
	require.NoError(t, err)
	h := o.handler(admin.Config{Access: as("eve")})
	run, err := o.bulk.Start(t.Context(), o.Engine, bulk.Action{Kind: workflow.KindRetry}, targets)
	require.NoError(t, err)
	page := "/bulk/" + run.ID.String()
	require.Contains(t, press(t, h, page, "Pause"), page)
	_, err = o.Do(t.Context(), workflow.ResumeQueue(bulk.Name))
	require.NoError(t, err)
	o.Drain()
	body := get(h, page).Body.String()
	require.Contains(t, body, "0 of 3 are done, and 0 refused.")
	require.Contains(t, body, "It is paused")
	require.Contains(t, press(t, h, page, "Resume"), page)
	o.Drain()
	body = get(h, page).Body.String()
	require.Contains(t, body, "2 of 3 are done, and 1 refused.")
	require.Contains(t, body, "not-failed")
	require.NotContains(t, body, "It is paused")
	require.NotRegexp(t, buttonHref, body)

	_, err = o.Do(t.Context(), workflow.PauseQueue(bulk.Name))
	require.NoError(t, err)
	third, err := o.bulk.Start(t.Context(), o.Engine, bulk.Action{Kind: workflow.KindRetry}, targets)
	require.NoError(t, err)
	require.Contains(t, press(t, h, "/bulk/"+third.ID.String(), "Cancel"), "/bulk/"+third.ID.String())
	require.Equal(t, state.CaseCanceled, o.stateOf(t, third.ID))
	require.Contains(t, get(h, "/bulk/"+third.ID.String()).Body.String(), "0 of 3 are done")
}

// A program counts what a filter selects, starts an action on it once for each key, watches, pauses, resumes and cancels it.
func TestBulkActionsByAPI(t *testing.T) {
	o := newOffice(t, "text")
	ids := o.bills(t, 3)
	denied := o.Item(ids[1], "charge.1.1").ID.String()
	h := o.handler(admin.Config{Access: mayNot(denied)})
	call := func(path, body string, header ...string) (answer struct {
		ID, Until, State         string
		Targets, Denied, Refused int
	}) {
		t.Helper()
		w := commandTo(h, path, body, header...)
		require.Equal(t, http.StatusOK, w.Code, w.Body)
		require.NoError(t, json.Unmarshal(w.Body.Bytes(), &answer))
		return answer
	}
	counted := call("/api/v1/bulk", `{"kind":"retry","filter":{"workflow":["bill"]},"count":true}`)
	require.Equal(t, []int{3, 1}, []int{counted.Targets, counted.Denied})
	require.Empty(t, counted.ID)
	o.bills(t, 1) // it comes after the count
	_, err := o.Do(t.Context(), workflow.PauseQueue(bulk.Name))
	require.NoError(t, err)
	body := `{"kind":"retry","filter":{"workflow":["bill"]},"until":"` + counted.Until + `","reason":"the bank is back"}`
	run := call("/api/v1/bulk", body, "Idempotency-Key", "k1")
	require.Equal(t, []int{3, 1}, []int{run.Targets, run.Denied})
	path := "/api/v1/bulk/" + run.ID
	require.Equal(t, bulk.Paused, call(path, `{"do":"pause","reason":"not now"}`).State)
	_, err = o.Do(t.Context(), workflow.ResumeQueue(bulk.Name))
	require.NoError(t, err)
	o.Drain()
	require.Contains(t, get(h, path).Body.String(), `"state":"paused","actor":"eve","reason":"the bank is back"`)
	call(path, `{"do":"resume"}`)
	o.Drain()
	require.Contains(t, get(h, path).Body.String(), `"targets":3,"done":3,"refused":0`)
	require.Equal(t, run.ID, call("/api/v1/bulk", body, "Idempotency-Key", "k1").ID, "nothing matches any more, and the key is that of the action")

	again := call("/api/v1/bulk", `{"kind":"retry","targets":["`+o.Item(ids[0], "charge.1.1").ID.String()+`"]}`)
	o.Drain()
	require.Contains(t, get(h, "/api/v1/bulk/"+again.ID).Body.String(), `"done":0,"refused":1,"refusals":[{"target":"`)
	list := get(h, "/api/v1/bulk?limit=1").Body.String()
	require.Contains(t, list, again.ID)
	require.Contains(t, list, `"next":"`+again.ID)
	require.NotContains(t, list, "refusals")
	for body, code := range map[string]int{
		`{"kind":"retry"}`: http.StatusBadRequest, `{"kind":"start","filter":{}}`: http.StatusBadRequest, `{"kind":"retry","filter":{"none":["x"]}}`: http.StatusBadRequest,
		`{"kind":"retry","filter":{"code":["down","other"]},"count":true}`: http.StatusBadRequest,
		`{"kind":"retry","filters":{}}`:                                    http.StatusBadRequest, `{"kind":"retry","targets":["` + denied + `"]}`: http.StatusForbidden,
		`{"kind":"retry","filter":{"workflow":["none"]}}`: http.StatusBadRequest,
	} {
		require.Equal(t, code, commandTo(h, "/api/v1/bulk", body).Code, body)
	}
	require.Equal(t, http.StatusBadRequest, commandTo(h, path, `{"do":"stop"}`).Code)
	require.Equal(t, http.StatusConflict, commandTo(h, path, `{"do":"cancel"}`).Code, "it has ended")
	require.Equal(t, http.StatusNotFound, commandTo(h, "/api/v1/bulk/"+o.claim.String(), `{"do":"pause"}`).Code, "another case")
}

// Rows that are ticked are the targets of an action, without script: it leads to its form by their ids. None is not all.
func TestTheTickedRowsAreTheTargets(t *testing.T) {
	o := newOffice(t, "text")
	ids := o.bills(t, 3)
	h := o.handler(admin.Config{Access: as("eve")})
	list := get(h, "/cases?state=started&workflow=bill").Body.String()
	for _, id := range ids {
		require.Contains(t, list, `<input type="checkbox" name="ids" value="`+id.String()+`"`)
	}
	require.Contains(t, list, `name="kind" value="cancel">Cancel ticked…</button>`)
	form := "/bulk?ids=&ids=" + ids[0].String() + "&ids=" + ids[2].String() + "&kind=cancel"
	require.Contains(t, get(h, form).Body.String(), "Cancel the case: 2 cases")
	require.Equal(t, http.StatusSeeOther, submit(t, h, form, "confirm", "2").Code)
	for i, id := range ids {
		require.Equal(t, i != 1, o.stateOf(t, id) == state.CaseCanceled)
	}
	require.Contains(t, get(h, "/bulk?ids=&kind=cancel").Body.String(), "Nothing is ticked")
	require.Equal(t, http.StatusBadRequest, get(h, "/bulk?ids=nothing&kind=cancel").Code)

	require.NotContains(t, get(o.handler(admin.Config{Access: admin.ReadOnly}), "/cases").Body.String(), "checkbox")
	ticks := regexp.MustCompile(`name="ids" value="([0-9a-f-]{36})"`).FindAllStringSubmatch(get(h, "/incidents").Body.String(), -1)
	require.Len(t, ticks, 2, "the bill of the office, and the one that is left")
	form = "/bulk?ids=&ids=" + ticks[1][1] + "&kind=retry"
	require.Contains(t, get(h, form).Body.String(), "Retry: 1 incident")
	require.Equal(t, http.StatusSeeOther, submit(t, h, form).Code)
	o.Drain()
	require.Equal(t, 2, o.Item(ids[1], "charge").Attempt)
}
