package admin_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/builder"
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

// Columns of names of some forty characters leave the others room, on small screens too.
func TestLongNamesLeaveRoom(t *testing.T) {
	const queue, task = "archive-of-the-north-western-region-with-a-long-name", "file-the-claim-in-the-archive-of-the-region"
	desk := builder.New[any]("desk")
	desk.Path(desk.Start(), builder.Task(desk, task, builder.Work[any, any]{Input: builder.CaseInput(desk), Queue: queue}), desk.End())
	o := &office{Engine: enginetest.New(t, desk.MustBuild())}
	for n := range 2 {
		id, err := enginetest.Start(t.Context(), o.Engine, "desk", []byte(`{"name":"Ada Lovelace","note":"an input that is long enough to be cut"}`))
		require.NoError(t, err)
		o.StartItem(id, task, workflow.By("bartholomew.fitzgerald-montgomery@insurance.example.com"))
		if n == 0 {
			enginetest.CompleteItem(o.Engine, id, task, 1)
		}
	}
	b := newBrowser(t)
	base := o.serve(t)
	for path, width := range map[string]int64{"/items": 1024, "/workflows/desk": 768} {
		b.width(width)
		b.visit(base + path)
		require.Empty(t, eval[[]string](b, `[...document.querySelectorAll(".scroll")].filter(e => e.scrollWidth > e.clientWidth + 1).map(e => e.getAttribute("aria-label"))`), "%s at %d", path, width)
	}
	b.quiet("long names")
}
