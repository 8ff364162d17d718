package eventlog_test

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/eventlog"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// counted counts the views, and the rows that a view gets of one query at most.
type counted struct {
	store.Viewer
	views, most int
}

func (c *counted) View(ctx context.Context, f func(store.Reader) error) error {
	c.views++
	return c.Viewer.View(ctx, func(r store.Reader) error { return f(&countedReader{r, c}) })
}

type countedReader struct {
	store.Reader
	c *counted
}

func (r *countedReader) Journal(ctx context.Context, f store.JournalFilter) ([]*store.Entry, error) {
	entries, err := r.Reader.Journal(ctx, f)
	r.c.most = max(r.c.most, len(entries))
	return entries, err
}

func (r *countedReader) Items(ctx context.Context, f store.ItemFilter) ([]*store.ItemRow, error) {
	items, err := r.Reader.Items(ctx, f)
	r.c.most = max(r.c.most, len(items))
	return items, err
}

// Root cases with few rows are read together, one with many by itself and page by page; what is written is the same as of each alone.
func TestRootCasesAreReadTogether(t *testing.T) {
	const few, many = 2, store.DefaultLimit + 10
	b := builder.New[int]("claim")
	ask := builder.Task(b, "ask", builder.Work[int, int]{Items: func(_ context.Context, a *activities.Activation) (inputs []int, err error) {
		var n int
		err = json.Unmarshal(a.Case().Input, &n)
		return make([]int, n), err
	}})
	b.Path(b.Start(), ask, b.End())
	w, err := b.Build()
	require.NoError(t, err)
	e := enginetest.New(t, w)
	var ids []workitem.CaseID
	for i := range 150 {
		n := few
		if i == 20 || i == 70 { // both have many items, and one many entries
			n = many
		}
		id, err := w.Start(t.Context(), e, n)
		require.NoError(t, err)
		ids = append(ids, id)
	}
	e.Drain()
	for it, err := range store.AllItems(t.Context(), e, store.ItemFilter{Case: ids[70]}) {
		require.NoError(t, err)
		require.NoError(t, enginetest.Do(t.Context(), e, workflow.Act(it.ID, workitem.Start, nil)))
	}

	for _, f := range eventlog.Formats() {
		c := &counted{Viewer: e}
		all := written(t, c, f, eventlog.Options{})
		require.Less(t, c.views, 40, "not some for each root case")
		require.LessOrEqual(t, c.most, store.DefaultLimit+1, "no query has more rows than a page, and one")
		require.Equal(t, 150, bytes.Count(all, []byte(map[eventlog.Format]string{eventlog.XES: "<trace>", eventlog.OCEL: `"type":"claim"`}[f])))
		if f != eventlog.XES {
			require.Equal(t, 148*few+2*many, bytes.Count(all, []byte(`"type":"work item"`)))
			require.Equal(t, many, bytes.Count(all, []byte(`"type":"ask start"`)))
			continue
		}
		text := string(all)
		for _, id := range ids {
			alone := string(written(t, e, f, eventlog.Options{Cases: store.CaseFilter{ID: id}}))
			trace := alone[strings.Index(alone, "<trace>"):strings.Index(alone, "</log>")]
			at := strings.Index(text, trace)
			require.GreaterOrEqual(t, at, 0, "it is there as it is alone, behind those before it")
			text = text[at+len(trace):]
		}
	}
	some := written(t, e, eventlog.XES, eventlog.Options{Cases: store.CaseFilter{Page: store.Page{Limit: 71}}})
	require.Equal(t, 71, bytes.Count(some, []byte("<trace>")))
}
