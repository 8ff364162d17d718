package admin_test

import (
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/admin"
	"github.com/tasq-dev/tasq/engine/bulk"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// startedBills starts bills whose charge is started.
func (o *office) startedBills(t *testing.T, n int) (cases []workitem.CaseID, items []string) {
	t.Helper()
	for range n {
		result, err := o.Do(t.Context(), workflow.Start("bill", []byte(`{}`)))
		require.NoError(t, err)
		item := o.Item(result.Case, "charge").ID
		_, err = o.Do(t.Context(), workflow.Act(item, workitem.Start, nil, workflow.By("ann")))
		require.NoError(t, err)
		cases, items = append(cases, result.Case), append(items, item.String())
	}
	return cases, items
}

// Ticked work items, and all that the filter of the list selects, are reset, failed and canceled.
func TestWorkItemsAreActedOnTogether(t *testing.T) {
	o := newOffice(t, "text")
	cases, items := o.startedBills(t, 4)
	h := o.handler(admin.Config{Access: as("eve")})
	list := get(h, "/items?state=started&holder=ann").Body.String()
	for _, want := range []string{"Reset all that match…", "Fail all that match…", "Cancel all that match…", "Reset ticked…", "Cancel ticked…", `name="ids" value="` + items[0] + `"`} {
		require.Contains(t, list, want)
	}
	require.NotContains(t, get(h, "/items?state=initialized").Body.String(), "Reset all")
	require.NotContains(t, get(h, "/items?state=completed").Body.String(), " ticked…")
	require.NotContains(t, get(o.handler(admin.Config{Access: admin.ReadOnly}), "/items").Body.String(), "ticked…")

	send := func(form string, want string, fields ...string) {
		t.Helper()
		require.Contains(t, get(h, form).Body.String(), want)
		w := submit(t, h, form, fields...)
		require.Equal(t, http.StatusSeeOther, w.Code, w.Body)
		o.Drain()
		require.Contains(t, get(h, w.Header().Get("Location")).Body.String(), " are done, and 0 refused.")
	}
	ticked := url.Values{"kind": {"item-reset"}, "ids": {"", items[0], items[1]}}
	send("/bulk?"+ticked.Encode(), "Reset it: 2 items", "confirm", "2", "reason", "the shift has ended")
	require.Equal(t, workitem.Initialized, o.Item(cases[0], "charge").State)
	require.Equal(t, workitem.Started, o.Item(cases[2], "charge").State)

	send("/bulk?kind=item-fail&holder=ann", "Fail it: 2 items", "confirm", "2", "code", "no-funds", "reason", "the account is empty")
	failed := o.Item(cases[2], "charge.1.1")
	require.Equal(t, []string{"no-funds", "the account is empty"}, []string{failed.Failure.Code, failed.Failure.Message})

	canceled := "/bulk?kind=item-cancel&workflow=bill&state=initialized&case=" + cases[1].String()
	send(canceled, "Cancel it: 1 item", "reason", "not needed")
	require.Equal(t, workitem.Canceled, o.Item(cases[1], "charge.1.1").State)
	require.Contains(t, get(h, canceled).Body.String(), "Nothing matches any more")

	// A filter by the code of failures is kept beside the field with the code of the new failure.
	link := bulkLinksIn(get(h, "/items?state=started&code=no-funds").Body.String(), "item-fail")
	require.Contains(t, link, "code-is=no-funds")
	page := get(h, "/bulk").Body.String()
	require.Contains(t, page, ">item reset<")
}

func bulkLinksIn(page, word string) string {
	for _, m := range bulkLinks.FindAllStringSubmatch(page, -1) {
		if strings.Contains(m[1], "kind="+word) {
			return m[1]
		}
	}
	return ""
}

// The API acts on work items and on cases that have ended by the same filters, and counts first.
func TestTheAPIActsOnItemsAndEndedCases(t *testing.T) {
	o := newOffice(t, "text")
	cases, items := o.startedBills(t, 3)
	h := o.handler(admin.Config{Access: as("eve")})
	call := func(body, want string) {
		t.Helper()
		w := commandTo(h, "/api/v1/bulk", body)
		require.Equal(t, http.StatusOK, w.Code, w.Body)
		require.Contains(t, w.Body.String(), want)
		o.Drain()
	}
	call(`{"kind":"item","action":"reset","filter":{"workflow":["bill"]},"count":true}`, `"targets":3`)
	call(`{"kind":"item","action":"fail","filter":{"holder":["ann"],"case":["`+cases[0].String()+`"]},"payload":{"code":"no-funds","retryable":false}}`, `"targets":1`)
	call(`{"kind":"item","action":"cancel","targets":["`+items[1]+`"],"reason":"not needed"}`, `"targets":1`)
	require.Equal(t, "no-funds", o.Item(cases[0], "charge.1.1").Failure.Code)
	require.Equal(t, workitem.Canceled, o.Item(cases[1], "charge.1.1").State)
	for _, body := range []string{`{"kind":"item","filter":{}}`, `{"kind":"item","action":"start","filter":{}}`, `{"kind":"item","action":"reset","filter":{"state":["failed"]}}`,
		`{"kind":"item","action":"reset","filter":{"suspended":["true"]}}`, `{"kind":"cancel","action":"reset","filter":{}}`} {
		require.Equal(t, http.StatusBadRequest, commandTo(h, "/api/v1/bulk", body).Code, body)
	}

	_, err := o.Do(t.Context(), workflow.Cancel(cases[2], nil))
	require.NoError(t, err)
	call(`{"kind":"restart","filter":{"case":["`+cases[2].String()+`"]},"reason":"again"}`, `"targets":1`)
	again := `{"kind":"restart","filter":{"case":["` + cases[2].String() + `"]}`
	call(again+`,"count":true}`, `"restarted":1,"restartedAs":[{"case":"`+cases[2].String()+`","successor":"`)
	call(again+`,"count":true,"force":true}`, `"targets":1`)
	call(`{"kind":"restart","targets":["`+cases[2].String()+`"],"count":true}`, `"restarted":1`)
	w := commandTo(h, "/api/v1/bulk", again+`}`)
	require.Equal(t, http.StatusConflict, w.Code)
	require.Contains(t, w.Body.String(), `"code":"restarted"`)
	require.Contains(t, get(h, "/bulk?kind=restart&case="+cases[2].String()).Body.String(), "All of these were restarted already")
	old := get(h, "/cases/"+cases[2].String()).Body.String()
	require.Contains(t, old, "restarted as")
	require.Contains(t, get(h, regexp.MustCompile(`restarted as <a class="id" href="([^"]+)"`).FindStringSubmatch(old)[1]).Body.String(), "restart of <a")
	explained, err := o.Engine.Why(t.Context(), cases[2])
	require.NoError(t, err)
	require.False(t, explained.RestartedAs.IsZero())
	require.Contains(t, get(h, "/api/v1/cases/"+cases[2].String()).Body.String(), `"restarted_as":"`+explained.RestartedAs.String()+`"`)
	require.Contains(t, get(h, "/api/v1/cases/"+cases[2].String()+"/why").Body.String(), `"restartedAs":"`+explained.RestartedAs.String()+`"`)
	require.NotContains(t, get(h, "/api/v1/cases/"+explained.RestartedAs.String()).Body.String(), "restarted_as")
	o.restartsAgain(t, h, cases[2])
	ended, err := bulk.Cases(t.Context(), o.Engine, workflow.KindRemove, store.CaseFilter{Workflow: "bill", States: []state.CaseState{state.CaseCanceled}}, store.Search{})
	require.NoError(t, err)
	require.Contains(t, ended, cases[2].String())

	form := "/bulk?kind=remove&state=canceled&case=" + cases[2].String()
	require.Contains(t, get(h, "/cases?state=canceled").Body.String(), "Remove all that match…")
	require.Contains(t, get(h, form).Body.String(), "Type the number 1 to confirm")
	require.Equal(t, http.StatusUnprocessableEntity, submit(t, h, form).Code)
	require.Equal(t, http.StatusSeeOther, submit(t, h, form, "confirm", "1").Code)
	o.Drain()
	require.Equal(t, http.StatusGone, get(h, "/cases/"+cases[2].String()).Code)
}

// restartsAgain restarts a canceled case that was restarted already, and is left out of a selection: by the link of the form, which also leads back.
func (o *office) restartsAgain(t *testing.T, h http.Handler, id workitem.CaseID) {
	t.Helper()
	fresh, err := o.Do(t.Context(), workflow.Start("bill", []byte(`{}`)))
	require.NoError(t, err)
	_, err = o.Do(t.Context(), workflow.Cancel(fresh.Case, nil))
	require.NoError(t, err)
	link := func(page, text string) string {
		t.Helper()
		found := regexp.MustCompile(`href="([^"]+)"[^>]*>` + text + `<`).FindStringSubmatch(page)
		require.NotNil(t, found, page)
		return html.UnescapeString(found[1])
	}
	ids := url.Values{"kind": {"restart"}, "ids": {id.String(), fresh.Case.String()}}
	page := get(h, "/bulk?"+ids.Encode()).Body.String()
	require.Contains(t, page, "Restart it: 1 case")
	require.Contains(t, page, "Left out: 1 case, which had been restarted or forked already")
	again := link(page, "Restart 1 case again, too")
	page = get(h, again).Body.String()
	require.Contains(t, page, "Restart it: 2 cases")
	require.Contains(t, page, "is restarted again")
	require.Contains(t, get(h, link(page, "Leave out what was restarted already")).Body.String(), "Restart it: 1 case")

	before, err := o.Engine.Why(t.Context(), id)
	require.NoError(t, err)
	w := submit(t, h, again, "confirm", "3")
	require.Equal(t, http.StatusUnprocessableEntity, w.Code)
	require.Contains(t, w.Body.String(), "2 cases match now")
	w = submit(t, h, again, "confirm", "2")
	require.Equal(t, http.StatusSeeOther, w.Code, w.Body)
	o.Drain()
	require.Contains(t, get(h, w.Header().Get("Location")).Body.String(), "2 are done, and 0 refused.")
	after, err := o.Engine.Why(t.Context(), id)
	require.NoError(t, err)
	require.NotEqual(t, before.RestartedAs, after.RestartedAs)

	all := get(h, "/bulk?"+ids.Encode()).Body.String()
	require.Contains(t, all, "All of these were restarted already")
	require.Contains(t, get(h, link(all, "Restart 2 cases again, too")).Body.String(), "Restart it: 2 cases")
}
