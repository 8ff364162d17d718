package admin_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/admin"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/internal/testsize"
	"github.com/tasq-dev/tasq/workflow"
)

// Without Access no one gets anything, and the answer says what to set.
func TestHandlerRefusesAllUntilAccessIsSet(t *testing.T) {
	o := newOffice(t, "text")
	h := o.handler(admin.Config{})
	for _, path := range append(o.paths(t), "/live?page=/", "/act?kind=cancel&case="+o.claim.String(), "/assets/style.css") {
		w := get(h, path)
		require.Equal(t, http.StatusForbidden, w.Code, path)
		require.Contains(t, w.Body.String(), "Config.Access", path)
	}
	require.Equal(t, http.StatusForbidden, post(h, "/act", "kind", "cancel", "case", o.claim.String()).Code)
}

// A backend that is nil is found as the pages are mounted, and not at the first request.
func TestPagesOfNothing(t *testing.T) {
	for _, b := range []admin.Backend{nil, (*engine.Engine)(nil)} {
		require.PanicsWithValue(t, "admin.Handler: the backend is nil: give the engine that engine.Open returned, and look at its error first, or admin.Reading of a store",
			func() { admin.Handler(b, admin.Config{}) })
	}
	require.PanicsWithValue(t, "admin.Reading: the store is nil: give one that is open, and look at the error of its opening first", func() { admin.Reading(nil, nil) })
}

// Every page and answer is there under every prefix, for those who may look and those who may act, with the headers of all. The usual form has each prefix
// with one of the users.
func TestEveryPathUnderEveryPrefix(t *testing.T) {
	o := newOffice(t, "text")
	accesses := map[string]func(*http.Request) (admin.User, error){"look": admin.ReadOnly, "act": admin.AllowAll, "ann": as("ann")}
	for i, prefix := range []string{"", "/tasq", "/a/b/"} {
		for j, name := range []string{"look", "act", "ann"} {
			if i != j && !testsize.Long() {
				continue
			}
			access := accesses[name]
			h := o.handler(admin.Config{Prefix: prefix, Access: access})
			before := strings.TrimRight(prefix, "/")
			for _, path := range o.paths(t) {
				w := get(h, before+path)
				if strings.HasPrefix(path, "/search?q=cla") {
					require.Equal(t, http.StatusSeeOther, w.Code)
					require.Equal(t, before+"/workflows/claim", w.Header().Get("Location"))
					continue
				}
				require.Equal(t, http.StatusOK, w.Code, "%s %s: %s", name, path, w.Body)
				for name, value := range everyHeader {
					require.Equal(t, value, w.Header().Get(name), "%s of %s", name, path)
				}
				checkLinks(t, h, before, path, w)
			}
		}
	}
}

// everyHeader are the headers of every page and answer, whole: a source that is added to the policy, such as 'unsafe-inline', is as bad as no policy.
var everyHeader = map[string]string{
	"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
	"X-Content-Type-Options":  "nosniff", "Referrer-Policy": "no-referrer", "Cache-Control": "private, no-store",
	"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin", "Access-Control-Allow-Origin": "",
}

var links = regexp.MustCompile(` (?:href|action|src)="([^"#]*)`)

// checkLinks follows the links of a page: all lead into the pages, and to something that is there.
func checkLinks(t *testing.T, h http.Handler, prefix, path string, w *httptest.ResponseRecorder) {
	t.Helper()
	if !strings.HasPrefix(w.Header().Get("Content-Type"), "text/html") {
		return
	}
	require.NotContains(t, w.Body.String(), "<style", path)
	require.NotRegexp(t, ` style="| on[a-z]+="`, w.Body.String(), path)
	for _, m := range links.FindAllStringSubmatch(w.Body.String(), -1) {
		to := strings.ReplaceAll(m[1], "&amp;", "&")
		if to == "" {
			continue
		}
		require.True(t, strings.HasPrefix(to, prefix+"/"), "%s links to %s", path, to)
		if seen[to] || to == prefix+"/presets" { // no page, forms are sent there
			continue
		}
		seen[to] = true
		code := get(h, to).Code
		require.Contains(t, []int{http.StatusOK, http.StatusSeeOther}, code, "%s links to %s", path, to)
	}
}

var seen = make(map[string]bool)

// A change must come from a page of the same origin, whatever its route is: a page elsewhere cannot use the rights of who looks at it.
func TestChangesComeFromTheSameOrigin(t *testing.T) {
	o := newOffice(t, "text")
	h := o.handler(admin.Config{Access: as("ann")})
	changes := 0
	for _, pattern := range admin.Patterns(o.Engine.Engine, admin.Config{}) {
		path, ok := strings.CutPrefix(pattern, "POST ")
		if !ok {
			continue
		}
		changes++
		for name, value := range map[string]string{"Sec-Fetch-Site": "cross-site", "Origin": "https://elsewhere.example"} {
			r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(`{"kind":"cancel","case":"`+o.claim.String()+`"}`))
			r.Header.Set(name, value)
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			require.Equal(t, http.StatusForbidden, w.Code, "%s with %s: %s", path, name, value)
			require.Contains(t, w.Body.String(), "a change must come from a page of this server", path)
		}
	}
	require.Greater(t, changes, 5)
	require.Equal(t, "started", o.stateOf(t, o.claim).String())
}

func TestHostsThatAreNotServed(t *testing.T) {
	h := newOffice(t, "text").handler(admin.Config{Access: admin.ReadOnly, Hosts: []string{"tasq.example.org", "127.0.0.1", "::1"}})
	for host, code := range map[string]int{"tasq.example.org": 200, "TASQ.example.org:8080": 200, "127.0.0.1:7070": 200, "[::1]:7070": 200,
		"evil.example.com": 421, "tasq.example.org.evil.com": 421, "": 421} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Host = host
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		require.Equal(t, code, w.Code, host)
	}
}

// values are those of attributes, and tags what is left of the markup.
var (
	values = regexp.MustCompile(`="[^"]*"`)
	tags   = regexp.MustCompile(`<([A-Za-z][A-Za-z0-9]*)[^>]*>`)
	known  = strings.Fields(`html head meta title link script body a header svg circle nav b span form label input kbd div button small main p section h1 h2 h3
		ul ol li table thead tbody tr th td time code details summary select option footer dl dt dd pre g path rect text desc progress textarea i`)
)

// Whatever is stored is shown as text: nothing of it becomes markup, in any field of any page. The usual form tries
// each third text.
func TestHostileTextIsShownAsText(t *testing.T) {
	for i, text := range []string{`"><script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, `</pre></td><svg onload=alert(1)>`, `' onmouseover='alert(1)`,
		`{{.}}{{template "x"}}`, "\u202egnp.exe", "javascript:alert(1)", `=HYPERLINK("http://evil")`} {
		if i%testsize.Pick(3, 1, 1) != 0 {
			continue
		}
		o := newOffice(t, text)
		h := o.handler(admin.Config{Access: as(text)})
		for _, path := range o.paths(t) {
			w := get(h, path)
			if !strings.HasPrefix(w.Header().Get("Content-Type"), "text/html") || w.Code != http.StatusOK {
				continue
			}
			page := w.Body.String()
			bare := values.ReplaceAllString(page, `=""`)
			for _, tag := range tags.FindAllStringSubmatch(bare, -1) {
				require.Contains(t, known, tag[1], "%s has a tag %s", path, tag[0])
				require.NotRegexp(t, `(?i)\son[a-z]+=|\sstyle=`, tag[0], path)
			}
			require.Equal(t, 1, strings.Count(bare, "<script"), "%s has a script that is not its own: text became markup", path)
			require.NotRegexp(t, `(?:href|src|action)="(?:[^/#]|//)`, page, path)
		}
	}
}

// anySeen is where the changes of a page begin, with a random word.
var anySeen = regexp.MustCompile(`\?seen=[0-9a-z]+`)

// What a user may not see is shown nowhere: in pages, in the history, in answers of the API.
func TestMaskedPayloads(t *testing.T) {
	o := newOffice(t, "text")
	h := o.handler(admin.Config{Access: as("ann"), Show: func(u admin.User, _, _ string, raw json.RawMessage) json.RawMessage {
		require.Equal(t, "ann", u.Name)
		return json.RawMessage(strings.ReplaceAll(string(raw), "iban", "masked"))
	}})
	masked := 0
	for _, path := range o.paths(t) {
		page := anySeen.ReplaceAllString(get(h, path).Body.String(), "")
		require.NotContains(t, page, "iban", path)
		masked += strings.Count(page, "masked")
	}
	require.Greater(t, masked, 20)
}

// Business keys and labels are masked as payloads are, in pages and answers, also where a function of the program
// returns no text.
func TestMaskedKeysAndLabels(t *testing.T) {
	o := newOffice(t, "text")
	started, err := o.Do(t.Context(), workflow.Start("bill", nil, workflow.BusinessKey("C-4711"), workflow.Label("customer", "lovelace"), workflow.Label("region", "north")))
	require.NoError(t, err)
	show := func(_ admin.User, kind, name string, raw json.RawMessage) json.RawMessage {
		switch {
		case kind == "key" && name == "bill" && string(raw) == `"C-4711"`:
			return json.RawMessage(`"C-****"`)
		case kind == "label" && name == "customer":
			return json.RawMessage(`{"hidden":true}`)
		}
		return raw
	}
	id := started.Case.String()
	plain, masked := o.handler(admin.Config{Access: admin.ReadOnly}), o.handler(admin.Config{Access: admin.ReadOnly, Show: show})
	for _, path := range []string{"/cases/" + id, "/cases/" + id + "?tab=history", "/api/v1/cases/" + id, "/api/v1/cases?key=C-4711", "/api/v1/cases/" + id + "/history",
		"/api/v1/cases?workflow=bill&format=csv"} {
		body := get(plain, path).Body.String()
		for _, text := range []string{"C-4711", "lovelace", "north"} {
			require.Contains(t, body, text, path)
		}
		body = strings.ReplaceAll(get(masked, path).Body.String(), "key=C-4711", "")
		require.NotContains(t, body, "C-4711", path)
		require.NotContains(t, body, "lovelace", path)
		require.Contains(t, body, "C-****", path)
		require.Contains(t, body, "hidden", path)
		require.Contains(t, body, "north", path)
	}
}

// The pages of what is not there, and of what cannot be understood, say so.
func TestPagesOfErrors(t *testing.T) {
	h := newOffice(t, "text").handler(admin.Config{Access: admin.ReadOnly})
	const none = "01999999-9999-7999-8999-999999999999"
	for path, code := range map[string]int{"/cases/" + none: 404, "/cases/nix": 404, "/items/" + none: 404, "/jobs/" + none: 404, "/workflows/none": 404,
		"/cases?state=nix": 400, "/items?case=00000000-0000-0000-0000-000000000000": 400, "/items?older=yesterday": 400, "/jobs?kind=x": 400, "/cases?cursor=x": 400, "/cases?workflow=%00": 400, "/cases/" + none + "?at=x": 404,
		"/search?q=%00": 400, "/api/v1/cases/" + none: 404, "/api/v1/cases?nix=1": 400, "/api/v1/items?state=x": 400, "/api/v1/cases/nix": 404} {
		w := get(h, path)
		require.Equal(t, code, w.Code, "%s: %s", path, w.Body)
		if strings.HasPrefix(path, "/api/") {
			require.Equal(t, "application/problem+json", w.Header().Get("Content-Type"))
			var p struct{ Code, Detail string }
			require.NoError(t, json.Unmarshal(w.Body.Bytes(), &p))
			require.Contains(t, []string{"not-found", "bad-parameter"}, p.Code)
			require.NotEmpty(t, p.Detail)
		}
	}
}

// The audit lists what has a name page by page, each entry once, the newest first, and of one user if asked.
func TestTheAuditPageByPage(t *testing.T) {
	o := newOffice(t, "text")
	for i := range 60 {
		_, err := o.Do(t.Context(), workflow.Start("bill", []byte(`{}`), workflow.By([]string{"ada", "bob"}[i%2])))
		require.NoError(t, err)
	}
	h := o.handler(admin.Config{Access: admin.ReadOnly})
	entry := regexp.MustCompile(`tab=history">(\d+)</a>`)
	next := regexp.MustCompile(`rel="next" href="([^"]+)"`)
	for query, want := range map[string]int{"": 76, "?by=ada": 30, "?by=unknown": 0} {
		var all []int
		for path := "/audit" + query; path != ""; {
			page := get(h, path).Body.String()
			for _, m := range entry.FindAllStringSubmatch(page, -1) {
				n, err := strconv.Atoi(m[1])
				require.NoError(t, err)
				all = append(all, n)
			}
			path = ""
			if m := next.FindStringSubmatch(page); m != nil {
				path = strings.ReplaceAll(m[1], "&amp;", "&")
			}
		}
		require.Len(t, all, want, query)
		require.True(t, slices.IsSortedFunc(all, func(a, b int) int { return b - a }), all)
		slices.Sort(all)
		require.Len(t, slices.Compact(all), want, query)
	}
}

// The doctor reports live cases whose definition the program does not have.
func TestTheDoctorMissesADefinition(t *testing.T) {
	o := newOffice(t, "text")
	h := o.handler(admin.Config{Access: admin.ReadOnly})
	require.Contains(t, get(h, "/doctor").Body.String(), "each live case has its own in this program")
	var without []engine.Workflow
	for _, w := range workflows(t, likely) {
		if w.Untyped().Name != "order" {
			without = append(without, w)
		}
	}
	o.Crash(append(without, o.bulk)...)
	page := get(o.handler(admin.Config{Access: admin.ReadOnly}), "/doctor").Body.String()
	require.Contains(t, page, "workflow order")
	require.Contains(t, page, "1 live case of a definition that this program does not have")
}

// Ids of cases, work items and jobs look alike. The address of one with the id of another is not there.
func TestAnAddressWithTheIDOfAnotherKindIsNotThere(t *testing.T) {
	o := newOffice(t, "text")
	h := o.handler(admin.Config{Access: as("ann")})
	var ids []string
	for _, path := range o.paths(t) {
		if kind, id, found := strings.Cut(strings.TrimPrefix(path, "/"), "/"); found && len(id) == 36 && (kind == "items" || kind == "jobs") {
			ids = append(ids, id)
		}
	}
	require.Len(t, ids, 2)
	for _, id := range ids {
		for _, path := range []string{"/cases/%s", "/cases/%s?entry=1", "/cases/%s?tab=history", "/api/v1/cases/%s", "/api/v1/cases/%s?at=1",
			"/api/v1/cases/%s/why", "/api/v1/cases/%s/history", "/api/v1/cases?case=%s", "/cases?case=%s", "/api/v1/stream?root=%s"} {
			at := fmt.Sprintf(path, id)
			require.Equal(t, http.StatusNotFound, get(h, at).Code, at)
		}
	}
	for _, path := range []string{"/items/%s", "/jobs/%s", "/api/v1/items/%s", "/api/v1/jobs/%s"} {
		at := fmt.Sprintf(path, o.claim)
		require.Equal(t, http.StatusNotFound, get(h, at).Code, at)
	}
}
