package admin_test

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/admin"
	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// newFamily is an office with one case that has so many child cases, each of which waits for a person.
func newFamily(t testing.TB, children int) (*office, workitem.CaseID) {
	t.Helper()
	c := builder.New[int]("part")
	c.Path(c.Start(), builder.Task(c, "ask", builder.Work[int, any]{Input: builder.CaseInput(c), Queue: "office"}), c.End())
	child, err := c.Build()
	require.NoError(t, err)
	p := builder.New[any]("whole")
	p.Path(p.Start(), builder.Composite(p, "parts", child, builder.Cases[int]{
		Items: func(context.Context, *activities.Activation) ([]int, error) { return make([]int, children), nil }}), p.End())
	parent, err := p.Build()
	require.NoError(t, err)
	o := &office{Engine: enginetest.New(t, parent)}
	id, err := parent.Start(t.Context(), o, nil)
	require.NoError(t, err)
	o.Drain()
	return o, id
}

// treesRead counts the trees that a page reads.
type treesRead struct {
	*engine.Engine
	n int
}

func (b *treesRead) View(ctx context.Context, f func(store.Reader) error) error {
	return b.Engine.View(ctx, func(r store.Reader) error { return f(&treeReader{r, b}) })
}

type treeReader struct {
	store.Reader
	b *treesRead
}

func (r *treeReader) Tree(ctx context.Context, root workitem.CaseID) (*state.Tree, error) {
	r.b.n++
	return r.Reader.Tree(ctx, root)
}

// The page of a case with many child cases reads its tree once, and lists the newest of them.
func TestACaseWithManyChildren(t *testing.T) {
	o, id := newFamily(t, 210)
	b := &treesRead{Engine: o.Engine.Engine}
	h := admin.Handler(b, admin.Config{Access: admin.ReadOnly, Logger: slog.New(slog.DiscardHandler)})
	w := get(h, "/cases/"+id.String()+"?tab=children")
	require.Equal(t, http.StatusOK, w.Code)
	require.Equal(t, 1, b.n)
	page := w.Body.String()
	require.Equal(t, 100, strings.Count(page, "<td data-label=\"as\">parts."))
	require.Contains(t, page, "the newest 100")
	require.Contains(t, page, `href="/cases?case=`+id.String())
	require.Contains(t, page, "parts.1.210<")
	require.NotContains(t, page, "parts.1.1<")
}

// A case that has only child cases shows these in place of its work items, with a link to each.
func TestACaseOfChildCasesOnly(t *testing.T) {
	t.Parallel()
	o, id := newFamily(t, 2)
	h := o.handler(admin.Config{Access: admin.ReadOnly})
	page := get(h, "/cases/"+id.String()).Body.String()
	require.NotContains(t, page, "The case has no work items.")
	require.Contains(t, page, "The case has no work items of its own. These are its child cases.")
	c, err := o.Case(t.Context(), id)
	require.NoError(t, err)
	require.Len(t, c.Children, 2)
	for _, child := range c.Children {
		require.Regexp(t, `<td[^>]*><a class="id" href="/cases/`+child.String(), page)
		own := get(h, "/cases/"+child.String()).Body.String()
		require.Contains(t, own, ">ask.1.1<")
		require.NotContains(t, own, "These are its child cases.")
	}
}

func BenchmarkACaseWithManyChildren(b *testing.B) {
	o, id := newFamily(b, 2000)
	h := o.handler(admin.Config{Access: admin.ReadOnly})
	for b.Loop() {
		require.Equal(b, http.StatusOK, get(h, "/cases/"+id.String()+"?tab=children").Code)
	}
}
