package admin_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/admin"
)

// The box in the head of a list ticks all its rows. The actions on ticked rows are shown once a row is ticked.
func TestAllRowsAreTickedAtOnce(t *testing.T) {
	b := newBrowser(t)
	b.visit(newOfficeOf(t, likely).serve(t) + "/cases")
	b.until(`document.querySelector("th.pick input") !== null`)
	const acts, ticked = `getComputedStyle(document.querySelector(".acts")).display`, `document.querySelectorAll("[name=ids]:checked").length`
	require.Equal(t, "none", eval[string](b, acts))
	require.True(t, eval[bool](b, `(document.querySelector("th.pick input").click(), true)`))
	require.Equal(t, 4, eval[int](b, ticked))
	require.NotEqual(t, "none", eval[string](b, acts))
	require.True(t, eval[bool](b, `(document.querySelector("th.pick input").click(), true)`))
	require.Zero(t, eval[int](b, ticked))
	b.quiet("the list of cases")
}

// Boxes and states take no more room than they need, and long texts stay readable; on a telephone the box of a row is beside its first cell.
func TestColumnsHaveTheirRoom(t *testing.T) {
	b := newBrowser(t)
	base := newOfficeOf(t, likely).serve(t)
	const box = `document.querySelector("td.pick").getBoundingClientRect()`
	b.width(1280)
	b.visit(base + "/cases")
	require.Less(t, eval[float64](b, box+".width"), 40.0)
	b.visit(base + "/doctor")
	require.Less(t, eval[float64](b, `document.querySelector("td[data-label=state]").getBoundingClientRect().width`), 160.0)
	require.Less(t, eval[float64](b, `document.querySelector("td[data-label=check]").getBoundingClientRect().width`), 240.0, "what was found is beside it")
	b.visit(base + "/jobs")
	b.width(768)
	require.Greater(t, eval[float64](b, `document.querySelector("td[data-label=failure]").getBoundingClientRect().width`), 180.0)
	b.visit(base + "/cases")
	b.width(320)
	require.InDelta(t, eval[float64](b, `document.querySelector("td[data-label=case]").getBoundingClientRect().top`), eval[float64](b, box+".top"), 8)
}

// On a telephone a row of a list says what is unusual: not that it is the first attempt, nor that its queue is the default one.
func TestANarrowListLeavesOutWhatIsUsual(t *testing.T) {
	b := newBrowser(t)
	b.visit(newOfficeOf(t, likely).serve(t) + "/items")
	const attempts = `[...document.querySelectorAll("td[data-label=attempt]")].filter(td => td.getClientRects().length).map(td => td.textContent).join()`
	b.width(1280)
	require.Equal(t, "1,1,1,2,1,1,1,1,1,1,1,1", eval[string](b, attempts))
	b.width(320)
	require.Equal(t, "2", eval[string](b, attempts))
	require.Zero(t, eval[int](b, `[...document.querySelectorAll("td[data-label=queue]")].filter(td => td.getClientRects().length).length`))
}

// The net is fitted to the window or enlarged, also without a script; the choice stays when the part is replaced, and on other pages.
func TestTheSizeOfTheNet(t *testing.T) {
	b := newBrowser(t)
	o := newOfficeOf(t, likely)
	base := o.serve(t)
	b.width(320)
	b.visit(base + "/cases/" + o.claim.String())
	const wide = `document.querySelector(".netbox svg").getBoundingClientRect().width`
	whole := eval[float64](b, wide)
	require.Greater(t, whole, 500.0)
	choose := func(size string) {
		eval[bool](b, `(document.querySelector("[name=zoom][value='`+size+`']").click(), true)`)
	}
	choose("fit")
	require.Less(t, eval[float64](b, wide), 320.0)
	choose("250")
	require.InDelta(t, 2.5*whole, eval[float64](b, wide), 2)
	b.until(`document.querySelector("#live").dataset.state === "on"`)
	o.StartItem(o.claim, "withdraw")
	b.afterUpdate(`p.why && !p.why.includes("withdraw.1.1 (initialized")`, `!document.querySelector("#part-why").textContent.includes("withdraw.1.1 (initialized")`)
	require.InDelta(t, 2.5*whole, eval[float64](b, wide), 2, "after a change")
	b.visit(base + "/workflows/claim")
	require.Equal(t, "250", eval[string](b, `document.querySelector("[name=zoom]:checked").value`))
	b.quiet("the net")
}

// On a tablet no column is cut off: the heads of columns wrap at spaces, and long texts have lines of their own. On a screen that is too narrow for
// that, rows are cards.
func TestNoColumnIsCutOffOnATablet(t *testing.T) {
	b := newBrowser(t)
	o, plant := newOfficeOf(t, likely), newPlant(t)
	base := o.serve(t)
	require.Equal(t, http.StatusSeeOther, submit(t, plant.handler(admin.Config{Access: as("ann")}), "/act?kind=pause-queue&queue=mails", "reason", "the server moves").Code)
	controls := plant.serve(t) + "/limits"
	for _, page := range []string{base + "/", base + "/workflows/claim", base + "/cases", base + "/cases/" + o.claim.String(), base + "/items", base + "/jobs", base + "/incidents",
		base + "/audit", base + "/doctor", controls} {
		b.visit(page)
		for _, width := range []int64{641, 700, 741, 768} {
			b.width(width)
			require.Empty(t, eval[[]string](b, `[...document.querySelectorAll(".scroll")].filter(e => e.scrollWidth > e.clientWidth + 1).map(e => e.getAttribute("aria-label"))`), "%s at %d", page, width)
			require.Empty(t, eval[[]string](b, `[...document.querySelectorAll("th:not(.wide)")].filter(th => getComputedStyle(th.parentElement.parentElement).position !== "absolute" && th.getClientRects().length && th.scrollWidth > th.clientWidth + 1).map(th => th.textContent)`), "%s at %d", page, width)
		}
	}
	const failure = `document.querySelector("td[data-label='input, output or failure']:not(:empty)").getBoundingClientRect()`
	b.visit(base + "/items")
	require.Greater(t, eval[float64](b, failure+".width"), 600.0)
	b.width(1280)
	require.Less(t, eval[float64](b, failure+".width"), 600.0, "beside the other columns")
}

// paleHints are the placeholders of fields that have less contrast to their field than WCAG AA wants of a text, 4.5 to 1.
const paleHints = `(() => {
  const pixel = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const rgb = (color, below) => { pixel.fillStyle = below || "#000"; pixel.fillRect(0, 0, 1, 1); pixel.fillStyle = color; pixel.fillRect(0, 0, 1, 1); return [...pixel.getImageData(0, 0, 1, 1).data].slice(0, 3); };
  const css = c => "rgb(" + c + ")";
  const back = e => { const own = getComputedStyle(e).backgroundColor; return e.parentElement ? rgb(own, css(back(e.parentElement))) : rgb(own, "#fff"); };
  const light = c => c.map(v => v / 255).map(v => v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4).reduce((sum, v, i) => sum + v * [.2126, .7152, .0722][i], 0);
  return [...document.querySelectorAll("[placeholder]")].map(e => {
    const hint = getComputedStyle(e, "::placeholder"), field = back(e), ink = rgb(hint.color);
    const seen = ink.map((v, i) => v * hint.opacity + field[i] * (1 - hint.opacity)), [a, b] = [light(seen), light(field)].sort((x, y) => y - x);
    return [e.name, ((a + .05) / (b + .05)).toFixed(2)];
  }).filter(([, ratio]) => ratio < 4.5).map(pair => pair.join(" "));
})()`

// The hints in empty fields can be read in both themes.
func TestHintsCanBeRead(t *testing.T) {
	b := newBrowser(t)
	b.visit(newOfficeOf(t, likely).serve(t) + "/items")
	eval[bool](b, `(document.querySelectorAll("details").forEach(d => d.open = true), true)`)
	for _, theme := range []string{"light", "dark"} {
		b.theme(theme)
		require.Empty(t, eval[[]string](b, paleHints), theme)
	}
	b.quiet("hints")
}

// Printed pages have moments beside "3m ago", which says nothing on paper, no buttons, and a light background.
func TestPrintedPages(t *testing.T) {
	b := newBrowser(t)
	base := newOfficeOf(t, likely).serve(t)
	const after = `[...document.querySelectorAll("main time")].map(e => getComputedStyle(e, "::after").content === '" ' + e.getAttribute("datetime") + '"')`
	b.visit(base + "/doctor")
	require.NotContains(t, eval[[]bool](b, after), true)
	ctx, cancel := b.bound()
	defer cancel()
	_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia,
		emulation.SetEmulatedMediaParams{Media: "print", Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "dark"}}})
	require.NoError(t, err)
	require.NotContains(t, eval[[]bool](b, after), false)
	require.Zero(t, eval[int](b, `[...document.querySelectorAll("button,.button")].filter(e => e.getClientRects().length && !e.closest("td")).length`))
	require.Equal(t, "rgb(255, 255, 255)", eval[string](b, `getComputedStyle(document.querySelector(".card")).backgroundColor`))
	b.quiet("print")
}

// Without a script, what only a script can do is not shown: no button that copies an id, and none that says that the page is live.
func TestButtonsOfTheScriptAreHiddenWithoutIt(t *testing.T) {
	b := newBrowser(t)
	o := newOfficeOf(t, likely)
	ctx, cancel := b.bound()
	defer cancel()
	_, err := chromedp.Call(ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	require.NoError(t, err)
	b.visit(o.serve(t) + "/cases/" + o.claim.String())
	require.Positive(t, eval[int](b, `document.querySelectorAll("[hidden]").length`))
	require.Empty(t, eval[[]string](b, `[...document.querySelectorAll("[hidden]")].filter(e => e.getClientRects().length).map(e => e.id || e.textContent)`))
	b.quiet("without a script")
}

// The buttons of a case are beside its title if there is room, and below what is said of the case if not; they never make that narrow.
func TestButtonsAreBesideTheTitle(t *testing.T) {
	b := newBrowser(t)
	o := newOfficeOf(t, likely)
	b.visit(o.serve(t) + "/cases/" + o.claim.String())
	const box = `document.querySelector("#part-head .head>%s").getBoundingClientRect()`
	title, buttons := fmt.Sprintf(box, "div:first-child"), fmt.Sprintf(box, ".buttons")
	for width, beside := range map[int64]bool{320: false, 741: false, 1280: true, 1920: true} {
		b.width(width)
		if beside {
			require.InDelta(t, eval[float64](b, title+".top"), eval[float64](b, buttons+".top"), 1, width)
			require.GreaterOrEqual(t, eval[float64](b, buttons+".left"), eval[float64](b, title+".right"), width)
		} else {
			require.GreaterOrEqual(t, eval[float64](b, buttons+".top"), eval[float64](b, title+".bottom"), width)
		}
		require.GreaterOrEqual(t, eval[float64](b, title+".width"), 280.0, width)
		require.Less(t, eval[float64](b, `document.querySelector("#part-head .buttons>*").getBoundingClientRect().height`), 45.0, "a button is as high as its text, at %d", width)
		require.LessOrEqual(t, eval[int](b, `document.documentElement.scrollWidth - innerWidth`), 0, width)
	}
	b.quiet("the head of a case")
}
