package admin_test

import (
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/admin"
	"github.com/tasq-dev/tasq/engine/bulk"
	"github.com/tasq-dev/tasq/workflow"
)

var update = flag.Bool("update", false, "write the golden HTML of the pages")

var (
	wholeID = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}`)
	tailID  = regexp.MustCompile(`…([0-9a-f]{8})`)
	entry   = regexp.MustCompile(`(\bat=|\bfrom=|\bid="e)(\d+)`)
	facts   = regexp.MustCompile(`(?s)(id="part-database">).*?(</section>)`)
	engines = regexp.MustCompile(`(?s)<div class="part" id="part-(?:engines|dead)">.*?</section>\s*</div>\n`) // of a server alone
	chance  = regexp.MustCompile(`(data-label="worker">)[^<]+|(data-label="entry"><a href="[^"]*">)[0-9]+|(pages )[0-9a-f]{24}|(style-|script-|icon-|net-)[0-9a-f]{8,12}|(seen=)[0-9a-z]+`)
)

// normal is the content of a page with numbers instead of what differs from run to run and between the stores: ids, positions of the journal, workers,
// keys of forms, names of files by their content.
func normal(page string) string {
	if from, to := strings.Index(page, "<main"), strings.Index(page, "</main>"); from >= 0 {
		page = page[from:to]
	}
	numbers := make(map[string]string)
	name := func(tail string) string {
		if numbers[tail] == "" {
			numbers[tail] = fmt.Sprintf("ID%d", len(numbers)+1)
		}
		return numbers[tail]
	}
	page = wholeID.ReplaceAllStringFunc(page, func(id string) string { return name(id[len(id)-8:]) })
	page = tailID.ReplaceAllStringFunc(page, func(tail string) string { return "…" + name(strings.TrimPrefix(tail, "…")) })
	positions := make(map[string]string)
	page = entry.ReplaceAllStringFunc(page, func(at string) string {
		part := entry.FindStringSubmatch(at)
		if positions[part[2]] == "" {
			positions[part[2]] = fmt.Sprintf("POSITION%d", len(positions)+1)
		}
		return part[1] + positions[part[2]]
	})
	page = engines.ReplaceAllString(facts.ReplaceAllString(page, "${1}X$2"), "")
	page = chance.ReplaceAllString(page, "$1$2$3$4${5}X")
	return strings.ReplaceAll(page, "><", ">\n<") + "\n"
}

// The HTML of the pages is that of the golden files, so that a change of it is seen: go test ./admin -run Golden -update writes them.
func TestGoldenPages(t *testing.T) {
	o := newOfficeOf(t, likely)
	h := o.handler(admin.Config{Access: eve})
	for name, path := range map[string]string{
		"overview": "/", "case": "/cases/" + o.order.String(), "history": "/cases/" + o.bill.String() + "?tab=history", "cases": "/cases?state=started",
		"incidents": "/incidents", "workflow": "/workflows/bill", "item": "/items/" + o.Item(o.bill, "charge.1.1").ID.String(), "doctor": "/doctor",
		"act": "/act?kind=retry&item=" + o.Item(o.bill, "charge.1.1").ID.String(), "statistics": "/stats", "missing": "/cases/none",
		"workflows": "/workflows", "items": "/items", "jobs": "/jobs", "steps": "/steps", "events": "/events", "audit": "/audit", "limits": "/limits",
		"claim": "/cases/" + o.claim.String() + "?tab=jobs", "failed": "/items?state=failed", "search": "/search?q=nothing", "retry": "/act?kind=retry&item=" + o.Item(o.failed, "run.1.1").ID.String(),
	} {
		golden(t, h, name, path)
	}
	_, err := o.bulk.Start(t.Context(), o.Engine, bulk.Action{Kind: workflow.KindRetry, Actor: "eve", Reason: "the account is filled"},
		[]string{o.Item(o.bill, "charge.1.1").ID.String()})
	require.NoError(t, err)
	o.Drain()
	golden(t, h, "bulk", "/bulk")
}

// golden compares a page with its golden file, or writes that.
func golden(t *testing.T, h http.Handler, name, path string) {
	t.Helper()
	w := get(h, path)
	require.NotEqual(t, http.StatusInternalServerError, w.Code, name)
	file, got := filepath.Join("testdata", name+".html"), normal(w.Body.String())
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), got, "%s has changed; if it is meant to, run go test ./admin -run Golden -update", path)
}
