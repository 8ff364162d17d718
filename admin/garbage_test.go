package admin_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/admin"
	"github.com/tasq-dev/tasq/internal/testsize"
	"github.com/tasq-dev/tasq/store"
)

// garbage is what a field or a parameter does not expect: ids are those of other things.
func (o *office) garbage(t testing.TB) []string {
	t.Helper()
	all := []string{"", " ", strings.Repeat("ä", 5_000), "-1", "\x00", "a\x00b", "\xff\xfe", "a\xc3", `"'<>\`, "%", "../..", "\u202e", "\r\n", "null", "true", "[]", `{"a":1}`,
		"1.5", "1e309", "9223372036854775807", "9223372036854775808", strings.Repeat("9", 400), "-9223372036854775808", "2147483648", "NaN", "0x10",
		"00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff", "2562047h47m", "2562048h", "-5m", "1ns", "65535d", "65536d",
		"0000-00-00", "0001-01-01", "9999-12-31", "9999-12-31T23:59:59+23:59", "2030-02-30", "-0001-01-01T00:00:00Z", "a=b=c", ",,,", "customer=ada"}
	for it, err := range store.AllItems(t.Context(), o, store.ItemFilter{Case: o.claim}) {
		require.NoError(t, err)
		return append(all, o.claim.String(), o.failed.String(), it.ID.String())
	}
	return all
}

// some is a part of the garbage, another one for each n, so that all of it is tried in some fields; all of it with TASQ_NIGHTLY=1.
func some(garbage []string, n int) (part []string) {
	every := testsize.Pick(36, 12, 1)
	for i := n % every; i < len(garbage); i += every {
		part = append(part, garbage[i])
	}
	return part
}

// last is the position of what the user has done last.
func (o *office) last(t testing.TB) int64 {
	t.Helper()
	seq, err := store.Newest(t.Context(), o, store.JournalFilter{By: "eve"})
	require.NoError(t, err)
	return seq
}

// sound requires that an answer to garbage is no failure of the server, and that a refusal has a text.
func sound(t testing.TB, w *httptest.ResponseRecorder, what ...string) {
	t.Helper()
	if w.Code >= 500 {
		t.Errorf("%.300q: %d %.2000s", what, w.Code, plainText(w.Body.String()))
	}
	if w.Code >= 400 {
		require.NotEmpty(t, strings.TrimSpace(w.Body.String()), "%.300q", what)
		require.True(t, strings.Contains(w.Header().Get("Content-Type"), "json") || strings.Contains(w.Body.String(), "<h1"), "%.300q: %s", what, w.Body)
	}
}

// Whatever stands in the fields of a form, it is done or refused with a sentence; what is refused changes nothing.
func TestGarbageInTheFieldsOfForms(t *testing.T) {
	o := newTown(t, "text")
	h := o.handler(admin.Config{Access: as("eve")})
	fields := 0
	for _, s := range crawl(t, h).sheets() {
		if s.method != "post" {
			continue
		}
		filled := url.Values{}
		s.sent(http.NotFoundHandler(), func(v url.Values) { s.fill(v); filled = v })
		for _, name := range sortedNames(s.fields, filled) {
			fields++
			for _, bad := range some(o.garbage(t), fields) {
				before := o.last(t)
				w := s.sent(h, func(v url.Values) {
					s.fill(v)
					v.Set("key", "") // each is another command
					v.Set(name, bad)
				})
				sound(t, w, s.kind(), name, bad)
				if w.Code != http.StatusSeeOther {
					require.Equal(t, before, o.last(t), "%s: %s=%.100q is refused and has an effect", s.kind(), name, bad)
					continue
				}
				sound(t, get(h, w.Header().Get("Location")), s.kind(), name, bad, w.Header().Get("Location"))
				o.Drain() // actions on many things continue in the background
			}
		}
	}
	o.Drain()
	for address := range crawl(t, h) { // what was taken can be shown
		sound(t, get(h, address), address)
	}
}

func sortedNames(all ...url.Values) (names []string) {
	for _, v := range all {
		for name := range v {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Whatever stands in the parameters and the parts of an address, the answer is a page or a refusal with a sentence, and nothing changes. The
// usual form tries a part of the garbage in each.
func TestGarbageInAddresses(t *testing.T) {
	o := newTown(t, "text")
	h := o.handler(admin.Config{Access: as("eve")})
	pages := crawl(t, h)
	params := make(map[string][]string) // of pages, by an address of their kind without a query
	kinds := make(map[string]string)
	add := func(address string, v url.Values) {
		path, query, _ := strings.Cut(address, "?")
		kind := anyID.ReplaceAllString(path, "ID")
		if kinds[kind] == "" {
			kinds[kind] = path
		}
		more, err := url.ParseQuery(query)
		require.NoError(t, err)
		params[kind] = sortedNames(more, v, url.Values{"done": nil}, namesOf(params[kind]))
	}
	for address := range pages {
		add(address, nil)
	}
	for _, s := range pages.sheets() {
		if s.method != "post" {
			add(s.to, s.fields)
		}
	}
	before := o.last(t)
	tried := 0
	part := func() []string {
		if tried++; testsize.Long() {
			return o.garbage(t)
		}
		return some(o.garbage(t), tried)
	}
	for kind, names := range params {
		for _, name := range names {
			for _, bad := range part() {
				sound(t, get(h, kinds[kind]+"?"+url.Values{name: {bad}}.Encode()), kind, name, bad)
			}
		}
		if i := strings.LastIndex(kinds[kind], "/"); i > 0 {
			for _, bad := range part() {
				sound(t, get(h, kinds[kind][:i+1]+url.PathEscape(bad)), kind, bad)
			}
		}
	}
	require.Equal(t, before, o.last(t))
}

func namesOf(names []string) url.Values {
	v := url.Values{}
	for _, name := range names {
		v[name] = nil
	}
	return v
}

// Text that is not UTF-8 is refused on every store: PostgreSQL takes none.
func TestTextOfParametersIsUTF8(t *testing.T) {
	o := newOffice(t, "text")
	h := o.handler(admin.Config{Access: as("eve")})
	for _, address := range []string{"/cases?key=%FF", "/audit?by=a%C3", "/api/v1/items?task=%FF", "/api/v1/export?workflow=%FF", "/items?queue=%FF"} {
		w := get(h, address)
		require.Equal(t, http.StatusBadRequest, w.Code, address)
		require.Contains(t, w.Body.String(), "must be text in UTF-8", address)
	}
}

// The zero id is that of nothing, also as the name of an event or what is searched for.
func TestZeroIDIsNoThing(t *testing.T) {
	o := newOffice(t, "text")
	h, zero := o.handler(admin.Config{Access: as("eve")}), "00000000-0000-0000-0000-000000000000"
	require.Equal(t, http.StatusSeeOther, post(h, "/act", "kind", "send", "case", o.order.String(), "event", zero, "payload", "1").Code)
	audit := get(h, "/audit").Body.String()
	require.True(t, strings.Contains(audit, "<td data-label=\"by\">eve</td>"))
	require.False(t, strings.Contains(audit, `href="/items/"`), "the event leads to an item")
	require.Equal(t, http.StatusOK, get(h, "/search?q="+zero).Code)
}

// described is what the description of the API says of its paths.
type described struct {
	Paths map[string]map[string]struct {
		Parameters []struct{ Name, In string }
	}
	Components struct {
		Schemas map[string]struct{ Properties map[string]any }
	}
}

// describedBy is the description that a handler gives of its API.
func describedBy(t testing.TB, h http.Handler) (api described) {
	t.Helper()
	require.NoError(t, json.Unmarshal(get(h, "/api/v1/openapi.json").Body.Bytes(), &api))
	return api
}

// Whatever stands in a parameter or a path of the API, the answer is what was asked for or a problem with a code, and nothing changes.
func TestGarbageForTheAPI(t *testing.T) {
	o := newTown(t, "text")
	h := o.handler(admin.Config{Access: as("eve")})
	api := describedBy(t, h)
	before := o.last(t)
	for pattern, methods := range api.Paths {
		for _, p := range methods["get"].Parameters {
			for _, bad := range o.garbage(t) {
				path := strings.NewReplacer("{id}", o.claim.String(), "{name}", "paused").Replace(pattern)
				if p.In == "path" {
					path = strings.Replace(pattern, "{"+p.Name+"}", url.PathEscape(bad), 1)
				} else {
					path += "?" + url.Values{p.Name: {bad}}.Encode()
				}
				if !strings.HasSuffix(pattern, "/stream") { // it has no end
					sound(t, get(h, path), path)
				}
			}
		}
	}
	require.Equal(t, before, o.last(t))
}
