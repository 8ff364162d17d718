package admin_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"
)

// focused describes what has the focus and is seen to have it: its name or text, or what is wrong with it.
const focused = `(() => {
  const e = document.activeElement, s = getComputedStyle(e), box = e.getBoundingClientRect();
  if (e === document.body) return "nothing";
  if (!e.matches(":focus-visible") || s.outlineStyle === "none" || parseFloat(s.outlineWidth) < 2) return "without a ring: " + e.outerHTML.slice(0, 120);
  if (box.top < 0 || box.bottom > innerHeight) return "out of sight: " + e.outerHTML.slice(0, 120);
  return e.name || e.textContent.replace(/\s+/g, " ").trim();
})()`

// tabTo presses the tabulator until the link or button of a name has the focus. It returns how many times.
func (b *browser) tabTo(name string) int {
	b.t.Helper()
	quoted, err := json.Marshal(name)
	require.NoError(b.t, err)
	for n := 1; n <= 90; n++ {
		b.press("\t")
		if eval[bool](b, fmt.Sprintf(`document.activeElement.textContent.trim() === %s`, quoted)) {
			return n
		}
	}
	require.Fail(b.t, "the tabulator does not reach it", name)
	return 0
}

// enter presses the key Enter on the link or button that has the focus, and waits for the page that follows.
func (b *browser) enter() {
	b.t.Helper()
	eval[bool](b, `window.before = true`)
	b.press("\r")
	b.until(`!window.before && document.readyState === "complete" && document.querySelector("main") !== null`)
}

// By the keyboard alone an item is completed, an incident is skipped with an output, and a token is moved: the focus is in the first field of a form, at
// the preview that was asked for, at the first wrong field, and at the message of what was done.
func TestCommandsByTheKeyboard(t *testing.T) {
	b := newBrowser(t)
	o := newOfficeOf(t, likely)
	base := o.serve(t)
	b.width(1280)
	open := func(page, link, field string) {
		t.Helper()
		b.visit(base + page)
		b.press("p") // no part of the page is replaced meanwhile
		b.tabTo(link)
		b.enter()
		b.until(fmt.Sprintf("(%s) === %q", focused, field)) // the script moves the focus once the page is there
	}
	send := func(button, then string) {
		t.Helper()
		require.Less(t, b.tabTo(button), 9, "the button is near the first field")
		b.enter()
		b.until(fmt.Sprintf("(%s) === %q", focused, then))
	}
	open("/items/"+o.Item(o.claim, "assess.1.2").ID.String(), "Complete…", "payload")
	b.press(`{"iban":`)
	send("Complete it", "payload")
	b.press(kb.End + `"DE02"}`)
	send("Complete it", "✓ Complete the item: done.")

	open("/items/"+o.Item(o.bill, "charge.1.1").ID.String(), "Skip…", "payload")
	b.press("1")
	send("Skip it", "✓ Skip the work: done.")

	open("/cases/"+o.claim.String(), "Move a token…", "from")
	b.press("open")
	b.press("\t")
	b.press("settle")
	send("Check only", "What it would change")
	for range 3 {
		b.do("back", chromedp.KeyEvent("\t", chromedp.KeyModifiers(chromedp.ModifierShift)))
	}
	require.Equal(t, "Move it", eval[string](b, focused))
	b.enter()
	b.until(fmt.Sprintf("(%s) === %q", focused, "✓ Move a token: done."))
}

// typist is a person at a browser who has no mouse: the tabulator leads to what is wanted, where the focus is seen.
type typist struct{ *clicker }

func newTypist(t *testing.T, h http.Handler) visitor {
	return &typist{newClicker(t, h, true).(*clicker)}
}

// wanted is what has a name, as in find, or the field of a name.
const (
	wanted = `(() => { const name = %s, text = e => e.textContent.replace(/\s+/g, " ").trim();
  const all = [...document.querySelectorAll(%s)].filter(e => e.getClientRects().length > 0 && !e.disabled);
  return all.find(e => text(e) === name || e.getAttribute("aria-label") === name) || all.find(e => text(e).includes(name)); })()`
	wantedField = `[...document.querySelectorAll(%s)].find(e => e.getClientRects().length > 0)`
)

// reach presses the tabulator until an element has the focus.
func (p *typist) reach(element, name string) {
	p.t.Helper()
	require.True(p.t, eval[bool](p.browser, element+` !== undefined`), "nothing is called %s", name)
	for range 250 {
		if eval[bool](p.browser, `document.activeElement === `+element) {
			require.NotRegexp(p.t, "^(without a ring|out of sight)", eval[string](p.browser, focused), name)
			return
		}
		p.press("\t")
	}
	require.Fail(p.t, "the tabulator does not reach it", name)
}

func (p *typist) click(name, kinds string) {
	p.t.Helper()
	quoted, _ := json.Marshal(name)
	of, _ := json.Marshal(kinds)
	element := fmt.Sprintf(wanted, quoted, of)
	p.reach(element, name)
	eval[bool](p.browser, `window.before = document.activeElement.tagName !== "SUMMARY"`)
	p.press("\r")
	p.loaded()
}

func (p *typist) follow(name string) { p.t.Helper(); p.click(name, "a[href],summary") }
func (p *typist) send(name string)   { p.t.Helper(); p.click(name, "button") }

func (p *typist) fill(field, value string) {
	p.t.Helper()
	quoted, _ := json.Marshal(`main [name="` + field + `"]`)
	p.reach(fmt.Sprintf(wantedField, quoted), field)
	p.do("select what is there", chromedp.KeyEvent("a", chromedp.KeyModifiers(chromedp.ModifierCtrl)))
	p.press(value)
	require.Equal(p.t, value, eval[string](p.browser, `document.activeElement.value`), field)
}
