package admin_test

import (
	"cmp"
	"html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/internal/testsize"
)

// crawled are the pages that links lead to from the overview, one of each kind, with their HTML by address.
type crawled map[string]string

var anyID = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)

// kindOf is an address without what is different for each thing of a kind.
func kindOf(address string) string {
	path, query, _ := strings.Cut(anyID.ReplaceAllString(address, "ID"), "?")
	v, _ := url.ParseQuery(query)
	for name := range v {
		if name != "kind" && name != "tab" {
			v[name] = []string{"X"}
		}
	}
	return path + "?" + v.Encode()
}

// allForms is how many addresses of a kind must be looked at to meet every form: things of a kind are in different
// states.
const allForms = 12

// crawl looks at what links lead to. Each link leads to something. The usual form looks at few things of a kind.
func crawl(t testing.TB, h http.Handler) crawled {
	t.Helper()
	return crawlTo(t, h, testsize.Pick(4, allForms, allForms), func(crawled) bool { return false })
}

// crawlTo visits up to so many addresses of each kind, and stops early when the callback says that the rest need no
// visit.
func crawlTo(t testing.TB, h http.Handler, perKind int, last func(page crawled) bool) crawled {
	t.Helper()
	pages, kinds := make(crawled), make(map[string]int)
	for todo := []string{"/"}; len(todo) > 0; todo = todo[1:] {
		address := todo[0]
		if _, seen := pages[address]; seen || kinds[kindOf(address)] == perKind {
			continue
		}
		kinds[kindOf(address)]++
		w := get(h, address)
		require.Less(t, w.Code, 400, "%s: %s", address, w.Body)
		pages[address] = w.Body.String()
		if last(crawled{address: pages[address]}) {
			break
		}
		for _, a := range anchors.FindAllStringSubmatch(w.Body.String(), -1) {
			to := attribute(a[1], "href")
			if strings.HasPrefix(to, "/") && !strings.HasPrefix(to, "/api/") {
				to, _, _ = strings.Cut(to, "#")
				todo = append(todo, to)
			}
		}
	}
	return pages
}

// sheet is a form of a page, as a browser without a script has it.
type sheet struct {
	page, to, method string
	fields           url.Values // as they are sent if nothing is typed
	empty            []string   // those that must be filled in
	note             string     // the text around them
	more             url.Values // what is typed beside what must be
}

// kind distinguishes forms.
func (s *sheet) kind() string {
	return s.method + " " + s.to + " " + s.fields.Get("kind")
}

// sheets are the forms of the pages, one of each kind.
func (c crawled) sheets() []*sheet {
	return slices.CompactFunc(c.allSheets(), func(a, b *sheet) bool { return kindOf(a.kind()) == kindOf(b.kind()) })
}

// allSheets are the forms of the pages, those of a kind together.
func (c crawled) allSheets() []*sheet {
	var all []*sheet
	for address, body := range c {
		for _, f := range forms.FindAllStringSubmatch(body, -1) {
			s := &sheet{page: address, to: attribute(f[1], "action"), method: attribute(f[1], "method"), fields: url.Values{}, note: plainText(f[2])}
			if s.to == "" {
				s.to, _, _ = strings.Cut(address, "?")
			}
			for _, field := range controls.FindAllStringSubmatch(f[2], -1) {
				s.add(field)
			}
			all = append(all, s)
		}
	}
	slices.SortFunc(all, func(a, b *sheet) int {
		return cmp.Or(strings.Compare(kindOf(a.kind()), kindOf(b.kind())), strings.Compare(a.page, b.page))
	})
	return all
}

func (s *sheet) add(field []string) {
	tag := field[1] + field[2] + field[4]
	name, value := attribute(tag, "name"), attribute(field[1], "value")
	switch {
	case strings.HasPrefix(field[0], "<textarea"):
		value = html.UnescapeString(field[3])
	case strings.HasPrefix(field[0], "<select"):
		for _, o := range options.FindAllStringSubmatch(field[5], -1) {
			value = html.UnescapeString(o[2])
			if strings.Contains(o[1], "value=") {
				value = attribute(o[1], "value")
			}
			if value != "" {
				break
			}
		}
	case strings.Contains(tag, " required") && value == "":
		s.empty = append(s.empty, name)
	}
	if name != "" {
		s.fields.Add(name, value)
	}
}

// sent is the form as it is sent with some of its fields changed.
func (s *sheet) sent(h http.Handler, change func(v url.Values)) *httptest.ResponseRecorder {
	v := url.Values{}
	for name, all := range s.fields {
		v[name] = slices.Clone(all)
	}
	change(v)
	if s.method != "post" {
		return get(h, s.to+"?"+v.Encode())
	}
	var fields []string
	for name, all := range v {
		for _, value := range all {
			fields = append(fields, name, value)
		}
	}
	return post(h, s.to, fields...)
}
