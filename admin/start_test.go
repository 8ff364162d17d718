package admin_test

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/admin"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workflow"
)

// A case is started by a form, with a key, labels, a priority and a delay; it can be checked before, which starts
// nothing.
func TestACaseIsStartedByAForm(t *testing.T) {
	o := newPlant(t)
	h := o.handler(admin.Config{Access: as("eve"), Prefix: "/tasq"})
	const form = "/tasq/act?kind=start&workflow=mail"
	require.Contains(t, get(h, "/tasq/workflows/mail").Body.String(), strings.ReplaceAll(form, "&", "&amp;"))
	fields := []string{"payload", `"to ada"`, "businessKey", "M-1", "labels", "customer=ada\n\n region=north", "after", "2h", "priority", "7"}

	cases := func() (n int) {
		for _, err := range store.AllCases(t.Context(), o, store.CaseFilter{Workflow: "mail"}) {
			require.NoError(t, err)
			n++
		}
		return n
	}
	before := cases()
	checked := submit(t, h, form, append(fields, "check", "1")...)
	require.Equal(t, http.StatusOK, checked.Code, checked.Body)
	require.Contains(t, checked.Body.String(), "What it would change")
	require.Contains(t, checked.Body.String(), `value="M-1"`, "the form keeps what was typed")
	require.Equal(t, before, cases(), "a check starts nothing")

	w := submit(t, h, form, fields...)
	require.Equal(t, http.StatusSeeOther, w.Code, w.Body)
	require.Equal(t, before+1, cases())
	page := get(h, w.Header().Get("Location")).Body.String()
	for _, text := range []string{"M-1", "customer", "ada", "north", "eve"} {
		require.Contains(t, page, text)
	}
	o.Drain()
	require.Contains(t, get(h, "/tasq/cases?workflow=mail&key=M-1").Body.String(), "s-started", "it waits for its time")
	o.Advance(2 * time.Hour)
	o.Drain()
	require.Contains(t, get(h, "/tasq/cases?workflow=mail&key=M-1").Body.String(), "s-completed")

	again := submit(t, h, form, append(fields, "ifTaken", "return")...)
	require.Equal(t, http.StatusSeeOther, again.Code, again.Body)
}

// A case is started once for each day of a zone by the form, too.
func TestTheFormStartsOncePerDay(t *testing.T) {
	o := newPlant(t)
	h := o.handler(admin.Config{Access: as("eve")})
	fields := []string{"payload", `"to ada"`, "businessKey", "M-2", "per", "day", "zone", "Europe/Berlin", "start", "1"}
	first := submit(t, h, "/act?kind=start&workflow=mail", fields...)
	require.Equal(t, http.StatusSeeOther, first.Code, first.Body)
	again := submit(t, h, "/act?kind=start&workflow=mail", fields...)
	require.GreaterOrEqual(t, again.Code, 400)
	require.Contains(t, again.Body.String(), "M-2 20")
	o.Advance(24 * time.Hour)
	next := submit(t, h, "/act?kind=start&workflow=mail", fields...)
	require.Equal(t, http.StatusSeeOther, next.Code, next.Body)
}

// The form and the API let as many cases start in a window as the throttle allows; the API says when the next one may
// come.
func TestStartsAreThrottled(t *testing.T) {
	o := newPlant(t)
	h := o.handler(admin.Config{Access: as("eve")})
	fields := []string{"payload", `"to ada"`, "businessKey", "M-3", "throttle", "1", "window", "90s", "start", "1"}
	first := submit(t, h, "/act?kind=start&workflow=mail", fields...)
	require.Equal(t, http.StatusSeeOther, first.Code, first.Body)
	again := submit(t, h, "/act?kind=start&workflow=mail", fields...)
	require.Contains(t, again.Body.String(), "may start 1 times in 1m30s")
	require.Regexp(t, `(?s)id="error-businessKey">[^\n]*throttled`, again.Body.String())
	o.Advance(30 * time.Second)
	start := `{"kind":"start","workflow":"mail","payload":"to ada","businessKey":"M-3","throttle":1,"window":90000000000}`
	refused := command(h, start)
	require.Equal(t, http.StatusTooManyRequests, refused.Code)
	require.Equal(t, "60", refused.Header().Get("Retry-After"))
	require.Contains(t, refused.Body.String(), `"code":"throttled"`)
	o.Advance(time.Minute)
	next := command(h, start)
	require.Equal(t, http.StatusOK, next.Code, next.Body)
}

// What is wrong with a field of the form is said at that field, and nothing starts.
func TestTheFormNamesTheFieldThatIsWrong(t *testing.T) {
	o := newPlant(t)
	h := o.handler(admin.Config{Access: as("eve")})
	_, err := o.Do(t.Context(), workflow.Start("mail", []byte(`"a"`), workflow.BusinessKey("M-1"), workflow.IfTaken(workflow.Refuse), workflow.After(time.Hour)))
	require.NoError(t, err)
	for _, c := range []struct{ name, value, says string }{
		{"payload", `{"half":`, "this is not JSON"}, {"payload", `{"n":1}`, "string"}, {"labels", "ada", "name and value"}, {"labels", "a=1\na=2", "twice"},
		{"labels", "=1", "label"}, {"after", "soon", "90s, 5m"}, {"quiet", "soon", "90s, 5m"}, {"priority", "high", "is no number"},
		{"throttle", "few", "is no number"}, {"window", "soon", "90s, 5m"}, {"ifTaken", "dance", "there is no"},
		{"per", "year", "there is no"}, {"zone", "Europe/Atlantis", "Atlantis"},
		{"businessKey", "M-1", "M-1"},
	} {
		for _, button := range []string{"check", "start"} {
			fields := []string{c.name, c.value, button, "1"}
			if c.name != "payload" {
				fields = append(fields, "payload", `"b"`)
			}
			if c.name == "businessKey" {
				fields = append(fields, "ifTaken", "refuse")
			}
			w := submit(t, h, "/act?kind=start&workflow=mail", fields...)
			require.GreaterOrEqual(t, w.Code, 400, "%s %s", c.name, c.value)
			page := w.Body.String()
			require.Contains(t, page, `name="`+c.name+`"`)
			require.Regexp(t, `(?s)id="error-`+c.name+`">[^\n]*`+c.says, page, "%s %s", c.name, c.value)
			require.Regexp(t, `name="`+c.name+`"[^>]* aria-invalid="true" aria-describedby="error-`+c.name+`"`, page)
		}
	}
	refused := post(o.handler(admin.Config{Access: admin.ReadOnly}), "/act", "kind", "start", "workflow", "mail", "payload", `"b"`, "check", "1")
	require.Equal(t, http.StatusForbidden, refused.Code, "a check needs the right to the command")
}

// Whatever is chosen in the form of a start, a double click starts one case, and to go back and send it again starts
// none, also when what was chosen has had its time.
func TestTheFormOfAStartSentTwiceStartsOneCase(t *testing.T) {
	chosen := map[string]url.Values{
		"labels":    {"labels": {"customer=ada"}, "priority": {"7"}},
		"later":     {"after": {"2m"}},
		"once":      {"per": {"day"}, "zone": {"Europe/Berlin"}},
		"debounced": {"ifTaken": {"debounce"}, "quiet": {"1m"}, "longest": {"2m"}},
		"throttled": {"throttle": {"1"}, "window": {"1m"}},
		"last":      {"throttle": {"1"}, "window": {"1m"}, "ifTaken": {"return"}},
	}
	for _, taken := range []workflow.Taken{workflow.Refuse, workflow.Return, workflow.Replace, workflow.Supersede, workflow.Queued} {
		chosen[string(taken)] = url.Values{"ifTaken": {string(taken)}}
	}
	for name, more := range chosen {
		t.Run(name, func(t *testing.T) {
			o := newTown(t, "text")
			h := o.handler(admin.Config{Access: as("eve")})
			form := "/act?kind=start&workflow=bill"
			sheets := crawled{form: get(h, form).Body.String()}.sheets()
			s := sheets[slices.IndexFunc(sheets, func(s *sheet) bool { return s.fields.Get("kind") == "start" })]
			for field := range more {
				require.Contains(t, s.fields, field, "the form has the field")
			}
			more.Set("businessKey", "B-"+name)
			s.more = more
			bills := func() (n int) {
				for _, err := range store.AllCases(t.Context(), o, store.CaseFilter{Workflow: "bill"}) {
					require.NoError(t, err)
					n++
				}
				return n
			}
			before := bills()
			require.Empty(t, o.sendTwice(t, h, s))
			require.Equal(t, before+1, bills())
			o.Advance(48 * time.Hour)
			require.Empty(t, o.sendTwice(t, h, s))
			require.Equal(t, before+1, bills())
		})
	}
}
