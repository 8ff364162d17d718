package admin_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/admin"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/internal/testsize"
	"github.com/tasq-dev/tasq/workflow"
)

var (
	screenshots = flag.Bool("screenshots", false, "write the pictures of the pages into docs/images")
	pictured    = flag.String("pictured", "", "write the pictures of the addresses alone that this `expression` matches")
	pictures    = flag.String("pictures", "", "write pictures of all pages, light and dark, narrow and wide, into this `folder`, to look at them")
)

// checks are what a page has to be for people who cannot see it, or use the keyboard: names of controls, labels, one heading, contrast.
const checks = `(() => {
  const bad = [], seen = e => e.getClientRects().length > 0;
  const name = e => (e.getAttribute("aria-label") || e.textContent || e.title || "").trim();
  for (const e of document.querySelectorAll("a[href],button,summary")) if (seen(e) && !name(e) && !e.querySelector("title")) bad.push("no name: " + e.outerHTML.slice(0, 120));
  for (const e of document.querySelectorAll("input:not([type=hidden]),select,textarea")) if (!e.labels.length && !e.getAttribute("aria-label")) bad.push("no label: " + e.outerHTML.slice(0, 120));
  if (document.querySelectorAll("h1").length !== 1) bad.push(document.querySelectorAll("h1").length + " h1");
  const ids = [...document.querySelectorAll("[id]")].map(e => e.id);
  ids.filter((id, i) => ids.indexOf(id) !== i).forEach(id => bad.push("id twice: " + id));
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const colors = new Map(), backs = new Map();
  const read = c => { canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = c; canvas.fillRect(0, 0, 1, 1); return canvas.getImageData(0, 0, 1, 1).data; };
  const rgb = c => { if (!colors.has(c)) colors.set(c, read(c)); return colors.get(c); };
  const over = (c, back) => back.map((v, i) => v * (1 - c[3] / 255) + c[i] * c[3] / 255);
  const backOf = e => { if (!e) return [255, 255, 255]; if (!backs.has(e)) backs.set(e, over(rgb(getComputedStyle(e).backgroundColor), backOf(e.parentElement))); return backs.get(e); };
  const light = c => { const [r, g, b] = [...c].map(v => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  for (const e of document.querySelectorAll("body *")) {
    if (!seen(e) || e.closest("svg,.off,.sr") || ![...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim())) continue;
    const a = light(backOf(e)), b = light(rgb(getComputedStyle(e).color)), ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) bad.push("contrast " + ratio.toFixed(1) + ": " + e.outerHTML.slice(0, 120));
  }
  const inside = (box, x, y) => box.left <= x && x <= box.right && box.top <= y && y <= box.bottom;
  for (const e of document.querySelectorAll("svg text")) { // behind it is the last shape that was drawn there before
    if (!seen(e) || !e.textContent.trim()) continue;
    const svg = e.closest("svg"), box = e.getBoundingClientRect(), x = (box.left + box.right) / 2, y = (box.top + box.bottom) / 2;
    let back = backOf(svg);
    for (const shape of svg.querySelectorAll("rect,circle,ellipse,polygon")) {
      if (!(shape.compareDocumentPosition(e) & Node.DOCUMENT_POSITION_FOLLOWING)) break;
      const s = getComputedStyle(shape);
      if (s.fill !== "none" && s.display !== "none" && inside(shape.getBoundingClientRect(), x, y)) back = over(rgb(s.fill), back);
    }
    const s = getComputedStyle(e), needs = parseFloat(s.fontSize) >= 24 || parseFloat(s.fontSize) >= 18.66 && s.fontWeight >= 700 ? 3 : 4.5;
    const a = light(back), b = light(over(rgb(s.fill), back)), ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < needs) bad.push("contrast " + ratio.toFixed(1) + " in a picture: " + e.outerHTML.slice(0, 120));
  }
  for (const e of document.querySelectorAll(".foot > *")) {
    const range = document.createRange(), line = e.parentElement.firstElementChild, base = e => (range.selectNodeContents(e), range.getBoundingClientRect().bottom);
    if (Math.abs(e.getBoundingClientRect().top - line.getBoundingClientRect().top) < 12 && Math.abs(base(e) - base(line)) > 0.5) bad.push("above its line by " + (base(line) - base(e)) + ": " + e.outerHTML.slice(0, 120));
  }
  for (const e of document.querySelectorAll("table")) if (!e.querySelector("th")) bad.push("a table without heads: " + e.outerHTML.slice(0, 120));
  for (const e of document.querySelectorAll(".newest")) for (const text of e.querySelectorAll("text[data-scale]")) {
    const box = text.getBoundingClientRect(), window = e.getBoundingClientRect();
    if (box.left < window.left - 1 || box.right > window.right + 1) bad.push("the scale is out of sight: " + text.outerHTML);
  }
  const levels = [...document.querySelectorAll("h1,h2,h3,h4,h5,h6")].map(e => Number(e.tagName[1]));
  levels.forEach((level, i) => { if (level > (i ? levels[i - 1] : 0) + 1) bad.push("heading " + (i + 1) + " of level " + level + " follows one of level " + (levels[i - 1] || 0)); });
  for (const [part, n] of [["main", 1], ["body > header", 1], ["body > footer", 1], ["[tabindex]:not([tabindex='0'],[tabindex='-1'])", 0]])
    if (document.querySelectorAll(part).length !== n) bad.push(document.querySelectorAll(part).length + " " + part);
  const labels = [...document.querySelectorAll("nav,[role=region]")].map(e => e.getAttribute("aria-label"));
  labels.forEach((label, i) => { if (!label || labels.indexOf(label) !== i) bad.push("a part has no name of its own: " + label); });
  for (const e of document.querySelectorAll("svg")) if (!e.closest("[aria-hidden=true]") && e.getAttribute("aria-hidden") !== "true" && !e.getAttribute("aria-label") && !(e.getAttribute("aria-labelledby") || "").split(" ").some(id => document.getElementById(id)?.textContent)) bad.push("no name: " + e.outerHTML.slice(0, 120));
  for (const e of document.querySelectorAll("th")) if (!e.scope) bad.push("a head of no column: " + e.outerHTML.slice(0, 120));
  if (!document.documentElement.lang || !document.title) bad.push("no language or title");
  if (document.documentElement.scrollWidth > innerWidth + 1) bad.push("wider than the window: " + document.documentElement.scrollWidth);
  return bad.slice(0, 8);
})()`

// Every page, light and dark, narrow and wide: nothing violates the security policy, no script fails, everything has a name and contrast, and
// nothing is wider than the window. The text of every field is hostile. The usual form has some of the pages, each in one of these looks, and the
// long form more of them.
func TestPagesInABrowser(t *testing.T) {
	if testing.Short() {
		t.Skip("opens each page in a browser, which takes half a minute and more under the race detector; run without -short")
	}
	b := newBrowser(t)
	o := newOffice(t, `Ada <script>alert(1)</script>"><img src=x onerror=alert(2)>`)
	base := o.serve(t)
	looks := 0
	for _, path := range o.pages(t) {
		visited := false
		for _, width := range []int64{320, 768, 1280} {
			for _, theme := range []string{"light", "dark"} {
				if looks++; looks%testsize.Pick(29, 17, 1) != 0 {
					continue
				}
				if !visited {
					b.visit(base + path)
					visited = true
				}
				b.width(width)
				b.theme(theme)
				require.Empty(t, eval[[]string](b, checks), "%s %s %d", path, theme, width)
			}
		}
		b.quiet(path)
	}
}

// With the keyboard alone everything can be reached, in the order of the page, and one sees where one is.
func TestTheKeyboardReachesEverything(t *testing.T) {
	if testing.Short() {
		t.Skip("presses a key for each control in a browser, which takes long under the race detector; run without -short")
	}
	b := newBrowser(t)
	o := newOffice(t, "text")
	base := o.serve(t)
	b.width(1280)
	for theme, path := range map[string]string{"light": "/cases/" + o.claim.String(), "dark": "/act?kind=start&workflow=claim"} {
		b.theme(theme)
		b.visit(base + path)
		b.press("p") // no part of the page is replaced meanwhile
		n := eval[int](b, `(() => {
  window.all = [...document.querySelectorAll("a[href],button,input:not([type=hidden]),select,textarea,summary,[tabindex='0']")]
    .filter(e => e.getClientRects().length > 0 && !e.disabled && getComputedStyle(e).visibility === "visible" && !e.closest("details:not([open]) > :not(summary)") && (e.type !== "radio" || e.checked)); // of radio buttons the chosen one
  const top = document.createElement("i"); // the form has the focus in its first field, and this walk begins above it
  top.tabIndex = -1; document.body.prepend(top); top.focus(); top.remove();
  return all.length;
})()`)
		require.Greater(t, n, 15, path)
		for i := range n {
			b.press("\t")
			got := eval[string](b, fmt.Sprintf(`(() => {
  const e = document.activeElement, s = getComputedStyle(e);
  if (e !== all[%d]) return "not in order: " + e.outerHTML.slice(0, 120) + " in place of " + all[%[1]d].outerHTML.slice(0, 120);
  return s.outlineStyle === "none" || parseFloat(s.outlineWidth) < 2 ? "not seen: " + e.outerHTML.slice(0, 120) : "";
})()`, i))
			require.Empty(t, got, "%s, %s, key %d", path, theme, i+1)
		}
		require.Equal(t, "Skip to the content", eval[string](b, `all[0].textContent`), "it is the first")
	}
}

// On a narrow screen the navigation is one line that scrolls to the entry of the page; what is folded opens in it, and nothing is cut off.
func TestTheNavigationOnANarrowScreen(t *testing.T) {
	b := newBrowser(t)
	o := newOffice(t, "text")
	base := o.serve(t)
	b.width(320)
	for _, path := range []string{"/", "/incidents", "/audit"} {
		b.visit(base + path)
		b.until(`document.readyState === "complete"`)
		require.Less(t, eval[float64](b, `document.querySelector(".top nav").getBoundingClientRect().height`), 48.0, path)
		require.Less(t, eval[float64](b, `document.querySelector(".top").getBoundingClientRect().height`), 110.0, path)
		require.Empty(t, eval[string](b, inSight(`document.querySelector(".top nav [aria-current]")`)), path)
		eval[bool](b, `(() => { document.querySelector(".more summary").click(); return true; })()`)
		for i := range 7 {
			require.Empty(t, eval[string](b, inSight(fmt.Sprintf(`document.querySelectorAll(".more a")[%d]`, i))), path)
		}
		require.Empty(t, eval[[]string](b, checks), path)
	}
	b.quiet("the navigation")
}

// inSight is a script that scrolls what it is given into its list and says what lies over its middle, "" if it is seen there itself.
func inSight(element string) string {
	return `(() => {
  const e = ` + element + `, r = (e.focus(), e.scrollIntoView({inline: "nearest", block: "nearest"}), e.getBoundingClientRect()), top = document.elementFromPoint(r.x + r.width / 2, r.y + r.height / 2);
  return e === top || e.contains(top) ? "" : e.outerHTML + " is below " + (top ? top.outerHTML.slice(0, 200) : "nothing");
})()`
}

// A page changes while one looks at it, the slider shows the past, keys work, and a repair takes a form.
func TestTheCaseInABrowser(t *testing.T) {
	if testing.Short() {
		t.Skip("opens each page in a browser, which takes half a minute and more under the race detector; run without -short")
	}
	b := newBrowser(t)
	o := newOffice(t, "text")
	base := o.serve(t)
	b.width(1280)
	b.visit(base + "/cases/" + o.order.String())
	b.until(`document.querySelector("#livetext").textContent === "live"`)
	_, err := o.Do(t.Context(), workflow.Send(o.order, "paid", "now"))
	require.NoError(t, err)
	b.afterUpdate(`/<h1>[^]*s-completed[^]*<\/h1>/.test(p.head)`, `document.querySelector("h1 .state").textContent.includes("completed")`)

	b.visit(base + "/cases/" + o.claim.String())
	for _, text := range eval[[]string](b, `[...document.querySelectorAll(".why time")].map(t => t.previousSibling.textContent.trim().replace("· ", "") + " " + t.textContent)`) {
		require.Regexp(t, `^(since|until) .*20\d\d.* \((in .+|.+ ago)\)$`, text, "a moment, and how far it is")
	}
	place := `JSON.stringify((r => ({x: r.x, w: r.width}))([...document.querySelectorAll(".task")].find(g => /^decide:/.test(g.querySelector("title").textContent)).querySelector("rect").getBoundingClientRect()))`
	now := eval[string](b, place)
	eval[bool](b, `(() => { const s = document.querySelector("#entry"); s.value = 3; s.dispatchEvent(new Event("input")); return true; })()`)
	b.until(`document.querySelector(".alert.past") !== null && location.search === "?entry=3"`)
	require.Equal(t, "entry 3 of 12", eval[string](b, `document.querySelector(".where b").textContent`))
	require.Equal(t, now, eval[string](b, place), "the picture stays where it is")

	b.visit(base + "/incidents")
	b.press("t")
	require.Equal(t, "dark", eval[string](b, `document.documentElement.dataset.theme`))
	b.press("t")
	b.do("click on the first incident", chromedp.Click(chromedp.CSS(`.group tbody a.button`)))
	b.until(`document.querySelector("input[name=reason]") !== null`)
	b.do("fill in the form", chromedp.SendKeys(chromedp.CSS(`input[name=reason]`), "the bank is back"), chromedp.Click(chromedp.CSS(`.act button`)))
	b.until(`document.querySelector(".alert.good") !== null`)
	require.Equal(t, 2, o.Item(o.bill, "charge").Attempt)
	b.quiet("the case")
}

// A row that is chosen by key, and a link with the focus, stay those of their case when the list changes while one looks at it.
func TestTheChosenRowStaysWhenTheListChanges(t *testing.T) {
	b := newBrowser(t)
	o := newOffice(t, "text")
	base := o.serve(t)
	b.width(1280)
	b.visit(base + "/cases")
	b.until(`document.querySelector("#livetext").textContent === "live"`)
	b.press("j")
	b.press("j")
	const chosen, focused = `document.querySelector("tr.at a").getAttribute("href")`, `document.activeElement.getAttribute("href")`
	row := eval[string](b, chosen)
	link := eval[string](b, `(() => { const a = document.querySelectorAll("main tbody tr")[2].querySelector("a"); a.focus(); return a.getAttribute("href"); })()`)
	rows := eval[int](b, `document.querySelectorAll("main tbody tr").length`)
	started, err := enginetest.Start(t.Context(), o, "order", json.RawMessage(`"new"`))
	require.NoError(t, err)
	b.afterUpdate(`p.rows?.includes("`+started.String()+`")`, `document.querySelector(".news")?.textContent === "1 new, show"`)
	require.Equal(t, rows, eval[int](b, `document.querySelectorAll("main tbody tr").length`), "the new row waits")
	require.Equal(t, row, eval[string](b, chosen))
	require.Equal(t, link, eval[string](b, focused))
	b.press("x")
	require.Equal(t, 1, eval[int](b, `document.querySelectorAll("tr.at input:checked").length`))
	eval[bool](b, `(() => { document.querySelector("main tbody tr:nth-child(3) a").focus(); document.querySelector(".news").click(); return true; })()`)
	b.until(fmt.Sprintf(`document.querySelectorAll("main tbody tr").length > %d`, rows))
	require.Equal(t, row, eval[string](b, chosen))
	require.Equal(t, 1, eval[int](b, `document.querySelectorAll("tr.at input:checked").length`), "it stays ticked")
	require.Equal(t, link, eval[string](b, focused))
	require.Equal(t, 4, eval[int](b, `[...document.querySelectorAll("main tbody tr")].findIndex(r => r.querySelector("a") === document.activeElement) + 1`), "the new row is above it")
	b.press("k")
	b.press("j")
	require.Equal(t, row, eval[string](b, chosen), "back from the row above")
	b.quiet("the list")
}

// The pictures of the docs are made by go test ./admin -run Screenshots -screenshots; they were looked at.
func TestScreenshots(t *testing.T) {
	if !*screenshots {
		t.Skip("it writes the pictures of the docs; run with -screenshots")
	}
	b := newBrowser(t)
	o := newOfficeOf(t, likely)
	o.Advance(12 * time.Second)
	base := o.serve(t)
	for _, shot := range []struct {
		name, path, theme string
		width             int64
	}{
		{"pages-overview", "/", "light", 1280}, {"pages-case", "/cases/" + o.claim.String(), "light", 1280},
		{"pages-case-dark", "/cases/" + o.claim.String() + "?entry=7", "dark", 1280}, {"pages-case-narrow", "/cases/" + o.claim.String(), "light", 320},
		{"pages-workflow", "/workflows/claim", "light", 1280}, {"pages-incidents", "/incidents", "light", 1280}, {"pages-overview-dark", "/", "dark", 1280},
		{"pages-act", "/act?kind=cancel&case=" + o.claim.String(), "light", 1280}, {"pages-start", "/act?kind=start&workflow=claim", "light", 1280},
		{"pages-statistics", "/stats", "light", 1280}, {"pages-statistics-dark", "/stats", "dark", 768},
	} {
		b.theme(shot.theme)
		b.width(shot.width)
		b.visit(base + shot.path)
		b.until(`document.readyState === "complete"`)
		require.NoError(t, os.WriteFile(filepath.Join("..", "docs", "images", shot.name+".png"), b.picture(), 0o644))
	}
}

// Each page of the docs as a picture, light and dark, and the page of the docs that shows them, are made by go test ./admin -run Gallery -screenshots.
func TestGallery(t *testing.T) {
	if !*screenshots {
		t.Skip("it writes the pictures of the docs; run with -screenshots")
	}
	b := newBrowser(t)
	b.width(1280)
	o := newOfficeOf(t, likely)
	o.Advance(12 * time.Second)
	docs := filepath.Join("..", "docs")
	var list strings.Builder
	shown := make(map[string]bool) // one of each kind
	shoot := func(o *office, paths ...string) {
		base := o.serve(t)
		for _, path := range paths {
			about, _, _ := strings.Cut(path, "%")
			about = anyID.ReplaceAllString(about, "ID")
			name := strings.Trim(regexp.MustCompile(`[^a-z]+`).ReplaceAllString(strings.ReplaceAll(about, "ID", "one"), "-"), "-")
			if name == "" {
				name = "overview"
			}
			if shown[name] {
				continue
			}
			shown[name] = true
			fmt.Fprintf(&list, "\n## `%s`\n\n", about)
			b.visit(base + path)
			for _, theme := range []string{"light", "dark"} {
				b.theme(theme)
				file := fmt.Sprintf("%s-%s.webp", name, theme)
				require.NoError(t, os.WriteFile(filepath.Join(docs, "images", "gallery", file), b.pictureWith(page.CaptureScreenshotFormatWebp, 60), 0o644))
				fmt.Fprintf(&list, "![%s, %s](images/gallery/%s)\n", about, theme, file)
			}
		}
	}
	shoot(newPlant(t), "/schedules", "/limits")
	shoot(o, o.pages(t)...)
	require.NoError(t, os.WriteFile(filepath.Join(docs, "gallery.md"), []byte("# Gallery of the pages\n\nEach page, light and dark, 1,280 pixels wide, of one "+
		"database of examples. The pictures are made by `go test ./admin -run Gallery -screenshots`, and [pages.md](pages.md) describes the pages.\n"+list.String()), 0o644))
}

// All pages as pictures, to look at them: go test ./admin -run Pictures -pictures DIR.
func TestPicturesOfAllPages(t *testing.T) {
	if *pictures == "" {
		t.Skip("it writes pictures to look at; run with -pictures DIR")
	}
	b := newBrowser(t)
	o := newOfficeOf(t, likely)
	o.Advance(12 * time.Second)
	plant := newPlant(t)
	shot := 0
	shoot := func(o *office, paths ...string) {
		base := o.serve(t)
		for _, path := range paths {
			if shot++; !regexp.MustCompile(*pictured).MatchString(path) {
				continue
			}
			name := fmt.Sprintf("%02d%s", shot, regexp.MustCompile(`[^a-z]+`).ReplaceAllString(anyID.ReplaceAllString(path, ""), "-"))
			b.visit(base + path)
			for _, width := range []int64{320, 768, 1280, 1920} {
				b.width(width)
				for _, theme := range []string{"light", "dark"} {
					b.theme(theme)
					require.NoError(t, os.WriteFile(filepath.Join(*pictures, fmt.Sprintf("%s-%d-%s.png", name, width, theme)), b.picture(), 0o644))
				}
			}
		}
	}
	shoot(o, o.pages(t)...)
	shoot(plant, "/schedules", "/schedules/a%2Fb%20100%25", "/limits", "/act?kind=schedule-backfill&schedule=a%2Fb+100%25", "/act?kind=set-limit&limit=calls")
	town := newTown(t, "ann")
	shoot(town, town.forms(t)...)
}

// forms are the pages with the forms of commands and of actions on many things, one of each kind.
func (o *office) forms(t testing.TB) (all []string) {
	kinds := make(map[string]bool)
	for address := range crawl(t, o.handler(admin.Config{Access: as("ann")})) {
		path, query, _ := strings.Cut(address, "?")
		v, err := url.ParseQuery(query)
		require.NoError(t, err)
		if kind := path + v.Get("kind"); (path == "/act" || path == "/bulk") && !kinds[kind] {
			kinds[kind] = true
			all = append(all, address)
		}
	}
	return all
}
