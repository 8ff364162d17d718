package admin_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/internal/testsize"
)

// paleEdges are the controls whose edge, and those whose ring when they have the focus, have less contrast to what is around them than WCAG 1.4.11
// wants, 3 to 1. The edge of a button is its text. What the browser draws by itself, such as a box to tick, is left to it, but for its color.
const paleEdges = `(() => {
  const pixel = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const over = (color, below) => { pixel.fillStyle = "rgb(" + below + ")"; pixel.fillRect(0, 0, 1, 1); pixel.fillStyle = color; pixel.fillRect(0, 0, 1, 1); return [...pixel.getImageData(0, 0, 1, 1).data].slice(0, 3); };
  const back = e => e ? over(getComputedStyle(e).backgroundColor, back(e.parentElement)) : [255, 255, 255];
  const light = c => c.map(v => v / 255).map(v => v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4).reduce((sum, v, i) => sum + v * [.2126, .7152, .0722][i], 0);
  const ratio = (a, b) => (Math.max(light(a), light(b)) + .05) / (Math.min(light(a), light(b)) + .05);
  const bad = [], say = (what, r, e) => r < 3 && bad.push(what + " " + r.toFixed(2) + ": " + e.outerHTML.slice(0, 120));
  document.querySelectorAll("details").forEach(d => d.open = true);
  for (const e of document.querySelectorAll("a[href],button,input:not([type=hidden]),select,textarea,summary,[tabindex]")) {
    if (!e.getClientRects().length || e.disabled || getComputedStyle(e).visibility !== "visible") continue;
    const around = back(e.parentElement), own = back(e), s = getComputedStyle(e);
    if (s.accentColor !== "auto") say("color", ratio(over(s.accentColor, around), around), e);
    if (e.matches("select,textarea,input:not([type=checkbox],[type=radio],[type=range])")) say("edge", Math.max(parseFloat(s.borderTopWidth) ? ratio(over(s.borderTopColor, around), around) : 1, ratio(own, around)), e);
    e.focus({ focusVisible: true, preventScroll: true });
    if (document.activeElement !== e || e.matches("main")) continue;
    const f = getComputedStyle(e), inside = parseFloat(f.outlineOffset) < 0;
    if (f.outlineStyle === "none" || parseFloat(f.outlineWidth) < 2) bad.push("no ring: " + e.outerHTML.slice(0, 120));
    else say("ring", ratio(over(f.outlineColor, around), inside ? own : around), e);
  }
  return bad.slice(0, 12);
})()`

// The edges of controls, and the rings of what has the focus, can be seen in both themes.
func TestEdgesAndFocusCanBeSeen(t *testing.T) {
	if testing.Short() {
		t.Skip("opens pages in a browser, which takes long under the race detector; run without -short")
	}
	b := newBrowser(t)
	o, town := newOfficeOf(t, likely), newTown(t, "ann")
	look := 0
	see := func(base string, paths ...string) {
		for _, path := range paths {
			if look++; look%testsize.Pick(9, 7, 1) != 0 {
				continue
			}
			b.visit(base + path)
			b.press("p") // no part of the page is replaced meanwhile
			for _, theme := range []string{"light", "dark"} {
				b.theme(theme)
				require.Empty(t, eval[[]string](b, paleEdges), "%s %s", path, theme)
			}
		}
	}
	see(o.serve(t), o.pages(t)...)
	see(town.serve(t), town.forms(t)...)
	b.quiet("edges")
}

// The fields of an opened filter are in line: a list to choose from is as high as a field to type into.
func TestTheFieldsOfAFilterAreInLine(t *testing.T) {
	b := newBrowser(t)
	base := newOfficeOf(t, likely).serve(t)
	b.width(1280)
	for _, path := range []string{"/items", "/cases", "/jobs", "/incidents", "/stats"} {
		b.visit(base + path)
		lines := eval[[]string](b, `(() => {
  document.querySelectorAll(".filter").forEach(d => d.open = true);
  const fields = [...document.querySelectorAll(".filter form label > :is(input,select)")].filter(e => e.getClientRects().length), at = e => e.getBoundingClientRect();
  if (!fields.some(e => e.tagName === "SELECT") || !fields.some(e => e.tagName === "INPUT")) return ["the filter has no fields of both kinds"];
  return fields.filter(e => fields.some(o => Math.abs(at(o).bottom - at(e).bottom) < 8 && (Math.abs(at(o).top - at(e).top) > .5 || Math.abs(at(o).bottom - at(e).bottom) > .5))).map(e => e.name + " " + at(e).top + " " + at(e).bottom);
})()`)
		require.Empty(t, lines, path)
	}
	b.quiet("filters")
}
