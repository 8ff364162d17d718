package admin_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/admin"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// billed starts a bill and has it fail.
func (o *office) billed(t *testing.T, code, message string) workitem.CaseID {
	t.Helper()
	result, err := o.Do(t.Context(), workflow.Start("bill", []byte(`{"cents":1250}`), workflow.By("portal")))
	require.NoError(t, err)
	o.FailItem(result.Case, "charge", &workitem.Failure{Code: code, Message: message, Details: []byte(`{"iban":"DE12"}`)}, workflow.By("bank"))
	return result.Case
}

// On call: from "something is wrong" to the failed items by cause, one read in full, all of that cause tried again, and what is left.
func TestOnCallRetriesAllOfACause(t *testing.T) {
	visit(t, func(t *testing.T, as func(*testing.T, http.Handler) visitor) {
		o := newOfficeOf(t, likely)
		all := []workitem.CaseID{o.bill, o.billed(t, "no-funds", likely.declined), o.billed(t, "no-funds", likely.declined)}
		closed := o.billed(t, "account-closed", "the account was closed on 2029-12-31")
		v := as(t, o.handler(admin.Config{Access: eve}))
		v.begin()
		v.sees("Needs a person", "bill/charge: no-funds", "bill/charge: account-closed")
		v.follow("bill/charge: no-funds")
		v.sees("! 3 bill/charge", "workflow: bill", "code: no-funds")
		v.follow("charge.1.1")
		v.sees(likely.declined, "Details of the failure", "iban")
		v.follow("Incidents")
		v.sees("account-closed")
		v.follow("Retry all…")
		v.sees("Retry: 3 incidents", "Type the number 3 to confirm")
		v.fill("reason", "the account is filled")
		v.fill("confirm", "3")
		v.send("Retry: 3 incidents")
		o.Drain()
		v.again()
		v.sees("3 of 3", "Nothing was rejected.")
		v.follow("Incidents")
		v.sees("! 1 bill/charge", "the account was closed on 2029-12-31")
		require.False(t, v.shows("! 3 bill/charge"), "they are no incidents any more")
		for _, id := range all {
			require.Equal(t, 2, o.Item(id, "charge").Attempt)
		}
		require.Equal(t, 1, o.Item(closed, "charge.1.1").Attempt)
	})
}

// Developer: why a case does not continue, its state just before the failure, and what to copy: the id, the input and a command line.
func TestADeveloperSeesWhyACaseIsBlocked(t *testing.T) {
	visit(t, func(t *testing.T, as func(*testing.T, http.Handler) visitor) {
		o := newOfficeOf(t, likely)
		o.StartItem(o.claim, "withdraw", workflow.By("ann"))
		id := o.claim.String()
		v := as(t, o.handler(admin.Config{Access: eve}))
		v.begin()
		v.follow(shortID(o.claim))
		v.sees("What it waits for", "decide ? join waits", "1 waiting for another attempt", likely.busy, id)
		v.follow("To the failure before")
		v.sees("This is a past state", likely.busy)
		v.follow("One entry back")
		v.sees("This is a past state", "item start fraud.1.1")
		require.False(t, v.shows(likely.busy), "it has not failed yet")
		v.follow("data")
		v.sees("This is a past state", "Input", likely.account, "tasq show "+id+" --at ")
		v.follow("Back to now")
		v.sees("Input", likely.account, "tasq why "+id)
		require.False(t, v.shows("This is a past state"))
	})
}

// Process owner: where cases pile up, how long each task takes against the period before, and a list as a file.
func TestAProcessOwnerSeesWhereCasesPileUp(t *testing.T) {
	visit(t, func(t *testing.T, as func(*testing.T, http.Handler) visitor) {
		o := newOfficeOf(t, likely)
		o.Advance(10 * 24 * time.Hour)
		for range 2 {
			result, err := o.Do(t.Context(), workflow.Start("claim", []byte(`{}`), workflow.By("portal")))
			require.NoError(t, err)
			it := o.StartItem(result.Case, "register", workflow.By("ann"))
			o.Advance(time.Minute)
			require.NoError(t, o.act1(t, workflow.Act(it.ID, workitem.Complete, nil, workflow.By("ann"))))
		}
		h := o.handler(admin.Config{Access: admin.ReadOnly})
		v := as(t, h)
		v.begin()
		v.sees("claim")
		v.follow("claim")
		v.sees("triage", "waiting") // 2 wait at triage, which the table of tasks has as a number that leads to them
		v.follow("2")
		v.sees("triage.1.1", "task: triage")
		v.follow("More")
		v.follow("Statistics")
		v.follow("7d")
		v.sees("done before", "took p50 before", "register 2 0 0ms 0ms 1m 1m 1 0ms 0ms")
		v.follow("Cases")
		v.follow("started")
		v.follow("Filter")
		v.fill("workflow", "claim")
		v.send("Show")
		v.sees("workflow: claim")
		w := get(h, v.address("Download as CSV"))
		require.Equal(t, http.StatusOK, w.Code, w.Body)
		require.Len(t, strings.Split(strings.TrimSpace(w.Body.String()), "\n"), 1+3)
		require.Contains(t, w.Body.String(), o.claim.String())
	})
}

// Team lead: who holds what since when. Auditor: who did what to a case, without any means to act.
func TestAnAuditorSeesWhoDidWhat(t *testing.T) {
	visit(t, func(t *testing.T, as func(*testing.T, http.Handler) visitor) {
		o := newOfficeOf(t, likely)
		require.NoError(t, o.act1(t, workflow.Retry(o.Item(o.bill, "charge.1.1").ID, nil, workflow.By("eve"), workflow.Because("the account is filled"))))
		v := as(t, o.handler(admin.Config{Access: admin.ReadOnly}))
		v.begin()
		v.sees("read only")
		v.follow("Items")
		v.follow("started")
		v.sees("assess.1.2", likely.name)
		v.follow("More")
		v.follow("Audit")
		v.sees("eve", "item retry charge")
		v.follow("item retry charge")
		v.sees("charge.1.2")
		v.follow(shortID(o.bill))
		v.follow("history")
		v.sees("by eve", "the account is filled")
		for _, act := range []string{"Cancel case…", "Retry…", "Suspend…", "Complete…"} {
			require.False(t, v.shows(act), act)
		}
	})
}

// shortID is how lists call a case.
func shortID(id workitem.CaseID) string {
	text := id.String()
	return "…" + text[len(text)-8:]
}

// act1 has a command done, with what follows from it.
func (o *office) act1(t *testing.T, c workflow.Command) error {
	t.Helper()
	_, err := o.Do(t.Context(), c)
	o.Drain()
	return err
}

// What is not filled in the form of filters selects nothing, also not the queue without a name; the address that can be shared has what was filled in.
func TestEmptyFieldsOfFiltersMeanNothing(t *testing.T) {
	o := newOffice(t, "text")
	h := o.handler(admin.Config{Access: admin.ReadOnly, Prefix: "/tasq"})
	for asked, want := range map[string]string{
		"/cases?filter=1&label=&key=&older=&workflow=claim&state=started": "/cases?state=started&workflow=claim",
		"/cases?filter=1&label=+":                                 "/cases",
		"/items?filter=1&queue=&task=register":                    "/items?task=register",
		"/items?filter=1&filter=queue&queue=&task=register&code=": "/items?queue=&task=register",
	} {
		w := get(h, "/tasq"+asked)
		require.Equal(t, http.StatusSeeOther, w.Code, asked)
		require.Equal(t, "/tasq"+want, strings.TrimSuffix(w.Header().Get("Location"), "?"), asked)
	}
	list := get(h, "/tasq/items?queue=").Body.String()
	require.Contains(t, list, "queue: default")
	require.Contains(t, list, `<input type="hidden" name="filter" value="queue"><input type="hidden" name="queue" value="">`)
}
