package admin_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
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

	"github.com/tasq-dev/tasq/internal/testsize"
)

// browserBound is how long a test waits for the browser to do one thing. It is only a bound against hanging.
const browserBound = time.Minute

// chromium is the one browser of all tests of the process. Each test has a tab in a profile of its own, without the cookies and the storage of the
// others.
var chromium struct {
	sync.Mutex
	ctx context.Context // nil until a test needs the browser
	end func()
}

func TestMain(m *testing.M) {
	testsize.Checks(20, 50)
	code := m.Run()
	endBrowser()
	os.Exit(code)
}

// endBrowser ends the browser if there is one. One that does not end is left behind.
func endBrowser() {
	if chromium.ctx == nil {
		return
	}
	if err := within(func() error { chromium.end(); return nil }); err != nil {
		fmt.Println("the browser does not end:", err)
	}
	chromium.ctx = nil
}

// within runs a function, which may hang.
func within(f func() error) error {
	done := make(chan error, 1)
	go func() { done <- f() }()
	select {
	case err := <-done:
		return err
	case <-time.After(browserBound):
		return fmt.Errorf("no end after %s", browserBound)
	}
}

// browser is a tab of a real browser, with what it has complained about.
type browser struct {
	t   *testing.T
	ctx context.Context

	mu         sync.Mutex
	complaints []string
}

// newBrowser opens a tab; without Chromium the test is skipped, unless TASQ_BROWSER says that there must be one. With the value "none" it is
// as if there were no Chromium.
func newBrowser(t *testing.T) *browser {
	t.Helper()
	path, wanted := chromiumPath(), os.Getenv("TASQ_BROWSER")
	if path == "" || wanted == "none" {
		require.Contains(t, []string{"", "none"}, wanted, "TASQ_BROWSER is set, and there is no Chromium")
		t.Skip("there is no Chromium on this machine: install the package chromium")
	}
	chromium.Lock()
	defer chromium.Unlock()
	var all error
	for range 3 { // on a busy machine the browser sometimes does not answer at all as it starts
		b, err := openTab(t, path)
		if err == nil {
			return b
		}
		all = errors.Join(all, err)
		endBrowser()
	}
	require.NoError(t, all)
	return nil
}

func chromiumPath() string {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			return found
		}
	}
	return ""
}

// openTab opens a tab, which is closed with the test, in the browser, which it starts if there is none.
func openTab(t *testing.T, path string) (*browser, error) {
	if chromium.ctx == nil {
		if err := startBrowser(path); err != nil {
			return nil, err
		}
	}
	ctx, cancel := chromedp.NewContext(chromium.ctx, chromedp.WithNewBrowserContext())
	t.Cleanup(func() {
		if err := within(func() error { cancel(); return nil }); err != nil {
			t.Error("the tab does not close:", err)
		}
	})
	b := &browser{t: t, ctx: ctx}
	return b, bounded(cancel, "open a tab", func() error {
		if err := chromedp.Do(ctx); err != nil {
			return err
		}
		if err := chromedp.Listen(ctx, b.listen); err != nil {
			return err
		}
		if _, err := chromedp.Call(ctx, log.Enable, cdp.Empty{}); err != nil {
			return err
		}
		_, err := chromedp.Call(ctx, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: noteUpdates})
		return err
	})
}

// noteUpdates has each page keep the updates of its live stream that its script has handled, for afterUpdate.
const noteUpdates = `window.handled = [];
EventSource.prototype.addEventListener = function(kind, f) {
  EventTarget.prototype.addEventListener.call(this, kind, e => { try { f(e); } finally { handled.push(JSON.parse(e.data)); } });
};`

// startBrowser starts Chromium.
func startBrowser(path string) error {
	parent, end := chromedp.NewExecAllocator(context.Background(), chromedp.ExecPath(path), chromedp.Headless, chromedp.NoSandbox, chromedp.NoFirstRun)
	ctx, cancel := chromedp.NewContext(parent)
	chromium.ctx, chromium.end = ctx, func() { cancel(); end() }
	return bounded(end, "start the browser", func() error { return chromedp.Do(ctx, chromedp.Navigate("about:blank")) })
}

// bounded does what makes a context of chromedp: a browser or a tab ends with the context of the call that makes it, so that call cannot have a bound
// of its own. What takes too long is ended.
func bounded(end func(), what string, f func() error) error {
	timer := time.AfterFunc(browserBound, end)
	defer timer.Stop()
	if err := within(f); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
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

// bound is a context for one thing that the browser does.
func (b *browser) bound() (context.Context, context.CancelFunc) {
	return context.WithTimeout(b.ctx, browserBound)
}

// visit loads a page.
func (b *browser) visit(url string) {
	b.t.Helper()
	b.do("visit "+url, chromedp.Navigate(url))
}

// do does steps; what they are for is in the error.
func (b *browser) do(what string, steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := b.bound()
	defer cancel()
	require.NoError(b.t, chromedp.Do(ctx, steps...), what)
}

// press presses keys, wherever the focus is.
func (b *browser) press(keys string) {
	b.t.Helper()
	b.do("press "+keys, chromedp.KeyEvent(keys))
}

// eval evaluates an expression of the page.
func eval[T any](b *browser, expression string) T {
	b.t.Helper()
	ctx, cancel := b.bound()
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression))
	require.NoError(b.t, err, expression)
	return v
}

// until waits for an expression to be true; a page that is left meanwhile has none.
func (b *browser) until(expression string) {
	b.t.Helper()
	ctx, cancel := b.bound()
	defer cancel()
	for {
		if is, err := chromedp.Run(ctx, chromedp.Evaluate[bool](expression)); err == nil && is {
			return
		}
		require.NoError(b.t, chromedp.Do(ctx, chromedp.Sleep(50*time.Millisecond)), "waited for %s", expression)
	}
}

// afterUpdate waits until the script of the page has handled an update for which a condition on its parts p holds, and requires the page to show it: a
// script that leaves it out fails at once, and not after the bound of a wait.
func (b *browser) afterUpdate(condition, shown string) {
	b.t.Helper()
	b.until(`handled.some(p => ` + condition + `)`)
	require.True(b.t, eval[bool](b, shown), "the script got the update (%s) and the page does not show it: %s", condition, shown)
}

// theme has the page asked for in light or dark.
func (b *browser) theme(theme string) {
	b.t.Helper()
	ctx, cancel := b.bound()
	defer cancel()
	_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia,
		emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}}})
	require.NoError(b.t, err, "theme %s", theme)
}

func (b *browser) width(pixels int64) {
	b.t.Helper()
	b.do(fmt.Sprintf("a window of %d pixels", pixels), chromedp.EmulateViewport(pixels, 900))
}

// picture is the whole page as PNG.
func (b *browser) picture() []byte {
	b.t.Helper()
	ctx, cancel := b.bound()
	defer cancel()
	picture, err := chromedp.Run(ctx, chromedp.FullScreenshot(100))
	require.NoError(b.t, err, "picture")
	return picture
}

// pictureWith is the whole page in a format that loses a part, with a quality up to 100.
func (b *browser) pictureWith(format page.CaptureScreenshotFormat, quality int64) []byte {
	b.t.Helper()
	ctx, cancel := b.bound()
	defer cancel()
	beyond := true
	picture, err := chromedp.Call(ctx, page.CaptureScreenshot, page.CaptureScreenshotParams{Format: format, Quality: &quality, CaptureBeyondViewport: &beyond})
	require.NoError(b.t, err, "picture")
	return picture.Data
}

func (b *browser) quiet(where string) {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	require.Empty(b.t, b.complaints, where)
}
