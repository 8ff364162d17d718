package admin_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/admin"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

var hidden = regexp.MustCompile(`<input type="hidden" name="([^"]*)" value="([^"]*)">`)

// submit opens a form and sends it, with what a person fills in.
func submit(t *testing.T, h http.Handler, path string, fields ...string) *httptest.ResponseRecorder {
	t.Helper()
	page := get(h, path)
	require.Equal(t, http.StatusOK, page.Code, page.Body)
	to := regexp.MustCompile(`<form method="post" action="([^"]*)"`).FindStringSubmatch(page.Body.String())
	require.NotNil(t, to, page.Body)
	for _, m := range hidden.FindAllStringSubmatch(page.Body.String(), -1) {
		fields = append(fields, m[1], m[2])
	}
	return post(h, to[1], fields...)
}

func (o *office) stateOf(t *testing.T, id workitem.CaseID) state.CaseState {
	t.Helper()
	o.Drain()
	c, err := o.Case(t.Context(), id)
	require.NoError(t, err)
	return c.State
}

// A person does by forms what a program does by commands, each under their name and with the reason.
func TestCommandsByForms(t *testing.T) {
	o := newOffice(t, "text")
	h := o.handler(admin.Config{Prefix: "/tasq", Access: as("eve")})
	fraud := o.Item(o.claim, "fraud")
	w := submit(t, h, "/tasq/act?kind=retry&item="+fraud.ID.String(), "reason", "the model is back")
	require.Equal(t, http.StatusSeeOther, w.Code, w.Body)
	item := o.Item(o.claim, "withdraw").ID.String()
	require.Equal(t, http.StatusSeeOther, submit(t, h, "/tasq/act?kind=item-start&item="+item).Code)
	require.Equal(t, "eve", o.Item(o.claim, "withdraw").By)
	require.Equal(t, http.StatusSeeOther, submit(t, h, "/tasq/act?kind=item-reset&item="+item).Code)
	require.Equal(t, http.StatusSeeOther, submit(t, h, "/tasq/act?kind=suspend&case="+o.claim.String()).Code)
	require.Contains(t, get(h, "/tasq/cases/"+o.claim.String()).Body.String(), "suspended")
	require.Equal(t, http.StatusSeeOther, submit(t, h, "/tasq/act?kind=resume&case="+o.claim.String()).Code)
	require.Equal(t, http.StatusSeeOther, submit(t, h, "/tasq/act?kind=cancel&case="+o.claim.String(), "reason", "a mistake").Code)
	require.Equal(t, state.CaseCanceled, o.stateOf(t, o.claim))
	history := get(h, "/tasq/cases/"+o.claim.String()+"?tab=history").Body.String()
	require.Contains(t, history, "the model is back")
	require.Contains(t, history, "by eve")

	require.Equal(t, http.StatusSeeOther, submit(t, h, "/tasq/act?kind=send&case="+o.order.String(), "event", "paid", "payload", `"now"`).Code)
	require.Equal(t, state.CaseCompleted, o.stateOf(t, o.order))
	charge := o.Item(o.bill, "charge.1.1").ID.String()
	w = submit(t, h, "/tasq/act?kind=skip&item="+charge, "payload", `{"paid":"by hand"}`)
	require.Equal(t, http.StatusSeeOther, w.Code, w.Body)
	require.Equal(t, state.CaseCompleted, o.stateOf(t, o.bill))
	w = submit(t, h, "/tasq/act?kind=start&workflow=bill", "payload", `{"n":1}`)
	require.Equal(t, http.StatusSeeOther, w.Code, w.Body)
	require.Contains(t, w.Header().Get("Location"), "/tasq/cases/")
}

// A form that is sent twice does one thing.
func TestAFormSentTwiceDoesOneThing(t *testing.T) {
	o := newOffice(t, "text")
	h := o.handler(admin.Config{Access: as("eve")})
	fields := []string{"kind", "start", "workflow", "bill", "payload", "{}", "key", "the same"}
	first, second := post(h, "/act", fields...), post(h, "/act", fields...)
	require.Equal(t, http.StatusSeeOther, first.Code, first.Body)
	require.Equal(t, first.Header().Get("Location"), second.Header().Get("Location"))
	n := 0
	for _, err := range store.AllCases(t.Context(), o, store.CaseFilter{Workflow: "bill"}) {
		require.NoError(t, err)
		n++
	}
	require.Equal(t, 2, n)
}

// What is refused is said in the form, which keeps what was typed.
func TestARefusedFormKeepsWhatWasTyped(t *testing.T) {
	o := newOffice(t, "text")
	h := o.handler(admin.Config{Access: as("eve")})
	w := submit(t, h, "/act?kind=send&case="+o.order.String(), "event", "paid", "payload", `{"half":`)
	require.Equal(t, http.StatusUnprocessableEntity, w.Code)
	require.Contains(t, w.Body.String(), "not JSON")
	require.Contains(t, w.Body.String(), `{&#34;half&#34;:`)
	w = submit(t, h, "/act?kind=resume&case="+o.order.String(), "reason", "I am wrong here")
	require.Equal(t, http.StatusConflict, w.Code)
	require.Contains(t, w.Body.String(), "I am wrong here")
	require.Contains(t, w.Body.String(), `role="alert"`)
	w = submit(t, h, "/act?kind=remove&case="+o.failed.String(), "confirm", "nope")
	require.Equal(t, http.StatusUnprocessableEntity, w.Code)
	id := o.failed.String()
	require.Equal(t, http.StatusSeeOther, submit(t, h, "/act?kind=remove&case="+id, "confirm", id[len(id)-4:]).Code)
	require.Equal(t, http.StatusGone, get(h, "/cases/"+id).Code)
}

// Those who may not act see no button, get no form, and their commands are refused.
func TestRightsToAct(t *testing.T) {
	o := newOffice(t, "text")
	paying := func(*http.Request) (admin.User, error) {
		return admin.User{Name: "pat", May: func(kind, target string) bool { return kind == "send" && target == o.order.String() }}, nil
	}
	for name, access := range map[string]func(*http.Request) (admin.User, error){"looks": admin.ReadOnly, "pays": paying} {
		h := o.handler(admin.Config{Access: access})
		require.NotContains(t, get(h, "/cases/"+o.claim.String()).Body.String(), "/act?", name)
		require.Equal(t, http.StatusForbidden, get(h, "/act?kind=cancel&case="+o.claim.String()).Code, name)
		require.Equal(t, http.StatusForbidden, post(h, "/act", "kind", "cancel", "case", o.claim.String(), "key", "k").Code, name)
		require.Equal(t, http.StatusForbidden, post(h, "/bulk", "kind", "retry", "once", "k", "confirm", "1").Code, name)
		w := command(h, `{"kind":"cancel","case":"`+o.claim.String()+`"}`)
		require.Equal(t, http.StatusForbidden, w.Code, name)
		require.Contains(t, w.Body.String(), `"code":"not-allowed"`)
	}
	h := o.handler(admin.Config{Access: paying})
	require.Equal(t, http.StatusSeeOther, submit(t, h, "/act?kind=send&case="+o.order.String(), "event", "paid", "payload", `"x"`).Code)
	require.Equal(t, state.CaseStarted, o.stateOf(t, o.claim))
}

func command(h http.Handler, body string, header ...string) *httptest.ResponseRecorder {
	return commandTo(h, "/api/v1/commands", body, header...)
}

func commandTo(h http.Handler, path, body string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// The API takes commands as other processes leave them, under the name of the user, once for each key.
func TestCommandsByAPI(t *testing.T) {
	o := newOffice(t, "text")
	h := o.handler(admin.Config{Access: as("eve")})
	start := `{"kind":"start","workflow":"bill","payload":{},"actor":"mallory"}`
	first := command(h, start, "Idempotency-Key", "k1")
	require.Equal(t, http.StatusOK, first.Code, first.Body)
	require.Equal(t, first.Body.String(), command(h, start, "Idempotency-Key", "k1").Body.String())
	var result workflow.Result
	require.NoError(t, json.Unmarshal(first.Body.Bytes(), &result))
	for e, err := range store.AllEntries(t.Context(), o, store.JournalFilter{Root: result.Case}) {
		require.NoError(t, err)
		require.Equal(t, "eve", e.By)
	}
	for body, want := range map[string]string{
		`{"kind":"cancel","case":"01999999-9999-7999-8999-999999999999"}`: "404 not-found",
		`{"kind":"start","kind":"cancel"}`:                                "422 invalid-payload", `{"kind":"start","workflow":"bill","payload":{"a":1,"a":2}}`: "422 invalid-payload",
		`{"dryRun":true,"kind":"start","workflow":"bill","Kind":"start"}`: "422 invalid-payload", `{"dryRun":false,"dryRun":true,"kind":"start"}`: "422 invalid-payload",
		`{"kind":"nix"}`: "400 bad-command", `[`: "400 bad-command", `{"kind":"start","workflow":"none"}`: "404 unknown-workflow",
		`{"kind":"resume","case":"` + o.claim.String() + `"}`:                                                          "409 not-failed",
		`{"kind":"item","action":"complete","item":"` + o.Item(o.claim, "withdraw").ID.String() + `"}`:                 "409 illegal-transition",
		`{"kind":"send","event":"x","case":"` + o.order.String() + `","payload":"` + strings.Repeat("x", 1<<20) + `"}`: "413 too-large",
	} {
		w := command(h, body)
		var p struct{ Code string }
		require.NoError(t, json.Unmarshal(w.Body.Bytes(), &p))
		require.Equal(t, want, strconv.Itoa(w.Code)+" "+p.Code, w.Body)
	}
}

// A body that is no command is refused in words for the one who wrote it, and a reason may be a text, as in the bodies of other addresses.
func TestBodiesOfCommandsByHand(t *testing.T) {
	o := newOffice(t, "text")
	h := o.handler(admin.Config{Access: as("eve")})
	none := "01999999-9999-7999-8999-999999999999"
	for body, want := range map[string]string{
		`{"kind":"retri","item":"` + none + `"}`:           `did you mean "retry"?`,
		`{"kind":"retry","itm":"` + none + `"}`:            `the body is not a command: bad command: unknown field "itm"`,
		`{"kind":"cancel","case":7}`:                       `the body is not a command: bad command: the field "case" cannot be a number`,
		`{"kind":"retry"}`:                                 `the body is not a command: bad command: a retry command needs "item"`,
		`{"kind":"skip","item":"` + none + `"}`:            `no case, work item or job has the id ` + none + `: not found`,
		`{"kind":"give-up-incident","job":"` + none + `"}`: `not found`,
	} {
		var p struct{ Detail string }
		require.NoError(t, json.Unmarshal(command(h, body).Body.Bytes(), &p))
		require.Contains(t, p.Detail, want)
		require.NotRegexp(t, `may be newer|bad command.*bad command|not found.*not found|work item.*work item|json:`, p.Detail)
	}
	w := command(h, `{"kind":"suspend","case":"`+o.claim.String()+`","reason":"the customer asked"}`)
	require.Equal(t, http.StatusOK, w.Code, w.Body)
	c, err := o.Case(t.Context(), o.claim)
	require.NoError(t, err)
	require.Equal(t, "the customer asked", c.Suspended.Reason)

	r := httptest.NewRecorder()
	h.ServeHTTP(r, httptest.NewRequest(http.MethodGet, "/api/v1/incidents?kind=tiner", nil))
	require.Equal(t, http.StatusBadRequest, r.Code)
	require.Contains(t, r.Body.String(), `did you mean \"timer\"?`)

	r = commandTo(h, "/api/v1/bulk", `{"kind":"retry","filter":7}`)
	require.Equal(t, http.StatusBadRequest, r.Code)
	require.Contains(t, r.Body.String(), `the body is not a bulk action: the field \"filter\" cannot be a number: bad command`)
}

// The form of an incident says what it is about and what a retry would change, and the form that skips work can be checked first.
func TestTheFormOfAnIncidentSaysWhatItIsAbout(t *testing.T) {
	o := newTown(t, "text")
	h := o.handler(admin.Config{Access: as("eve")})
	list := get(h, "/incidents").Body.String()
	found := regexp.MustCompile(`/act\?incident=([^&"]+)&amp;kind=retry-incident`).FindStringSubmatch(list)
	require.NotNil(t, found, "there is an incident of a job")
	form := plainText(get(h, "/act?kind=retry-incident&incident="+found[1]).Body.String())
	require.Regexp(t, `Incident `+found[1]+` \(\w+\) of case \S+ of \w+.*: `, form)
	require.Contains(t, form, "What it would change")
	form = plainText(get(h, "/act?kind=retry-incident&incident=01999999-9999-7999-8999-999999999999").Body.String())
	require.Contains(t, form, "which is not open")
	skip := regexp.MustCompile(`/act\?item=([^&"]+)&amp;kind=retry"`).FindStringSubmatch(list)
	require.NotNil(t, skip)
	require.Contains(t, get(h, "/act?kind=skip&item="+skip[1]).Body.String(), "Check only")
}

// All incidents of a cause are tried again by one durable action, up to the newest that was seen, and the rest stays.
func TestIncidentsOfACauseAreRetriedTogether(t *testing.T) {
	o := newOffice(t, "text")
	h := o.handler(admin.Config{Access: as("eve")})
	fail := func() workitem.CaseID {
		result, err := o.Do(t.Context(), workflow.Start("bill", []byte(`{}`)))
		require.NoError(t, err)
		o.FailItem(result.Case, "charge", &workitem.Failure{Code: "no-funds", Message: "text"})
		return result.Case
	}
	second := fail()
	page := get(h, "/incidents").Body.String()
	require.Contains(t, page, "</span> 2</span> bill")
	require.Contains(t, page, "no-funds: text<")
	form := "/bulk?kind=retry&workflow=bill&task=charge&incident=attempts&code=no-funds"
	opened := get(h, form).Body.String()
	require.Contains(t, opened, "Retry: 2 incidents")
	later := fail()
	fields := []string{"confirm", "2", "reason", "the bank is back"}
	for _, m := range hidden.FindAllStringSubmatch(opened, -1) {
		fields = append(fields, m[1], m[2])
	}
	wrong := post(h, "/bulk", append([]string{"confirm", "3"}, fields[2:]...)...)
	require.Equal(t, http.StatusUnprocessableEntity, wrong.Code)
	notThese := o.handler(admin.Config{Access: func(*http.Request) (admin.User, error) {
		return admin.User{Name: "eve", May: func(_, target string) bool { return target == "" }}, nil
	}})
	refused := post(notThese, "/bulk", fields...)
	require.Equal(t, http.StatusForbidden, refused.Code)
	require.Contains(t, refused.Body.String(), "You may not do this to any of them")
	w := post(h, "/bulk", fields...)
	require.Equal(t, http.StatusSeeOther, w.Code, w.Body)
	o.Drain()
	progress := get(h, w.Header().Get("Location")).Body.String()
	require.Contains(t, progress, "2 of 2")
	require.Contains(t, progress, "Nothing was rejected.")
	for _, id := range []workitem.CaseID{o.bill, second} {
		require.Equal(t, 2, o.Item(id, "charge").Attempt)
	}
	require.Equal(t, 1, o.Item(later, "charge.1.1").Attempt)
	require.Contains(t, get(h, form).Body.String(), "Retry: 1 incident")
	require.NotContains(t, get(h, form).Body.String(), "to confirm", "one is confirmed by the button")
	require.Equal(t, http.StatusSeeOther, submit(t, h, form, "reason", "the bank is back").Code)
	o.Drain()
	require.Equal(t, 2, o.Item(later, "charge").Attempt)
	require.Equal(t, w.Header().Get("Location"), post(h, "/bulk", fields...).Header().Get("Location"), "the form is sent again, and nothing matches any more")
	nothing := post(h, "/bulk", "once", "another", "confirm", "0", "kind", "retry", "workflow", "none").Body.String()
	require.Contains(t, nothing, "Nothing matches any more")
}

// Failures with one code are one cause, whatever numbers their messages name: the page says what the messages share, lists each, and acts on all.
func TestIncidentsWithOneCodeAreOneCause(t *testing.T) {
	o := newOffice(t, "text")
	h := o.handler(admin.Config{Access: as("eve")})
	for _, f := range []*workitem.Failure{
		{Code: "no-funds", Message: "no funds for 1200 of C-4711"}, {Code: "no-funds", Message: "no funds for 7 of C-4712"}, {Code: "no-funds", Message: "closed"},
		{Code: "http-503", Message: "busy for 3 s"},
	} {
		result, err := o.Do(t.Context(), workflow.Start("bill", []byte(`{}`)))
		require.NoError(t, err)
		o.FailItem(result.Case, "charge", f)
	}
	page := get(h, "/incidents").Body.String()
	require.Equal(t, 2, strings.Count(page, ">Retry all…<"), "one for each code")
	require.Contains(t, page, "no-funds: no funds for … of … (and 2 other messages)", "it has that of the office, too")
	require.Contains(t, page, "no funds for 1200 of C-4711")
	require.Contains(t, page, "no funds for 7 of C-4712")
	require.Contains(t, page, "http-503: busy for 3 s<")
	for range 5 {
		result, err := o.Do(t.Context(), workflow.Start("bill", []byte(`{}`)))
		require.NoError(t, err)
		o.FailItem(result.Case, "charge", &workitem.Failure{Code: "no-funds", Message: "closed"})
	}
	all := regexp.MustCompile(`href="(/incidents[^"]*)">and 4 more<`).FindStringSubmatch(get(h, "/incidents").Body.String())
	require.NotNil(t, all, "five of nine are listed beside the other cause")
	require.Equal(t, 9, strings.Count(get(h, strings.ReplaceAll(all[1], "&amp;", "&")).Body.String(), ">Retry…<"))
	overview := get(h, "/").Body.String()
	require.Contains(t, overview, "bill/charge: no-funds: closed (and 2 other messages)")
	require.Contains(t, overview, "bill/charge: http-503: busy for 3 s")
}

// Cases that a filter selects are suspended together, found by that, and resumed together.
func TestCasesAreSuspendedAndResumedTogether(t *testing.T) {
	o := newOffice(t, "text")
	h := o.handler(admin.Config{Access: as("eve")})
	list := func(query string) string { return get(h, "/cases?state=started"+query).Body.String() }
	bulk := func(page, text string) {
		link := regexp.MustCompile(`href="([^"]*)">` + text).FindStringSubmatch(page)
		require.NotNil(t, link, text)
		w := submit(t, h, strings.ReplaceAll(link[1], "&amp;", "&"), "confirm", "2")
		require.Equal(t, http.StatusSeeOther, w.Code, w.Body)
		o.Drain()
		require.Contains(t, get(h, w.Header().Get("Location")).Body.String(), "Nothing was rejected.")
	}
	second, err := o.Do(t.Context(), workflow.Start("bill", []byte(`{}`)))
	require.NoError(t, err)
	bulk(list("&workflow=bill"), "Suspend all that match")
	for _, id := range []workitem.CaseID{o.bill, second.Case} {
		c, err := o.Case(t.Context(), id)
		require.NoError(t, err)
		require.NotNil(t, c.Suspended)
	}
	suspended := list("&suspended=true")
	require.Contains(t, suspended, "/cases/"+o.bill.String())
	require.NotContains(t, suspended, "/cases/"+o.claim.String())
	require.NotContains(t, suspended, "Suspend all")
	bulk(suspended, "Resume all that match")
	require.Contains(t, list("&suspended=true"), "Nothing matches")
}
