package admin_test

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/admin"
	"github.com/tasq-dev/tasq/store"
)

// typed are what is typed into the fields of forms that must be filled in, and where what stands there would be refused.
var typed = map[string]string{"event": "paid", "from": "2029-12-29", "to": "2029-12-31", "payload": `{}`, "name": "mine"}

// fill types what a person would.
func (s *sheet) fill(v url.Values) {
	for _, name := range s.empty {
		v.Set(name, typed[name])
	}
	if v.Has("confirm") {
		n := regexp.MustCompile(`Type the number (\d+)`).FindStringSubmatch(s.note)
		id := v.Get("case")
		if n != nil {
			v.Set("confirm", n[1])
		} else if id != "" {
			v.Set("confirm", id[len(id)-4:])
		}
	}
	if v.Has("reason") {
		v.Set("reason", "a test")
	}
	if v.Has("number") {
		v.Set("number", "9")
	}
	switch v.Get("kind") {
	case "start": // what is chosen of its selections needs other fields
		for name := range v {
			if !slices.Contains([]string{"kind", "key", "workflow", "payload"}, name) {
				v.Del(name)
			}
		}
		v.Set("payload", typed["payload"])
	case "resume": // a suspended case keeps its retry policy, so the first choice of a selection would be refused
		v.Del("backoff")
		v.Del("jitter")
	case "redrive", "retry": // empty keeps the input that it had
	case "item-complete": // the items that can be completed are of tasks that give a text, or anything
		v.Set("payload", `"text"`)
	case "skip": // the items that can be skipped are of functions that give a number, or of tasks that give anything
		v.Set("payload", "1")
	default:
		if v.Has("payload") {
			v.Set("payload", typed["payload"])
		}
	}
	for name := range s.more {
		v.Set(name, s.more.Get(name))
	}
}

// effects is how much the user has done: entries of the journal, and how many have each idempotency key. What schedules do in the background
// is not counted.
func (o *office) effects(t *testing.T) (n int, keys map[string]int) {
	t.Helper()
	o.Drain()
	keys = make(map[string]int)
	for e, err := range store.AllEntries(t.Context(), o, store.JournalFilter{}) {
		require.NoError(t, err)
		if e.By == "eve" {
			n++
		}
		keys[e.Key]++
	}
	return n, keys
}

// Every form of the pages does one thing when it is sent by a double click, and again after going back; each needs no script. Forms are found by
// links, so that a new one is tried too.
func TestEveryFormSentTwiceDoesOneThing(t *testing.T) {
	done, wanted := make(map[string]bool), make(map[string]bool)
	for everything := true; ; {
		o := newTown(t, "text")
		h := o.handler(admin.Config{Access: as("eve")})
		refused, progress := make(map[string]string), false
		// The first round looks at all forms. The others look for one of each kind that was refused in the rounds before, and if these are
		// refused too, as those of a suspended case are, at all forms again.
		missing := maps.Clone(wanted)
		maps.DeleteFunc(missing, func(kind string, _ bool) bool { return done[kind] })
		for _, s := range crawlTo(t, h, allForms, func(page crawled) bool {
			for _, s := range page.sheets() {
				delete(missing, s.kind())
			}
			return !everything && len(missing) == 0
		}).allSheets() { // one of a suspended case is refused, and another of its kind is not
			if s.method != "post" || s.to == "/presets" || done[s.kind()] { // presets are stored in the browser
				continue
			}
			wanted[s.kind()] = true
			if refused[s.kind()] = o.sendTwice(t, h, s); refused[s.kind()] == "" {
				delete(refused, s.kind())
				done[s.kind()], progress = true, true
			}
		}
		if len(done) == len(wanted) && len(refused) == 0 {
			break
		}
		require.True(t, progress || !everything, "forms that are refused also as the first thing that is done: %v", refused)
		everything = !progress
	}
	for _, kind := range strings.Fields("move retry-incident set-limit pause-queue resume-queue suspend-workflow schedule-pause schedule-backfill start restart fork redrive remove item-reset") {
		require.True(t, done["post /act "+kind], "%s: no page leads to its form", kind)
	}
	for _, kind := range strings.Fields("retry retry-incident skip give-up resume suspend cancel") {
		require.True(t, done["post /bulk "+kind], "%s: no page leads to its form", kind)
	}
}

// sendTwice sends a form by a double click, and a third time; it returns what is said if the form is refused.
func (o *office) sendTwice(t *testing.T, h http.Handler, s *sheet) string {
	t.Helper()
	var answers [3]string
	var both sync.WaitGroup
	send := func(i int) {
		w := s.sent(h, s.fill)
		if answers[i] = w.Header().Get("Location"); w.Code != http.StatusSeeOther {
			answers[i] = fmt.Sprint(w.Code, " ", plainText(w.Body.String()))
		}
	}
	for i := range 2 {
		both.Go(func() { send(i) })
	}
	both.Wait()
	if !strings.HasPrefix(answers[0], "/") && !strings.HasPrefix(answers[1], "/") {
		return answers[0]
	}
	first, keys := o.effects(t)
	send(2)
	require.Equal(t, []string{answers[0], answers[0]}, answers[1:], s.kind())
	if key := s.fields.Get("key") + s.fields.Get("once"); key != "" {
		require.LessOrEqual(t, keys[key], 1, s.kind())
	} else {
		require.Equal(t, "post /doctor doctor", s.kind(), "it changes nothing, so it needs no key")
	}
	again, _ := o.effects(t)
	require.Equal(t, first, again, "%s: the third time had an effect", s.kind())
	require.Equal(t, http.StatusOK, get(h, answers[0]).Code, answers[0])
	return ""
}

// A field or a filter that takes one value is refused with two: the one that is taken would be a matter of order.
func TestAFieldIsGivenOneValue(t *testing.T) {
	o := newOffice(t, "text")
	o.bills(t, 2)
	h := o.handler(admin.Config{Access: as("eve")})
	const retry, cancel = "/bulk?kind=retry&workflow=bill&code=no-funds", "/act?kind=cancel&case="
	before := o.last(t)
	for _, refused := range []*httptest.ResponseRecorder{get(h, "/items?code=a&code=b"), get(h, "/bulk?kind=retry&code=no-funds&code=b"),
		submit(t, h, retry, "confirm", "3", "reason", "a", "reason", "b"), submit(t, h, retry, "confirm", "3", "workflow", "claim"),
		submit(t, h, cancel+o.claim.String(), "reason", "a", "reason", "b"), submit(t, h, cancel+o.claim.String(), "case", o.failed.String()),
		post(h, "/presets", "name", "a", "name", "b", "path", "/cases", "query", "state=failed")} {
		require.Equal(t, http.StatusBadRequest, refused.Code, refused.Body)
		require.Regexp(t, `takes one value, and is given 2 times`, refused.Body)
	}
	require.Equal(t, before, o.last(t), "nothing is done")
	require.Equal(t, http.StatusOK, get(h, "/cases?state=failed&state=canceled&label=a=1&label=b=2").Code)
	require.Equal(t, http.StatusSeeOther, submit(t, h, retry, "confirm", "3").Code)
}
