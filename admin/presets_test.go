package admin_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/admin"
)

// A list has the presets of every program and those of this one. Each leads to rows, or says that nothing matches; the page of a preset drops it.
func TestPresetsOfLists(t *testing.T) {
	o := newOfficeOf(t, likely)
	h := o.handler(admin.Config{Access: admin.ReadOnly, Prefix: "/tasq", Presets: []admin.Preset{{Name: "failed <bills>", Path: "/cases", Query: "workflow=bill&state=failed"}}})
	followed := 0
	for _, path := range []string{"/cases", "/items", "/jobs", "/steps", "/events", "/incidents", "/audit"} {
		page := get(h, "/tasq"+path).Body.String()
		_, bar, found := strings.Cut(page, `aria-label="Saved filters">`)
		require.True(t, found, path)
		bar, _, _ = strings.Cut(bar, "</nav>")
		for _, a := range anchors.FindAllStringSubmatch(bar, -1) {
			w := get(h, attribute(a[1], "href"))
			require.Equal(t, http.StatusOK, w.Code)
			require.NotContains(t, w.Body.String(), "is no filter of this list", a[0])
			require.Contains(t, w.Body.String(), `<a class="chip" href="/tasq`+path+`" aria-current="true">`, a[0])
			require.NotContains(t, w.Body.String(), "Save this filter", "it has a name already")
			followed++
		}
	}
	require.Equal(t, 13, followed)
	require.Contains(t, get(h, "/tasq/cases").Body.String(), `href="/tasq/cases?workflow=bill&amp;state=failed">failed &lt;bills&gt;</a>`)
	o.Advance(25 * 3600e9)
	old := get(h, "/tasq/cases?state=started&older=1d").Body.String()
	require.Contains(t, old, o.claim.String(), "started over a day ago")
	for _, p := range []admin.Preset{{Path: "/cases", Query: "a=b"}, {Name: "x", Path: "/stats", Query: "a=b"}, {Name: "x", Path: "/cases"}, {Name: "x", Path: "/cases", Query: "a=%zz"},
		{Name: strings.Repeat("ä", 41), Path: "/cases", Query: "a=b"}} {
		require.Error(t, p.Check())
		require.Panics(t, func() { o.handler(admin.Config{Presets: []admin.Preset{p}}) })
	}
}

// A user saves the filter of a list under a name, also without a script: it is a link on the list, in this browser alone, until it is removed.
func TestAUserSavesAFilter(t *testing.T) {
	o := newOfficeOf(t, likely)
	h := o.handler(admin.Config{Access: admin.ReadOnly})
	var cookie *http.Cookie
	send := func(method, to string, v url.Values) *httptest.ResponseRecorder {
		r := httptest.NewRequest(method, to, strings.NewReader(v.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Sec-Fetch-Site", "same-origin")
		if cookie != nil {
			r.AddCookie(cookie)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		for _, c := range w.Result().Cookies() {
			cookie = c
		}
		return w
	}
	page := send("GET", "/cases?state=started&workflow=claim", nil).Body.String()
	s := sheetOf(t, page, "/presets")
	s.Set("name", `mine "<b>"`)
	w := send("POST", "/presets", s)
	require.Equal(t, http.StatusSeeOther, w.Code, w.Body)
	require.True(t, cookie.HttpOnly)
	page = send("GET", w.Header().Get("Location"), nil).Body.String()
	require.Contains(t, page, "mine &#34;&lt;b&gt;&#34;", "the present one")
	require.NotContains(t, page, "Save this filter")
	require.Contains(t, send("GET", "/cases", nil).Body.String(), `href="/cases?state=started&amp;workflow=claim">mine &#34;&lt;b&gt;&#34;</a>`)
	require.NotContains(t, send("GET", "/items", nil).Body.String(), "mine", "another list")
	require.NotContains(t, get(h, "/cases").Body.String(), "mine", "another browser")

	live := httptest.NewRequest("GET", "/cases", nil)
	live.Header.Set("Accept", "application/json")
	live.AddCookie(cookie)
	shared := httptest.NewRecorder()
	h.ServeHTTP(shared, live)
	require.NotContains(t, shared.Body.String(), "mine", "a live page is rendered once for all browsers")
	require.Contains(t, shared.Body.String(), `"rows"`)

	w = send("POST", "/presets", sheetOf(t, page, "/presets"))
	require.Equal(t, http.StatusSeeOther, w.Code)
	require.NotContains(t, send("GET", "/cases", nil).Body.String(), "mine")

	for _, bad := range []url.Values{{"name": {"x"}, "path": {"//elsewhere"}, "query": {"a=b"}}, {"name": {" "}, "path": {"/cases"}, "query": {"a=b"}},
		{"name": {"x"}, "path": {"/cases"}, "query": {"key=" + strings.Repeat("x", 4000)}}} {
		require.Equal(t, http.StatusBadRequest, send("POST", "/presets", bad).Code)
	}
	odd := send("POST", "/presets", url.Values{"name": {"x"}, "path": {"/jobs"}, "query": {"a b=\r\nc"}}).Header().Get("Location")
	require.Equal(t, "/jobs?a+b=%0D%0Ac", odd)
	cookie.Value = "garbage"
	require.Equal(t, http.StatusOK, send("GET", "/cases", nil).Code)
}

// sheetOf are the fields of the first form of a page that is sent to an address.
func sheetOf(t *testing.T, page, to string) url.Values {
	t.Helper()
	for _, s := range (crawled{"/": page}).sheets() {
		if s.to == to {
			return s.fields
		}
	}
	require.Fail(t, "no form is sent to "+to)
	return nil
}
