package admin_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/admin"
	"github.com/tasq-dev/tasq/internal/testsize"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
)

// bodies are commands that programs send, one of each kind at least, without their closing brace.
func (o *office) bodies(t testing.TB) []string {
	t.Helper()
	item, job := o.Item(o.claim, "withdraw").ID, ""
	for j, err := range store.AllJobs(t.Context(), o, store.JobFilter{States: []state.JobState{state.JobFailed}}) {
		require.NoError(t, err)
		job = j.ID.String()
	}
	require.NotEmpty(t, job)
	of := func(format string, args ...any) string { return fmt.Sprintf(`{"kind":`+format, args...) }
	return []string{of(`"start","workflow":"order","input":"x"`), of(`"start","workflow":"bill","payload":{},"businessKey":"B-1","ifTaken":"return"`),
		of(`"item","item":"%s","action":"start"`, item), of(`"item","item":"%s","action":"cancel","reason":{"code":"x"}`, item),
		of(`"add-item","case":"%s","task":"assess"`, o.claim), of(`"suspend","case":"%s"`, o.claim), of(`"resume","case":"%s"`, o.failed),
		of(`"cancel","case":"%s"`, o.bill), of(`"send","case":"%s","event":"more","payload":1`, o.order), of(`"token","token":"x","payload":1`),
		of(`"broadcast","event":"topic","payload":1`), of(`"restart","case":"%s"`, o.failed), of(`"reclaim","job":"%s"`, job),
		of(`"move","case":"%s","from":"open","to":"open"`, o.claim), of(`"retry","item":"%s"`, item), of(`"skip","item":"%s"`, item),
		of(`"give-up","item":"%s"`, item), of(`"retry-incident","job":"%s"`, job), of(`"fork","case":"%s","seq":3`, o.claim),
		of(`"set-limit","limit":"customers","n":5`), of(`"forget-limit","limit":"customers"`), of(`"limits"`), of(`"queues"`), of(`"pause-queue","queue":"q"`), of(`"resume-queue","queue":"q"`),
		of(`"suspend-workflow","workflow":"absent","reason":{"message":"x"}`), of(`"resume-workflow","workflow":"absent"`),
		of(`"redrive","case":"%s"`, o.failed), of(`"remove","case":"%s"`, o.failed)}
}

// asks sends a body to the API. A refusal is a problem, and changes nothing.
func (o *office) asks(t testing.TB, h http.Handler, path, body string, header ...string) {
	t.Helper()
	before := o.last(t)
	w := commandTo(h, path, body, header...)
	sound(t, w, append(header, path, body)...)
	if w.Code >= 400 {
		require.Equal(t, before, o.last(t), "%s: %.200q with %.200q is refused and has an effect", path, body, header)
		require.Contains(t, w.Header().Get("Content-Type"), "problem+json")
	}
}

// Whatever stands in the field of a command, or as the whole body, the command is executed or refused with a problem that changes nothing.
func TestGarbageInCommandsOfTheAPI(t *testing.T) {
	o := newTown(t, "text")
	h := o.handler(admin.Config{Access: as("eve")})
	names := make(url.Values)
	for name := range describedBy(t, h).Components.Schemas["Command"].Properties {
		names[name] = nil
	}
	n, field := 0, 0
	for _, body := range o.bodies(t) {
		for _, name := range sortedNames(names) {
			if field++; field%testsize.Pick(5, 2, 1) != 0 {
				continue
			}
			n++
			for _, bad := range some(o.garbage(t), n) {
				for _, value := range []string{bad, quoted(t, bad)} {
					o.asks(t, h, "/api/v1/commands", body+`,"`+name+`":`+value+`}`)
				}
			}
			o.Drain()
		}
	}
	for _, bad := range o.garbage(t) {
		o.asks(t, h, "/api/v1/commands", bad)
		o.asks(t, h, "/api/v1/schedules/paused", bad)
		o.asks(t, h, "/api/v1/commands", quoted(t, bad))
	}
}

func quoted(t testing.TB, s string) string {
	t.Helper()
	text, err := json.Marshal(s)
	require.NoError(t, err)
	return string(text)
}

// What follows the command in a body is not left out.
func TestOneBodyIsOneCommand(t *testing.T) {
	o := newTown(t, "text")
	h := o.handler(admin.Config{Access: as("eve")})
	for path, body := range map[string]string{"/api/v1/commands": `{"kind":"suspend","case":"` + o.claim.String() + `"}`, "/api/v1/schedules/paused": `{"do":"resume"}`} {
		before := o.last(t)
		for _, more := range []string{"x", body, "}", "null"} {
			w := commandTo(h, path, body+more)
			require.Equal(t, http.StatusBadRequest, w.Code, "%s: %s%s", path, body, more)
		}
		require.Equal(t, before, o.last(t))
		require.Equal(t, http.StatusOK, commandTo(h, path, body+" \n").Code)
	}
	w := commandTo(h, "/api/v1/schedules/paused", `{"do":"backfill","form":"2029-12-29T00:00:00Z"}`)
	require.Equal(t, http.StatusBadRequest, w.Code)
	require.Contains(t, w.Body.String(), "form", "a field that there is not is named")
}

// Whatever stands in a command on a schedule, it is executed or refused, and what is refused changes nothing.
func TestGarbageInCommandsOnSchedules(t *testing.T) {
	o := newTown(t, "text")
	h := o.handler(admin.Config{Access: as("eve")})
	for _, do := range []string{`{"do":"pause"`, `{"do":"resume"`, `{"do":"run"`, `{"do":"backfill","from":"2029-12-29T00:00:00Z","to":"2029-12-31T00:00:00Z"`, `{"do":"remove"`} {
		for i, name := range []string{"do", "reason", "from", "to", "other"} {
			for _, bad := range some(o.garbage(t), i) {
				for _, value := range []string{bad, quoted(t, bad)} {
					o.asks(t, h, "/api/v1/schedules/paused", do+`,"`+name+`":`+value+`}`)
				}
				o.Drain()
			}
		}
	}
	for _, bad := range o.garbage(t) {
		o.asks(t, h, "/api/v1/schedules/"+url.PathEscape(bad), `{"do":"pause"}`)
	}
}

// Whatever is an idempotency key, in the header or in the body, a command is executed once with it or refused.
func TestGarbageAsIdempotencyKey(t *testing.T) {
	o := newTown(t, "text")
	h := o.handler(admin.Config{Access: as("eve")})
	for i, bad := range o.garbage(t) {
		key := []string{"Idempotency-Key", bad}
		send := fmt.Sprintf(`{"kind":"send","case":"%s","event":"more","payload":%d}`, o.order, i)
		o.asks(t, h, "/api/v1/commands", send, key...)
		before := o.last(t)
		o.asks(t, h, "/api/v1/commands", send, key...)
		if bad != "" {
			require.Equal(t, before, o.last(t), "%.100q is done twice", bad)
			o.asks(t, h, "/api/v1/commands", `{"kind":"pause-queue","queue":"q"}`, key...)
			require.Equal(t, before, o.last(t), "%.100q is the key of another command", bad)
		}
		o.asks(t, h, "/api/v1/schedules/paused", `{"do":"resume"}`, key...)
	}
	o.Drain()
}

// opened is an answer without an end: the client goes once it has begun.
type opened struct {
	*httptest.ResponseRecorder
	leave context.CancelFunc
}

// Flush implements http.Flusher.
func (w *opened) Flush() { w.leave() }

// Whatever a client says about where it was, the stream begins or is refused with a problem.
func TestGarbageForTheStream(t *testing.T) {
	o := newTown(t, "text")
	h := o.handler(admin.Config{Access: as("eve")})
	ask := func(address, last string) *httptest.ResponseRecorder {
		ctx, leave := context.WithCancel(t.Context())
		defer leave()
		r := httptest.NewRequestWithContext(ctx, http.MethodGet, address, nil)
		r.Header.Set("Last-Event-ID", last)
		w := &opened{httptest.NewRecorder(), leave}
		h.ServeHTTP(w, r)
		sound(t, w.ResponseRecorder, address, last)
		return w.ResponseRecorder
	}
	for _, bad := range o.garbage(t) {
		for _, name := range []string{"root", "after", "other"} {
			ask("/api/v1/stream?"+url.Values{name: {bad}}.Encode(), "")
		}
		ask("/api/v1/stream", bad)
	}
	require.Equal(t, http.StatusOK, ask("/api/v1/stream", "9223372036854775807").Code)
	require.Equal(t, http.StatusBadRequest, ask("/api/v1/stream", "-1").Code)
	require.Equal(t, http.StatusBadRequest, ask("/api/v1/stream?after=-1", "").Code)
	require.Equal(t, http.StatusBadRequest, ask("/api/v1/stream?root=00000000-0000-0000-0000-000000000000", "").Code)
	require.Equal(t, http.StatusNotFound, ask("/api/v1/stream?root=ffffffff-ffff-ffff-ffff-ffffffffffff", "").Code)
}

// A method that an address of the API does not have is refused with a problem, too.
func TestMethodsOfTheAPI(t *testing.T) {
	o := newTown(t, "text")
	h := o.handler(admin.Config{Access: as("eve")})
	for address, want := range map[string]int{"/api/v1/items": http.StatusMethodNotAllowed, "/api/v1/schedules/": http.StatusNotFound, "/api/v1/none": http.StatusNotFound} {
		w := commandTo(h, address, `{}`)
		require.Equal(t, want, w.Code, address)
		sound(t, w, address)
		require.Equal(t, want == http.StatusMethodNotAllowed, w.Header().Get("Allow") == "GET, HEAD", address)
	}
}
