package admin_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/admin"
	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/engine/schedules"
	"github.com/tasq-dev/tasq/limit"
	"github.com/tasq-dev/tasq/schedule"
	"github.com/tasq-dev/tasq/step"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// newPlant is an office whose engine has a function with limits in a queue, and a schedule with a name that paths must escape.
func newPlant(t testing.TB) *office {
	t.Helper()
	send := func(_ context.Context, s string) (string, error) { return s, nil }
	mail := builder.MustFunc("mail", send, builder.OnQueue("mails"), builder.Limits(builder.Takes(limit.Calls(100, time.Minute), 3),
		builder.TakenBySteps(limit.Resource("customers", 5))))
	daily := schedules.New(engine.Code, builder.Schedule(schedule.Schedule{Name: "a/b 100%", Cron: "0 8 * * *", Zone: "Europe/Berlin"}, mail, "all"))
	o := &office{Engine: enginetest.New(t, mail, daily)}
	_, err := daily.Serve(t.Context(), o.Engine.Engine)
	require.NoError(t, err)
	o.Drain()
	return o
}

// A workflow is suspended and resumed through its page: a case that is started in between is suspended, with the reason.
func TestAWorkflowIsSuspendedByAForm(t *testing.T) {
	o := newPlant(t)
	h := o.handler(admin.Config{Access: as("eve")})
	start := func() workitem.CaseID {
		result, err := o.Do(t.Context(), workflow.Start("mail", []byte(`"a"`)))
		require.NoError(t, err)
		o.Drain()
		return result.Case
	}
	require.NotContains(t, get(h, "/workflows").Body.String(), "s-suspended")
	done := submit(t, h, "/act?kind=suspend-workflow&workflow=mail", "reason", "the server moves")
	require.Equal(t, http.StatusSeeOther, done.Code)
	page := get(h, done.Header().Get("Location")).Body.String()
	require.Contains(t, plainText(page), "the server moves")
	require.Contains(t, page, "kind=resume-workflow&amp;workflow=mail")
	require.NotContains(t, page, "kind=suspend-workflow")
	require.Contains(t, get(h, "/workflows").Body.String(), "s-suspended")
	require.Contains(t, get(h, "/api/v1/definitions").Body.String(), `"reason":"the server moves"`)
	held := start()
	require.Equal(t, "started", o.stateOf(t, held).String())
	require.Contains(t, plainText(get(h, "/cases/"+held.String()).Body.String()), "suspended by eve")

	require.Equal(t, http.StatusSeeOther, submit(t, h, "/act?kind=resume-workflow&workflow=mail").Code)
	require.NotContains(t, get(h, "/workflows").Body.String(), "s-suspended")
	require.Equal(t, "completed", o.stateOf(t, start()).String())
	require.Equal(t, "started", o.stateOf(t, held).String(), "it is resumed by a command of its own")
}

// A queue is paused and resumed, and a limit is set, through the pages.
func TestQueuesAndLimitsByForms(t *testing.T) {
	o := newPlant(t)
	h := o.handler(admin.Config{Access: as("eve")})
	page := get(h, "/limits").Body.String()
	require.Contains(t, page, "calls")
	require.Contains(t, page, "in 1m")
	require.Equal(t, http.StatusSeeOther, submit(t, h, "/act?kind=pause-queue&queue=mails").Code)
	page = get(h, "/limits").Body.String()
	require.Contains(t, page, "s-paused")
	result, err := o.Do(t.Context(), workflow.Start("mail", []byte(`"a"`)))
	require.NoError(t, err)
	o.Drain()
	c, err := o.Case(t.Context(), result.Case)
	require.NoError(t, err)
	require.Equal(t, "started", c.State.String(), "the queue is paused")
	require.Contains(t, get(h, "/limits").Body.String(), `href="/jobs?state=pending&amp;queue=mails"`)
	require.Equal(t, http.StatusSeeOther, submit(t, h, "/act?kind=resume-queue&queue=mails").Code)
	require.Equal(t, "completed", o.stateOf(t, result.Case).String())

	require.Equal(t, http.StatusSeeOther, submit(t, h, "/act?kind=set-workers&queue=mails", "workers", "3").Code)
	require.Contains(t, get(h, "/api/v1/queues").Body.String(), `"workers":3`)
	require.Contains(t, get(h, "/limits").Body.String(), "kind=set-workers&amp;queue=mails&amp;workers=3")
	require.Equal(t, http.StatusUnprocessableEntity, submit(t, h, "/act?kind=set-workers&queue=mails", "workers", "0").Code, "to pause is another command")
	require.Equal(t, http.StatusSeeOther, submit(t, h, "/act?kind=set-workers&queue=mails", "workers", "").Code)
	require.NotContains(t, get(h, "/api/v1/queues").Body.String(), `"workers"`)

	require.Equal(t, http.StatusUnprocessableEntity, submit(t, h, "/act?kind=set-limit&limit=calls", "number", " ").Code, "no number is not 0")
	w := submit(t, h, "/act?kind=set-limit&limit=calls", "number", "none")
	require.Equal(t, http.StatusUnprocessableEntity, w.Code)
	require.Equal(t, http.StatusSeeOther, submit(t, h, "/act?kind=set-limit&limit=calls", "number", "7").Code)
	var limits struct{ Rows []workflow.LimitInfo }
	require.NoError(t, json.Unmarshal(get(h, "/api/v1/limits").Body.Bytes(), &limits))
	require.Equal(t, int64(7), limits.Rows[0].Limit.N)
	require.Equal(t, int64(100), limits.Rows[0].Defined)
	require.Contains(t, get(h, "/api/v1/queues").Body.String(), `"rows":[`)

	slots, err := engine.Limits(o.Engine.Engine, step.TakesBy(limit.Resource("customers", 5), 2, "ada")).Acquire(t.Context())
	require.NoError(t, err)
	require.Contains(t, get(h, "/api/v1/limits").Body.String(), `"heldOutside":2`)
	require.Regexp(t, `(?s)customers</td>\s*<td[^>]*>outside of jobs</td>.*?>2</td>`, get(h, "/limits").Body.String())
	slots.Release()
	require.NotContains(t, get(h, "/limits").Body.String(), "outside of jobs")

	require.Equal(t, http.StatusBadRequest, submit(t, h, "/act?kind=set-limit&limit=calls", "number", "0", "limitKey", "ada").Code, "it has no keys")
	require.Equal(t, http.StatusSeeOther, submit(t, h, "/act?kind=set-limit&limit=customers", "number", "0", "limitKey", "ada").Code)
	require.NoError(t, json.Unmarshal(get(h, "/api/v1/limits").Body.Bytes(), &limits))
	require.Equal(t, int64(5), limits.Rows[1].Limit.N)
	require.Equal(t, "ada", limits.Rows[1].Set[0].Key)
	require.Equal(t, "eve", limits.Rows[1].Set[0].By)
	require.Contains(t, get(h, "/limits").Body.String(), "key ada")
}

// Schedules are shown with their ticks in their zone, and commanded through the pages and the API.
func TestSchedulesByForms(t *testing.T) {
	o := newPlant(t)
	h := o.handler(admin.Config{Access: as("eve"), Prefix: "/tasq"})
	list := get(h, "/tasq/schedules").Body.String()
	require.Contains(t, list, `href="/tasq/schedules/a%2Fb%20100%25"`)
	one := "/tasq/schedules/a%2Fb%20100%25"
	page := get(h, one)
	require.Equal(t, http.StatusOK, page.Code, page.Body)
	require.Equal(t, 5, strings.Count(page.Body.String(), ">next<"))
	require.Contains(t, page.Body.String(), "08:00", "ticks are in the zone of the schedule")
	form := func(word string, fields ...string) int {
		return submit(t, h, "/tasq/act?kind=schedule-"+word+"&schedule=a%2Fb+100%25", fields...).Code
	}
	require.Equal(t, http.StatusSeeOther, form("pause", "reason", "the server moves"))
	page = get(h, one)
	require.Contains(t, page.Body.String(), "s-paused")
	require.Contains(t, page.Body.String(), "the server moves")
	require.Equal(t, http.StatusSeeOther, form("run"))
	o.Drain()
	require.Contains(t, get(h, "/tasq/cases?workflow=mail").Body.String(), "s-completed")
	require.Equal(t, http.StatusSeeOther, form("resume"))
	require.Equal(t, http.StatusBadRequest, form("backfill", "from", "yesterday", "to", "2029-12-31"))
	require.Equal(t, http.StatusSeeOther, form("backfill", "from", "2029-12-29", "to", "2029-12-31T23:00"))
	o.Drain()
	var d schedules.Description
	require.NoError(t, json.Unmarshal(get(h, "/tasq/api/v1/schedules/a%2Fb%20100%25").Body.Bytes(), &d))
	require.NotEqual(t, "paused", d.State)
	require.Equal(t, "backfill", d.Changes[len(d.Changes)-1].What)
	require.Equal(t, http.StatusSeeOther, form("remove"))
	require.Equal(t, http.StatusNotFound, get(h, one).Code)
}

// Those without the right to a schedule, a queue or a limit see no button, and their commands are refused.
func TestControlsNeedTheRight(t *testing.T) {
	o := newPlant(t)
	h := o.handler(admin.Config{Access: admin.ReadOnly})
	for _, path := range []string{"/limits", "/schedules/a%2Fb%20100%25"} {
		require.NotContains(t, get(h, path).Body.String(), "/act?", path)
	}
	for _, fields := range [][]string{{"kind", "pause-queue", "queue", "mails"}, {"kind", "set-limit", "limit", "calls", "number", "1"},
		{"kind", "schedule-run", "schedule", "a/b 100%"}} {
		require.Equal(t, http.StatusForbidden, post(h, "/act", fields...).Code, fields)
	}
	w := commandTo(h, "/api/v1/schedules/a%2Fb%20100%25", `{"do":"run"}`)
	require.Equal(t, http.StatusForbidden, w.Code, w.Body)
	w = commandTo(o.handler(admin.Config{Access: as("eve")}), "/api/v1/schedules/a%2Fb%20100%25", `{"do":"dance"}`)
	require.Equal(t, http.StatusBadRequest, w.Code, w.Body)
	w = commandTo(o.handler(admin.Config{Access: as("eve")}), "/api/v1/schedules/a%2Fb%20100%25", `{"do":"pause","reason":"why not"}`)
	require.Equal(t, http.StatusOK, w.Code, w.Body)
}

// The keys of limits, which may name customers, are shown as payloads are, and with them what waits for them; who sees a key that is
// masked is offered no form with it. So are the business keys that turns are about.
func TestKeysOfLimitsAreMasked(t *testing.T) {
	customers := builder.MustFunc("mail", func(_ context.Context, s string) (string, error) { return s, nil },
		builder.Limits(builder.TakesBy(limit.Rate("customers", 5, time.Hour, limit.SlidingWindow), 1, strings.Clone)))
	o := &office{Engine: enginetest.New(t, customers)}
	_, err := o.Do(t.Context(), workflow.SetLimitOf("customers", "lovelace", 0))
	require.NoError(t, err)
	start := func() string {
		result, err := o.Do(t.Context(), workflow.Start("mail", []byte(`"lovelace"`), workflow.BusinessKey("C-4711"), workflow.IfTaken(workflow.Queued)))
		require.NoError(t, err)
		return result.Case.String()
	}
	limited, turn := start(), start()
	o.Drain()
	o.Advance(time.Hour)
	show := func(_ admin.User, kind, name string, raw json.RawMessage) json.RawMessage {
		switch kind + " " + name + " " + string(raw) {
		case `limit customers "lovelace"`, `key mail "C-4711"`:
			return json.RawMessage(`"hidden"`)
		}
		return json.RawMessage(strings.ReplaceAll(string(raw), "lovelace", "payload"))
	}
	plain, masked := o.handler(admin.Config{Access: as("ann")}), o.handler(admin.Config{Access: as("ann"), Show: show})
	for path, secret := range map[string]string{"/limits": "lovelace", "/api/v1/limits": "lovelace", "/doctor": "lovelace", "/api/v1/doctor": "lovelace",
		"/api/v1/cases/" + limited + "/why": "lovelace", "/cases/" + limited: "lovelace", "/api/v1/cases/" + turn + "/why": "C-4711", "/cases/" + turn: "C-4711"} {
		require.Contains(t, get(plain, path).Body.String(), secret, path)
		body := get(masked, path).Body.String()
		require.NotContains(t, body, secret, path)
		require.Contains(t, body, "hidden", path)
	}
	require.Contains(t, get(plain, "/limits").Body.String(), "limitKey=lovelace")
	require.NotContains(t, get(masked, "/limits").Body.String(), "limitKey=")
	require.Contains(t, get(masked, "/doctor").Body.String(), "is set to 0 for key hidden", "it is found by the key itself")
}

func TestKeysOfPoolsAreMasked(t *testing.T) {
	calls := limit.Rate("calls", 5, time.Hour, limit.SlidingWindow)
	mail := builder.MustFunc("mail", func(_ context.Context, s string) (string, error) { return s, nil },
		builder.Limits(builder.Takes(calls, 1).AnyOf("lovelace", "byron")))
	o := &office{Engine: enginetest.New(t, mail)}
	_, err := o.Do(t.Context(), workflow.SetLimit("calls", 0))
	require.NoError(t, err)
	result, err := o.Do(t.Context(), workflow.Start("mail", []byte(`"to all"`)))
	require.NoError(t, err)
	o.Drain()
	show := func(_ admin.User, kind, name string, raw json.RawMessage) json.RawMessage {
		if kind == "limit" && name == "calls" {
			return json.RawMessage(`"hidden"`)
		}
		return raw
	}
	plain, masked := o.handler(admin.Config{Access: as("ann")}), o.handler(admin.Config{Access: as("ann"), Show: show})
	for _, path := range []string{"/cases/" + result.Case.String(), "/api/v1/cases/" + result.Case.String() + "/why"} {
		body := get(plain, path).Body.String()
		require.Contains(t, body, "1 of rate calls, which is paused (of lovelace or byron)", path)
		body = get(masked, path).Body.String()
		require.NotContains(t, body, "lovelace", path)
		require.NotContains(t, body, "byron", path)
		require.Contains(t, body, "hidden", path)
	}
}

// What is counted has a bound, and the answer says that there is more. A limit that has room on release has no time of that.
func TestBoundsOfWhatIsCounted(t *testing.T) {
	o := newPlant(t)
	h := o.handler(admin.Config{Access: as("eve")})
	require.Equal(t, http.StatusSeeOther, submit(t, h, "/act?kind=pause-queue&queue=mails").Code)
	require.Equal(t, http.StatusSeeOther, submit(t, h, "/act?kind=set-limit&limit=calls", "number", "0").Code)
	require.NotContains(t, get(h, "/api/v1/limits").Body.String(), strconv.FormatInt(int64(limit.Unknown), 10))
	mails := func(n int) (answer struct {
		Rows []struct{ Pending int64 }
		Cut  bool
	}) {
		require.NoError(t, o.Update(t.Context(), func(tx *engine.Tx) error {
			for range n {
				if _, err := tx.Do(t.Context(), workflow.Start("mail", []byte(`"a"`))); err != nil {
					return err
				}
			}
			return nil
		}))
		require.NoError(t, json.Unmarshal(get(h, "/api/v1/queues").Body.Bytes(), &answer))
		return answer
	}
	require.False(t, mails(1).Cut)
	require.NotContains(t, get(h, "/").Body.String(), "are counted")
	require.False(t, mails(100).Cut)
	require.Contains(t, get(h, "/").Body.String(), "Of each queue at most 100 live items are counted")
	require.NotContains(t, get(h, "/limits").Body.String(), "are counted")
	require.True(t, mails(1000).Cut)
}

// The name of a workflow or a task that the database does not have is an error with a near one in the API, as in the command, and said on the pages.
func TestUnknownNamesInFilters(t *testing.T) {
	o := newPlant(t)
	h := o.handler(admin.Config{Access: as("eve")})
	for _, path := range []string{"cases", "items", "jobs", "incidents", "stats", "export"} {
		w := get(h, "/api/v1/"+path+"?workflow=mial")
		require.Equal(t, http.StatusBadRequest, w.Code, path)
		require.Contains(t, w.Body.String(), `no such workflow; did you mean \"mail\"?`, path)
		require.Contains(t, w.Body.String(), `"param":"workflow"`, path)
		require.Equal(t, http.StatusOK, get(h, "/api/v1/"+path+"?workflow=mail").Code, path)
	}
	for _, path := range []string{"cases", "items", "jobs", "incidents", "stats"} {
		w := get(h, "/"+path+"?workflow=mial")
		require.Equal(t, http.StatusOK, w.Code, path)
		require.Contains(t, w.Body.String(), "no such workflow; did you mean &#34;mail&#34;?", path)
		require.NotContains(t, get(h, "/"+path+"?workflow=mail").Body.String(), "no such", path)
	}
	require.Contains(t, get(h, "/items?task=rum").Body.String(), "no such task; did you mean &#34;run&#34;?")
	for _, path := range []string{"items", "jobs"} {
		require.Contains(t, get(h, "/"+path+"?queue=mial").Body.String(), "none is seen in the queue &#34;mial&#34;", path)
	}
	for _, path := range []string{"cases", "items", "jobs", "incidents", "stats"} {
		require.Contains(t, get(h, "/"+path+"?workflw=mail").Body.String(), "&#34;workflw&#34; is no filter of this list, and was left out; did you mean &#34;workflow&#34;?", path)
	}
	for address := range crawl(t, h) {
		require.NotContains(t, get(h, address).Body.String(), "no filter of this list", address)
	}
	require.Contains(t, get(h, "/api/v1/items?workflow=mail&task=rum").Body.String(), `no such task; did you mean \"run\"?`)
}

// A key of a queue is paused and resumed by the forms, listed by the API, and masked where a policy hides it; why names it.
func TestAKeyOfAQueueIsPaused(t *testing.T) {
	mails := builder.MustFunc("mail", func(context.Context, string) (int, error) { return 0, nil }, builder.FairBy(strings.Clone), builder.OnQueue("mails"))
	o := &office{Engine: enginetest.New(t, mails)}
	show := func(_ admin.User, kind, name string, raw json.RawMessage) json.RawMessage {
		if kind+" "+name == "queue mails" {
			return json.RawMessage(`"hidden"`)
		}
		return json.RawMessage(strings.ReplaceAll(string(raw), "lovelace", "payload"))
	}
	plain, masked := o.handler(admin.Config{Access: as("ann")}), o.handler(admin.Config{Access: as("ann"), Show: show})
	require.Contains(t, get(plain, "/act?kind=pause-queue&queue=mails").Body.String(), "queueKey")
	require.Equal(t, http.StatusSeeOther, submit(t, plain, "/act?kind=pause-queue&queue=mails", "queueKey", "lovelace").Code)
	started, err := o.Do(t.Context(), workflow.Start("mail", []byte(`"lovelace"`)))
	require.NoError(t, err)
	o.Advance(time.Hour)
	id := started.Case.String()
	for path, says := range map[string]string{"/limits": "key lovelace", "/api/v1/queues": `"paused_keys":[{"key":"lovelace"`, "/cases/" + id: "key lovelace of queue mails is paused",
		"/api/v1/cases/" + id + "/why": `"pausedKey":"lovelace"`} {
		require.Contains(t, get(plain, path).Body.String(), says, path)
		body := get(masked, path).Body.String()
		require.NotContains(t, body, "lovelace", path)
		require.Contains(t, body, "hidden", path)
	}
	require.Contains(t, get(plain, "/limits").Body.String(), "queueKey=lovelace")
	require.NotContains(t, get(masked, "/limits").Body.String(), "queueKey=")
	require.Equal(t, http.StatusSeeOther, submit(t, plain, "/act?kind=resume-queue&queue=mails", "queueKey", "lovelace").Code)
	o.Drain()
	require.Equal(t, "completed", o.stateOf(t, started.Case).String())
	require.NotContains(t, get(plain, "/api/v1/queues").Body.String(), "paused_keys")
}

// The case of a paused schedule waits for no time: a due time of many centuries would say that it does.
func TestWhatWaitsForNoTimeSaysSo(t *testing.T) {
	o := newPlant(t)
	h := o.handler(admin.Config{Access: as("eve")})
	require.NoError(t, schedules.Pause(t.Context(), o.Engine.Engine, "a/b 100%"))
	o.Drain()
	var waiting []*state.Job
	require.NoError(t, o.View(t.Context(), func(r store.Reader) (err error) {
		waiting, err = r.Jobs(t.Context(), store.JobFilter{Workflow: schedules.Name, States: []state.JobState{state.JobPending}})
		return err
	}))
	require.Len(t, waiting, 1)
	of := "/cases/" + waiting[0].Case.String()
	for _, path := range []string{"/jobs", "/jobs/" + waiting[0].ID.String(), of + "?tab=jobs"} {
		page := get(h, path).Body.String()
		require.NotContains(t, page, "9999", path)
		require.Contains(t, page, ">no time<", path)
	}
	page := get(h, of).Body.String()
	require.NotContains(t, page, "9999")
	require.Contains(t, page, "the case goes on when a command gives it a time")
}

// The forms on a schedule say what they would start, and so does the API; nothing starts by that.
func TestWhatAFormOnAScheduleWouldStart(t *testing.T) {
	o := newPlant(t)
	h := o.handler(admin.Config{Access: as("eve")})
	form := func(kind string) string {
		return plainText(get(h, "/act?kind=schedule-"+kind+"&schedule=a%2Fb+100%25").Body.String())
	}
	require.Contains(t, form("run"), "a run of mail starts now")
	require.Contains(t, form("pause"), "no run starts from now on, also the tick of 20")
	require.Contains(t, form("remove"), "is dropped, and 0 ticks that wait")
	require.Contains(t, form("resume"), "it is not paused")
	newest, err := store.Newest(t.Context(), o, store.JournalFilter{})
	require.NoError(t, err)
	w := submit(t, h, "/act?kind=schedule-backfill&schedule=a%2Fb+100%25", "from", "2029-12-29", "to", "2029-12-31T23:00", "check", "1")
	require.Equal(t, http.StatusOK, w.Code, w.Body)
	require.Contains(t, plainText(w.Body.String()), "3 runs of mail, one after the other, but for ticks that have a run: 2029-12-29 08:00:00 CET, ")
	w = submit(t, h, "/act?kind=schedule-backfill&schedule=a%2Fb+100%25", "from", "yesterday", "to", "2029-12-31", "check", "1")
	require.Equal(t, http.StatusBadRequest, w.Code)
	w = commandTo(h, "/api/v1/schedules/a%2Fb%20100%25", `{"do":"backfill","from":"2029-12-29T00:00:00Z","to":"2029-12-31T23:00:00Z","dryRun":true}`)
	require.Equal(t, http.StatusOK, w.Code, w.Body)
	require.Contains(t, w.Body.String(), `"starts":["3 runs of mail, one after the other`)
	after, err := store.Newest(t.Context(), o, store.JournalFilter{})
	require.NoError(t, err)
	require.Equal(t, newest, after)
}
