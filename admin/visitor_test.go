package admin_test

import (
	"encoding/json"
	"fmt"
	"html"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/internal/testsize"
)

// visitor is a person who begins at the overview and gets on by what the pages show alone: no address is typed.
type visitor interface {
	// begin opens the overview.
	begin()
	// follow clicks on the first link, or fold, that is called so; a link whose whole name it is goes first.
	follow(name string)
	// fill types into the field of a form.
	fill(field, value string)
	// send clicks on the button that is called so, which sends its form.
	send(button string)
	// address is where a link of this name leads, for what is not a page.
	address(name string) string
	// again loads the page again.
	again()
	// sees fails the test unless the page shows the texts.
	sees(texts ...string)
	// shows reports whether the page shows a text now.
	shows(text string) bool
}

// visitors are the ways to read pages: as text without a browser, and in a browser with and without a script. Each test has its own server.
var visitors = map[string]func(t *testing.T, h http.Handler) visitor{
	"without a browser": func(t *testing.T, h http.Handler) visitor { return &reader{t: t, h: h} },
	"without a script":  func(t *testing.T, h http.Handler) visitor { return newClicker(t, h, false) },
	"with a script":     func(t *testing.T, h http.Handler) visitor { return newClicker(t, h, true) },
}

// visit runs a test as each visitor that asked names; the tests in a browser are left out with -short.
func visit(t *testing.T, f func(t *testing.T, as func(*testing.T, http.Handler) visitor)) {
	all := maps.Clone(visitors)
	all["by the keyboard"] = newTypist
	for name, of := range all {
		if asked(name, t.Name()) {
			t.Run(name, func(t *testing.T) {
				mayBrowse(t, name)
				f(t, of)
			})
		}
	}
}

// asked reports whether a test is run as a visitor. In the usual form every second one is in a browser, which runs scripts: what a browser does without a
// script is much like the text. The long form has each in a browser, every second one by the keyboard alone, and the others without a script; the nightly form has all.
func asked(visitor, test string) bool {
	second := len(test)%2 == 1
	switch {
	case visitor == "without a browser" || testsize.Nightly():
		return true
	case visitor == "with a script":
		return second && !testsize.Long()
	case visitor == "without a script":
		return !second && testsize.Long()
	}
	return second && testsize.Long()
}

func mayBrowse(t *testing.T, visitor string) {
	t.Helper()
	if testing.Short() && visitor != "without a browser" {
		t.Skip("clicks through pages in a browser, which takes long under the race detector; run without -short")
	}
}

// visitEach runs each of many tests of one kind as each visitor. A visit in a browser takes thirty times as long as one by text, so the usual
// form has every fourth test in a browser, by turns in the one and in the other, in the order of their names, and the long form every third one.
func visitEach(t *testing.T, names []string, f func(t *testing.T, name string, as func(*testing.T, http.Handler) visitor)) {
	turn := map[string]int{"without a script": 0, "with a script": 5}
	slices.Sort(names)
	for who, of := range visitors {
		t.Run(who, func(t *testing.T) {
			mayBrowse(t, who)
			for i, name := range names {
				every := testsize.Pick(8, 6, 1)
				if turn, browses := turn[who]; browses && i%every != turn%every {
					continue
				}
				t.Run(name, func(t *testing.T) { f(t, name, of) })
			}
		})
	}
}

// reader reads the HTML as a text browser does.
type reader struct {
	t      *testing.T
	h      http.Handler
	path   string
	body   string
	filled map[string]string
}

var (
	markup   = regexp.MustCompile(`(?s)<style.*?</style>|<script.*?</script>|<[^>]*>`)
	anchors  = regexp.MustCompile(`(?s)<(?:a|summary)([^>]*)>(.*?)</(?:a|summary)>`)
	forms    = regexp.MustCompile(`(?s)<form([^>]*)>(.*?)</form>`)
	controls = regexp.MustCompile(`(?s)<input([^>]*)>|<textarea([^>]*)>(.*?)</textarea>|<select([^>]*)>(.*?)</select>`)
	options  = regexp.MustCompile(`<option([^>]*)>([^<]*)</option>`)
	buttons  = regexp.MustCompile(`(?s)<button([^>]*)>(.*?)</button>`)
)

// attribute is the value of an attribute of a tag.
func attribute(tag, name string) string {
	_, rest, _ := strings.Cut(" "+tag, " "+name+`="`)
	value, _, _ := strings.Cut(rest, `"`)
	return html.UnescapeString(value)
}

// plainText is what stands in a part of a page.
func plainText(part string) string {
	return strings.Join(strings.Fields(html.UnescapeString(markup.ReplaceAllString(part, " "))), " ")
}

func (r *reader) get(path string) {
	r.t.Helper()
	for range 3 { // redirects
		w := get(r.h, path)
		if w.Code == http.StatusSeeOther {
			path = w.Header().Get("Location")
			continue
		}
		require.Equal(r.t, http.StatusOK, w.Code, "%s: %s", path, w.Body)
		r.path, r.body, r.filled = path, w.Body.String(), make(map[string]string)
		return
	}
	r.t.Fatalf("%s leads elsewhere again and again", path)
}

func (r *reader) begin() { r.t.Helper(); r.get("/") }
func (r *reader) again() { r.t.Helper(); r.get(r.path) }

func (r *reader) follow(name string) {
	r.t.Helper()
	var first []string
	for _, a := range anchors.FindAllStringSubmatch(r.body, -1) {
		switch label := attribute(a[1], "aria-label"); {
		case plainText(a[2]) == name || label == name:
			first = a
		case first == nil && (strings.Contains(plainText(a[2]), name)):
			first = a
			continue
		default:
			continue
		}
		break
	}
	require.NotNil(r.t, first, "no link %q on %s: %s", name, r.path, plainText(r.body))
	if to := attribute(first[1], "href"); to != "" {
		r.get(to)
	}
}

func (r *reader) fill(field, value string) { r.filled[field] = value }

func (r *reader) send(button string) {
	r.t.Helper()
	for _, f := range forms.FindAllStringSubmatch(r.body, -1) {
		for _, b := range buttons.FindAllStringSubmatch(f[2], -1) {
			if plainText(b[2]) == button {
				r.submit(f[1], f[2])
				return
			}
		}
	}
	r.t.Fatalf("no button %q on %s: %s", button, r.path, plainText(r.body))
}

// submit sends a form with what was in it and what was typed.
func (r *reader) submit(form, inside string) {
	r.t.Helper()
	v := url.Values{}
	for _, c := range controls.FindAllStringSubmatch(inside, -1) {
		name, value := attribute(c[1]+c[2]+c[4], "name"), attribute(c[1], "value")
		switch {
		case strings.HasPrefix(c[0], "<textarea"):
			value = html.UnescapeString(c[3])
		case strings.HasPrefix(c[0], "<select"):
			for i, o := range options.FindAllStringSubmatch(c[5], -1) {
				if i == 0 || strings.Contains(o[1], "selected") {
					value = html.UnescapeString(o[2])
					if strings.Contains(o[1], "value=") {
						value = attribute(o[1], "value")
					}
				}
			}
		}
		if typed, ok := r.filled[name]; ok {
			value = typed
			delete(r.filled, name)
		}
		v.Add(name, value)
	}
	require.Empty(r.t, r.filled, "the form has no such fields: %s", inside)
	to := attribute(form, "action")
	if attribute(form, "method") != "post" {
		r.get(to + "?" + v.Encode())
		return
	}
	var fields []string
	for name, all := range v {
		for _, value := range all {
			fields = append(fields, name, value)
		}
	}
	w := post(r.h, to, fields...)
	require.Equal(r.t, http.StatusSeeOther, w.Code, plainText(w.Body.String()))
	r.get(w.Header().Get("Location"))
}

func (r *reader) shows(text string) bool { return strings.Contains(plainText(r.body), text) }

func (r *reader) sees(texts ...string) {
	r.t.Helper()
	for _, text := range texts {
		require.Contains(r.t, plainText(r.body), text, r.path)
	}
}

// clicker is a person at a browser.
type clicker struct {
	*browser
	base string
}

func newClicker(t *testing.T, h http.Handler, script bool) visitor {
	base := serve(t, h)
	b := newBrowser(t)
	b.width(1280)
	if !script {
		ctx, cancel := b.bound()
		defer cancel()
		_, err := chromedp.Call(ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
		require.NoError(t, err)
	}
	t.Cleanup(func() { b.quiet("the pages") })
	return &clicker{b, base}
}

// find is a script that finds what can be clicked on by its name: what is seen alone, and in the content before the navigation.
const find = `(() => {
  const name = %s, text = e => e.textContent.replace(/\s+/g, " ").trim(), can = e => e.getClientRects().length > 0 && !e.disabled;
  const all = [...document.querySelectorAll(%s)].filter(can);
  const e = all.find(e => text(e) === name || e.getAttribute("aria-label") === name) || all.find(e => text(e).includes(name));
  if (!e) return "none of this name: " + document.body.innerText;
  window.before = e.tagName !== "SUMMARY";
  e.click();
  return "";
})()`

// click clicks, and waits for the page that follows.
func (c *clicker) click(name, kinds string) {
	c.t.Helper()
	quoted, _ := json.Marshal(name)
	of, _ := json.Marshal(kinds)
	require.Empty(c.t, eval[string](c.browser, fmt.Sprintf(find, quoted, of)), "%s", name)
	c.loaded()
}

// loaded waits until the page that was asked for is there.
func (c *clicker) loaded() {
	c.t.Helper()
	c.until(`!window.before && document.readyState === "complete" && document.querySelector("main") !== null`)
}

func (c *clicker) begin()             { c.t.Helper(); c.browser.visit(c.base + "/"); c.loaded() }
func (c *clicker) follow(name string) { c.t.Helper(); c.click(name, "a[href],summary") }
func (c *clicker) send(name string)   { c.t.Helper(); c.click(name, "button") }

func (c *clicker) again() {
	c.t.Helper()
	eval[bool](c.browser, `(() => { window.before = true; location.reload(); return true; })()`)
	c.loaded()
}

func (c *clicker) fill(field, value string) {
	c.t.Helper()
	name, _ := json.Marshal(`main [name="` + field + `"]`)
	text, _ := json.Marshal(value)
	require.True(c.t, eval[bool](c.browser, fmt.Sprintf(`(() => { const e = [...document.querySelectorAll(%s)].find(e => e.getClientRects().length > 0);
  if (!e) return false; e.focus(); e.value = %s; e.dispatchEvent(new Event("input", { bubbles: true })); return e.value === %[2]s; })()`, name, text)), "no field %s that takes %q", field, value)
}

// visible is whether a text is on the page.
func visible(text string) string {
	quoted, _ := json.Marshal(text)
	return fmt.Sprintf(`document.body.innerText.replace(/\s+/g, " ").includes(%s)`, quoted)
}

func (c *clicker) shows(text string) bool { c.t.Helper(); return eval[bool](c.browser, visible(text)) }

func (c *clicker) sees(texts ...string) {
	c.t.Helper()
	for _, text := range texts {
		c.until(visible(text))
	}
}

func (r *reader) address(name string) string {
	r.t.Helper()
	for _, a := range anchors.FindAllStringSubmatch(r.body, -1) {
		if plainText(a[2]) == name {
			return attribute(a[1], "href")
		}
	}
	r.t.Fatalf("no link %q on %s", name, r.path)
	return ""
}

func (c *clicker) address(name string) string {
	c.t.Helper()
	quoted, _ := json.Marshal(name)
	return eval[string](c.browser, fmt.Sprintf(`[...document.querySelectorAll("a[href]")].find(e => e.textContent.trim() === %s).getAttribute("href")`, quoted))
}
