package admin_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The rules of axe-core find nothing on any page, light and dark. The library is no part of this module: TASQ_AXE is the path of its axe.min.js, as
// .ci/run fetches it.
func TestAxeFindsNothing(t *testing.T) {
	path := os.Getenv("TASQ_AXE")
	if testing.Short() {
		t.Skip("examines each page in a browser, which takes long under the race detector; run without -short")
	}
	if path == "" {
		t.Skip("TASQ_AXE does not name the file axe.min.js of the npm package axe-core")
	}
	axe, err := os.ReadFile(path)
	require.NoError(t, err)
	b := newBrowser(t)
	o := newOffice(t, "text")
	base := o.serve(t)
	b.width(1280)
	for _, path := range append(o.pages(t), "/act?kind=move&case="+o.claim.String()) {
		b.visit(base + path)
		b.press("p") // no part of the page is replaced meanwhile
		eval[bool](b, string(axe)+"\n;true")
		for _, theme := range []string{"light", "dark"} {
			b.theme(theme)
			for _, found := range axeRun(b) {
				t.Errorf("%s %s: %s", path, theme, found)
			}
		}
	}
	eval[bool](b, `document.querySelector("main form label").replaceWith(...document.querySelector("main form label").children), true`)
	require.Contains(t, strings.Join(axeRun(b), "\n"), "select-name: ", "a field without a label is found")
}

// axeRun are the violations of the rules that the present page has.
func axeRun(b *browser) []string {
	eval[bool](b, `(() => {
  window.found = null;
  const line = v => v.id + ": " + v.nodes.slice(0, 3).map(n => n.html.slice(0, 160) + " " + n.failureSummary).join(" | ");
  axe.run().then(r => { found = r.violations.map(line); }, e => { found = ["axe-core fails: " + e]; });
  return true;
})()`)
	b.until(`window.found !== null`)
	return eval[[]string](b, `window.found`)
}
