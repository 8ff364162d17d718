package admin_test

import (
	"context"
	"encoding/json"
	stdnet "net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/admin"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/internal/testsize"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// tab opens another tab of the same browser, with its cookies, storage and connections.
func (b *browser) tab() *browser {
	b.t.Helper()
	ctx, cancel := chromedp.NewContext(b.ctx)
	b.t.Cleanup(func() { _ = within(func() error { cancel(); return nil }) })
	other := &browser{t: b.t, ctx: ctx}
	require.NoError(b.t, bounded(cancel, "open a tab", func() error { return chromedp.Do(ctx) }))
	return other
}

const livetext = `document.querySelector("#livetext").textContent`

// A browser has six connections to a server. With eight live pages in sight, all load, and a ninth; the newest are live, and the others say that they are
// not, until they get the focus.
func TestManyWindowsOfOneBrowser(t *testing.T) {
	b := newBrowser(t)
	base := newOffice(t, "text").serve(t)
	tabs := []*browser{b}
	for len(tabs) < 9 {
		tabs = append(tabs, b.tab())
	}
	for _, tab := range tabs {
		tab.visit(base + "/cases")
		tab.until(livetext + ` === "live"`)
	}
	for i, tab := range tabs {
		want := "live"
		if i < len(tabs)-4 {
			want = "paused: live in other windows"
		}
		tab.until(livetext + ` === "` + want + `"`)
	}
	require.True(t, eval[bool](b, `dispatchEvent(new Event("focus"))`))
	b.until(livetext + ` === "live"`)
	tabs[5].until(livetext + ` !== "live"`)
	b.quiet("the first window")
}

// A page is printed in the light colors, whatever the browser shows, and without what only a screen needs.
func TestAPageIsPrintedInLightColors(t *testing.T) {
	b := newBrowser(t)
	b.visit(newOffice(t, "text").serve(t) + "/cases")
	look := func(media, theme string) string {
		ctx, cancel := b.bound()
		defer cancel()
		_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia,
			emulation.SetEmulatedMediaParams{Media: media, Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}}})
		require.NoError(t, err)
		return eval[string](b, `getComputedStyle(document.body).color + " " + getComputedStyle(document.body).backgroundColor`)
	}
	light := look("screen", "light")
	require.NotEqual(t, light, look("screen", "dark"))
	require.Equal(t, light, look("print", "dark"))
	require.Equal(t, "none", eval[string](b, `getComputedStyle(document.querySelector(".top")).display`))
	require.True(t, eval[bool](b, `(document.documentElement.dataset.theme = "dark") === "dark"`), "chosen on the page")
	require.Equal(t, light, look("print", "light"))
}

// On paper nothing scrolls: the whole net fits the page, a payload is printed to its end, and controls are left out.
func TestAPrintedCaseIsWhole(t *testing.T) {
	b := newBrowser(t)
	long := likely
	long.account = strings.Repeat("long ", 2000)
	o := newOfficeOf(t, long)
	b.width(500)
	b.visit(o.serve(t) + "/cases/" + o.claim.String() + "?tab=data")
	const whole = `[...document.querySelectorAll(".netbox,pre")].every(e => e.scrollWidth <= e.clientWidth + 1 && e.scrollHeight <= e.clientHeight + 1)`
	require.False(t, eval[bool](b, whole), "on the screen they scroll")
	b.emulate(emulation.SetEmulatedMediaParams{Media: "print"})
	require.True(t, eval[bool](b, whole))
	require.Empty(t, eval[string](b, `[...document.querySelectorAll("main :is(button,input)")].filter(e => e.getClientRects().length).map(e => e.outerHTML).join()`))
}

// With the colors that a user forces on all pages, the legend of a chart has those of the chart still.
func TestALegendHasTheColorsOfItsChart(t *testing.T) {
	b := newBrowser(t)
	o := newOffice(t, "text")
	b.visit(o.serve(t) + "/cases/" + o.claim.String())
	b.emulate(emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "forced-colors", Value: "active"}}})
	require.True(t, eval[bool](b, `matchMedia("(forced-colors: active)").matches`))
	require.Equal(t, 6, eval[int](b, `new Set([...document.querySelectorAll(".legend i")].map(e => getComputedStyle(e).backgroundColor)).size`))
}

// emulate has the page shown in a medium, or as a user prefers it.
func (b *browser) emulate(p emulation.SetEmulatedMediaParams) {
	b.t.Helper()
	ctx, cancel := b.bound()
	defer cancel()
	_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, p)
	require.NoError(b.t, err)
}

// What is typed into a form is there after a reload, only in that form, and is forgotten once the form is sent.
func TestADraftOfAFormSurvivesAReload(t *testing.T) {
	b := newBrowser(t)
	o := newOffice(t, "text")
	base := o.serve(t)
	form, reason := base+"/act?kind=cancel&case="+o.order.String(), `document.querySelector("form[data-draft] [name=reason]")`
	b.visit(form)
	require.True(t, eval[bool](b, `(d => { if (d) d.open = true; `+reason+`.focus(); return document.activeElement === `+reason+` })(`+reason+`.closest("details"))`))
	b.press("ordered twice")
	require.Equal(t, "ordered twice", eval[string](b, reason+".value"))
	b.visit(base + "/act?kind=cancel&case=" + o.claim.String())
	require.Empty(t, eval[string](b, reason+".value"), "of another case")
	b.visit(form)
	b.until(reason + `.value === "ordered twice"`)
	require.True(t, eval[bool](b, reason+`.form.requestSubmit() === undefined`))
	b.until(`document.querySelector(".alert.good") !== null && !Object.keys(localStorage).some(k => k.startsWith("tasq-draft-"))`)
	c, err := o.Case(t.Context(), o.order)
	require.NoError(t, err)
	require.Equal(t, state.CaseCanceled, c.State)
	b.quiet("a form")
}

// startAt starts a server at an address, and returns what stops it with all its connections, as a process that ends does.
func startAt(t *testing.T, address string, h http.Handler) (*httptest.Server, func()) {
	t.Helper()
	listener, err := stdnet.Listen("tcp", address)
	require.NoError(t, err)
	server := httptest.NewUnstartedServer(h)
	require.NoError(t, server.Listener.Close())
	server.Listener = listener
	streams, end := context.WithCancel(context.Background())
	server.Config.BaseContext = func(stdnet.Listener) context.Context { return streams }
	server.Start()
	return server, func() {
		end()
		server.CloseClientConnections()
		server.Close()
	}
}

// A form that is sent to a server that has stopped is there again, with what was typed, once the server runs; it is sent once, and its draft ends then.
func TestAServerStopsBeforeAFormIsSent(t *testing.T) {
	b := newBrowser(t)
	o := newOffice(t, "text")
	h := admin.Handler(o.Engine.Engine, admin.Config{Access: as("ann"), Bulk: o.bulk, Clock: retry.SystemClock})
	server, stop := startAt(t, "127.0.0.1:0", h)
	item := o.Item(o.claim, "assess.1.2").ID
	form := server.URL + "/act?kind=item-complete&item=" + item.String()
	b.visit(form)
	b.until(`document.querySelector(".act textarea") !== null`)
	b.do("fill in the form", chromedp.SendKeys(chromedp.CSS(`.act textarea`), `{"mine":1}`))
	stop()
	b.do("complete it", chromedp.Click(chromedp.CSS(`.act button.primary`)))
	b.until(`document.querySelector(".act") === null && document.readyState === "complete"`) // the browser's page of an error
	require.Equal(t, workitem.Started, o.Item(o.claim, "assess.1.2").State)

	_, stop = startAt(t, server.Listener.Addr().String(), h)
	t.Cleanup(stop)
	b.visit(server.URL + "/cases/" + o.claim.String())
	b.visit(form)
	b.until(`document.querySelector(".act textarea")?.value === '{"mine":1}'`)
	b.do("complete it", chromedp.Click(chromedp.CSS(`.act button.primary`)))
	b.until(`document.querySelector(".alert.good") !== null && !Object.keys(localStorage).some(k => k.startsWith("tasq-draft-"))`)
	require.JSONEq(t, `{"mine":1}`, string(o.Item(o.claim, "assess.1.2").Output))
}

// A server that restarts: the page says that it is not live, recovers by itself, and shows what happened meanwhile. A browser repeats a
// request that has no answer. In the long form the first one has the answer of a busy server, after which only the page itself tries again.
func TestAPageRecoversFromARestartOfItsServer(t *testing.T) {
	b := newBrowser(t)
	o := newOffice(t, "text")
	pages := admin.Handler(o.Engine.Engine, admin.Config{Access: as("ann"), Bulk: o.bulk, Clock: retry.SystemClock})
	var busy atomic.Bool // it refuses one stream
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/live" && busy.CompareAndSwap(true, false) {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		pages.ServeHTTP(w, r)
	})
	server, stop := startAt(t, "127.0.0.1:0", h)
	b.visit(server.URL + "/cases/" + o.claim.String())
	b.until(livetext + ` === "live"`)
	stop()
	b.until(livetext + `.startsWith("not live since ")`)
	require.Contains(t, eval[string](b, `document.querySelector("#part-why").textContent`), "withdraw.1.1", "the last state stays")
	o.StartItem(o.claim, "withdraw")
	busy.Store(testsize.Long())
	_, stop = startAt(t, server.Listener.Addr().String(), h)
	t.Cleanup(stop)
	b.until(livetext + ` === "live" && document.querySelector("#part-why").textContent.includes("withdraw.1.1 (started")`)
	require.False(t, busy.Load(), "a stream was refused")
}

// Of two users who complete one item, the second gets the answer that it has ended, and keeps what was typed.
func TestTwoBrowsersActOnOneItem(t *testing.T) {
	o := newOffice(t, "text")
	first, second := newBrowser(t), newBrowser(t)
	form := o.serve(t) + "/act?kind=item-complete&item=" + o.Item(o.claim, "assess.1.2").ID.String()
	for _, b := range []*browser{first, second} {
		b.visit(form)
		b.until(`document.querySelector(".act textarea") !== null`)
		b.do("fill in the form", chromedp.SendKeys(chromedp.CSS(`.act textarea`), `{"mine":1}`))
	}
	first.do("complete it", chromedp.Click(chromedp.CSS(`.act button.primary`)))
	first.until(`document.querySelector(".alert.good") !== null`)
	second.do("complete it, too", chromedp.Click(chromedp.CSS(`.act button.primary`)))
	second.until(`document.querySelector(".alert.bad") !== null`)
	require.Contains(t, eval[string](second, `document.querySelector(".alert.bad").textContent`), "completed")
	require.JSONEq(t, `{"mine":1}`, eval[string](second, `document.querySelector(".act textarea").value`))
	require.JSONEq(t, `{"mine":1}`, string(o.Item(o.claim, "assess.1.2").Output))
}

// With text of twice the size everything is there, has contrast and a name, and no page is wider than the window.
func TestTextOfTwiceTheSize(t *testing.T) {
	b := newBrowser(t)
	o := newOffice(t, "text")
	base := o.serve(t)
	_, err := enginetest.Start(t.Context(), o, "order", json.RawMessage(`"new"`))
	require.NoError(t, err)
	b.width(1280)
	for _, path := range []string{"/", "/workflows/claim", "/cases", "/cases/" + o.claim.String(), "/incidents", "/doctor", "/act?kind=start&workflow=claim"} {
		b.visit(base + path)
		require.Equal(t, "30px", eval[string](b, `(document.documentElement.style.fontSize = "30px", getComputedStyle(document.documentElement).fontSize)`))
		require.Empty(t, eval[[]string](b, checks), path)
		require.Empty(t, eval[string](b, `[...document.querySelectorAll(".top a, .top button, .top summary")].filter(e => !e.closest("details:not([open]) > :not(summary)") && e.getBoundingClientRect().right > innerWidth).map(e => e.outerHTML).join()`), path)
	}
}
