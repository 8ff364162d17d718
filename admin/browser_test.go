package admin_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/workflow"
)

var screenshots = flag.Bool("screenshots", false, "write the pictures of the pages into docs/images")

// browser is a tab of a real browser, with what it has complained about.
type browser struct {
	t   *testing.T
	ctx context.Context

	mu         sync.Mutex
	complaints []string
}

// newBrowser starts Chromium; without one the test is skipped, unless TASQ_BROWSER says that there must be one.
func newBrowser(t *testing.T) *browser {
	t.Helper()
	path := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	if path == "" {
		require.Empty(t, os.Getenv("TASQ_BROWSER"), "TASQ_BROWSER is set, and there is no Chromium")
		t.Skip("there is no Chromium on this machine: install the package chromium")
	}
	var b *browser
	var err error
	for range 3 { // on a busy machine the browser sometimes does not answer at all as it starts
		if b, err = startBrowser(t, path); err == nil {
			return b
		}
	}
	require.NoError(t, err)
	return b
}

// startBrowser starts Chromium, which ends with the test.
func startBrowser(t *testing.T, path string) (*browser, error) {
	ctx, end := chromedp.NewExecAllocator(context.Background(), chromedp.ExecPath(path), chromedp.Headless, chromedp.NoSandbox, chromedp.NoFirstRun)
	t.Cleanup(end)
	ctx, cancel := chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	// The browser ends with the context of the call that starts it, so that call cannot have a bound of its own.
	defer time.AfterFunc(time.Minute, end).Stop()
	b := &browser{t: t, ctx: ctx}
	if err := chromedp.Do(ctx, chromedp.Navigate("about:blank")); err != nil {
		return nil, err
	}
	if err := chromedp.Listen(ctx, b.listen); err != nil {
		return nil, err
	}
	_, err := chromedp.Call(ctx, log.Enable, cdp.Empty{})
	return b, err
}

// listen notes errors of scripts, violations of the security policy, and dialogs, which hostile text would open.
func (b *browser) listen(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		b.complaints = append(b.complaints, fmt.Sprintf("exception: %+v", e.ExceptionDetails))
	case *log.EventEntryAdded:
		if e.Entry.Level == "error" {
			b.complaints = append(b.complaints, e.Entry.Text+" "+e.Entry.URL)
		}
	case *page.EventJavascriptDialogOpening:
		b.complaints = append(b.complaints, "dialog: "+e.Message)
	}
}

func (b *browser) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, 60*time.Second)
	defer cancel()
	require.NoError(b.t, chromedp.Do(ctx, steps...))
}

// eval evaluates an expression of the page.
func eval[T any](b *browser, expression string) T {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, 60*time.Second)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression))
	require.NoError(b.t, err, expression)
	return v
}

// until waits for an expression to be true; a page that is left meanwhile has none.
func (b *browser) until(expression string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, 60*time.Second)
	defer cancel()
	for {
		if is, err := chromedp.Run(ctx, chromedp.Evaluate[bool](expression)); err == nil && is {
			return
		}
		require.NoError(b.t, chromedp.Do(ctx, chromedp.Sleep(50*time.Millisecond)), expression)
	}
}

func (b *browser) look(theme string, width int64) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, 60*time.Second)
	defer cancel()
	_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia,
		emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}}})
	require.NoError(b.t, err)
	b.do(chromedp.EmulateViewport(width, 900))
}

func (b *browser) quiet(where string) {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	require.Empty(b.t, b.complaints, where)
}

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
  const rgb = c => { canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = c; canvas.fillRect(0, 0, 1, 1); return canvas.getImageData(0, 0, 1, 1).data; };
  const light = c => { const [r, g, b] = [...c].map(v => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  for (const e of document.querySelectorAll("body *")) {
    if (!seen(e) || e.closest("svg,.off,.sr") || ![...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim())) continue;
    let back = [255, 255, 255], chain = [];
    for (let p = e; p; p = p.parentElement) chain.unshift(rgb(getComputedStyle(p).backgroundColor));
    for (const c of chain) { const a = c[3] / 255; back = back.map((v, i) => v * (1 - a) + c[i] * a); }
    const a = light(back), b = light(rgb(getComputedStyle(e).color)), ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) bad.push("contrast " + ratio.toFixed(1) + ": " + e.outerHTML.slice(0, 120));
  }
  if (document.documentElement.scrollWidth > innerWidth + 1) bad.push("wider than the window: " + document.documentElement.scrollWidth);
  return bad.slice(0, 8);
})()`

// Every page, light and dark, narrow and wide: nothing violates the security policy, no script fails, everything has a name and contrast, and
// nothing is wider than the window. The text of every field is hostile.
func TestPagesInABrowser(t *testing.T) {
	if testing.Short() {
		t.Skip("opens each page in a browser, which takes half a minute and more under the race detector; run without -short")
	}
	b := newBrowser(t)
	o := newOffice(t, `Ada <script>alert(1)</script>"><img src=x onerror=alert(2)>`)
	base := o.serve(t)
	paths := o.paths(t)
	paths = append(paths, "/act?kind=cancel&case="+o.claim.String(), "/act?kind=send&case="+o.order.String(), "/bulk?kind=retry&workflow=bill", "/search?q=nothing",
		"/cases?state=canceled&workflow=claim")
	for _, path := range paths {
		if strings.HasPrefix(path, "/api/") || strings.Contains(path, "q=cla") {
			continue
		}
		b.do(chromedp.Navigate(base + path))
		for _, theme := range []string{"light", "dark"} {
			for _, width := range []int64{320, 1280} {
				b.look(theme, width)
				require.Empty(t, eval[[]string](b, checks), "%s %s %d", path, theme, width)
			}
		}
		b.quiet(path)
	}
}

// A page changes while one looks at it, the slider shows the past, keys work, and a repair takes a form.
func TestTheCaseInABrowser(t *testing.T) {
	if testing.Short() {
		t.Skip("opens each page in a browser, which takes half a minute and more under the race detector; run without -short")
	}
	b := newBrowser(t)
	o := newOffice(t, "text")
	base := o.serve(t)
	b.look("light", 1280)
	b.do(chromedp.Navigate(base + "/cases/" + o.order.String()))
	b.until(`document.querySelector("#livetext").textContent === "live"`)
	_, err := o.Do(t.Context(), workflow.Send(o.order, "paid", "now"))
	require.NoError(t, err)
	b.until(`document.querySelector("h1 .state").textContent.includes("completed")`)

	b.do(chromedp.Navigate(base + "/cases/" + o.claim.String()))
	place := `JSON.stringify((r => ({x: r.x, w: r.width}))(document.querySelector('[data-name="decide"] rect').getBoundingClientRect()))`
	now := eval[string](b, place)
	eval[bool](b, `(() => { const s = document.querySelector("#entry"); s.value = 3; s.dispatchEvent(new Event("input")); return true; })()`)
	b.until(`document.querySelector(".alert.past") !== null && location.search === "?entry=3"`)
	require.Equal(t, "entry 3 of 12", eval[string](b, `document.querySelector(".where b").textContent`))
	require.Equal(t, now, eval[string](b, place), "the picture stays where it is")

	b.do(chromedp.Navigate(base+"/incidents"), chromedp.KeyEvent("t"))
	require.Equal(t, "dark", eval[string](b, `document.documentElement.dataset.theme`))
	b.do(chromedp.KeyEvent("t"))
	b.do(chromedp.Click(chromedp.CSS(`.group tbody a.button`)))
	b.until(`document.querySelector("input[name=reason]") !== null`)
	b.do(chromedp.SendKeys(chromedp.CSS(`input[name=reason]`), "the bank is back"), chromedp.Click(chromedp.CSS(`.act button`)))
	b.until(`document.querySelector(".alert.good") !== null`)
	require.Equal(t, 2, o.Item(o.bill, "charge").Attempt)
	b.quiet("the case")
}

// The pictures of the docs are made by go test ./admin -run Screenshots -screenshots; they were looked at.
func TestScreenshots(t *testing.T) {
	if !*screenshots {
		t.Skip("it writes the pictures of the docs; run with -screenshots")
	}
	b := newBrowser(t)
	o := newOfficeOf(t, "ann", "model fraud-2: 429 too many requests")
	o.Advance(12 * time.Second)
	base := o.serve(t)
	for _, shot := range []struct {
		name, path, theme string
		width             int64
	}{
		{"pages-overview", "/", "light", 1280}, {"pages-case", "/cases/" + o.claim.String(), "light", 1280},
		{"pages-case-dark", "/cases/" + o.claim.String() + "?entry=7", "dark", 1280}, {"pages-case-narrow", "/cases/" + o.claim.String(), "light", 320},
		{"pages-workflow", "/workflows/claim", "light", 1280}, {"pages-incidents", "/incidents", "light", 1280}, {"pages-overview-dark", "/", "dark", 1280},
		{"pages-act", "/act?kind=cancel&case=" + o.claim.String(), "light", 1280},
	} {
		b.look(shot.theme, shot.width)
		b.do(chromedp.Navigate(base + shot.path))
		b.until(`document.readyState === "complete"`)
		picture, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join("..", "docs", "images", shot.name+".png"), picture, 0o644))
	}
}
