package admin_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// The longest names, of one word each, break where their columns end: no column is out of sight, and no field of a form is wider than the window.
func TestTheLongestNames(t *testing.T) {
	name := strings.Repeat("w", 199)
	by := workflow.By(strings.Repeat("v", workflow.MaxName))
	s := strand(t, name, compiled(t, "workflow "+name+"\n start s\n end e\n task "+name+"a policy=incident\n flow s -> "+name+"a\n flow "+name+"a -> e\n")...)
	s.o.FailItem(s.id, name+"a", &workitem.Failure{Code: strings.Repeat("c", 200), Message: strings.Repeat("m", 2000)}, by)
	for _, c := range []workflow.Command{
		workflow.Start(name, []byte(`"x"`), by, workflow.BusinessKey(strings.Repeat("k", 200))),
		workflow.PauseQueue(strings.Repeat("q", workflow.MaxName), by, workflow.Because(strings.Repeat("r", 900))),
		workflow.Send(s.id, strings.Repeat("e", workflow.MaxEventName), []byte(`1`), by),
	} {
		require.NoError(t, enginetest.Do(t.Context(), s.o, c))
	}
	first := journal(t, s.o.Engine, s.id)[0].Seq
	b := newBrowser(t)
	base, page := s.o.serve(t), "/cases/"+s.id.String()
	for _, path := range []string{"/", "/cases", page, fmt.Sprint(page, "/differences?from=", first), "/audit"} {
		b.visit(base + path)
		for _, width := range []int64{320, 1024, 1280} {
			b.width(width)
			eval[bool](b, `(document.querySelectorAll("details.filter").forEach(d => d.open = true), true)`)
			require.Empty(t, eval[[]string](b, checks), "%s at %d", path, width)
			require.Empty(t, eval[[]string](b, `[...document.querySelectorAll(".scroll")].filter(e => e.scrollWidth > e.clientWidth + 1).map(e => e.getAttribute("aria-label"))`), "columns that are out of sight, %s at %d", path, width)
		}
	}
	b.quiet("long names")
}
