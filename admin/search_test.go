package admin_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/admin"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// A search in payloads finds what the user may see, in the lists of the pages and of the API, and says when it was cut.
func TestSearchInPayloads(t *testing.T) {
	o := newOffice(t, "needle")
	for range 3 {
		_, err := o.Do(t.Context(), workflow.Start("bill", []byte(`{"iban":"other"}`)))
		require.NoError(t, err)
	}
	rows := func(h http.Handler, path string) int {
		var page struct{ Rows []json.RawMessage }
		w := get(h, path)
		require.Equal(t, http.StatusOK, w.Code, w.Body)
		require.NoError(t, json.Unmarshal(w.Body.Bytes(), &page))
		return len(page.Rows)
	}
	h := o.handler(admin.Config{Access: admin.ReadOnly})
	require.Equal(t, 1, rows(h, "/api/v1/cases?workflow=bill&payload=needle"))
	require.Equal(t, 4, rows(h, "/api/v1/cases?workflow=bill&payload=iban"))
	require.Equal(t, 1, rows(h, "/api/v1/items?workflow=bill&payload=needle"))
	page := get(h, "/cases?workflow=bill&payload=needle").Body.String()
	require.Contains(t, page, o.bill.String())
	require.Contains(t, page, "payload has: needle")
	require.NotContains(t, page, "as XES")
	require.Contains(t, get(h, "/items?payload=nothing-of-this").Body.String(), "Nothing matches payload: nothing-of-this.")
	masked := o.handler(admin.Config{Access: admin.ReadOnly, Show: func(_ admin.User, _, _ string, _ json.RawMessage) json.RawMessage { return []byte(`"hidden"`) }})
	require.Zero(t, rows(masked, "/api/v1/cases?payload=iban"))
	require.NotContains(t, get(masked, "/cases?workflow=bill&payload=iban").Body.String(), o.bill.String())
}

// The field of the search finds what its placeholder says: a key leads to its case, one of several and a label to a list, and what is masked is not found.
func TestSearchByKeyAndLabel(t *testing.T) {
	o := newOffice(t, "x")
	start := func(key string) string {
		result, err := o.Do(t.Context(), workflow.With(workflow.Start("bill", []byte(`{}`)), workflow.BusinessKey(key), workflow.Label("customer", "ada")))
		require.NoError(t, err)
		return result.Case.String()
	}
	one, two, three := start("C-4711"), start("C-1"), start("C-1")
	h := o.handler(admin.Config{Access: admin.ReadOnly})
	require.Equal(t, "/cases/"+one, get(h, "/search?q=C-4711").Header().Get("Location"))
	page := get(h, "/search?q=C-1").Body.String()
	require.Contains(t, page, two)
	require.Contains(t, page, three)
	require.Contains(t, page, "case of bill, key C-1")
	page = get(h, "/search?q=customer%3Dada").Body.String()
	for _, id := range []string{one, two, three} {
		require.Contains(t, page, id)
	}
	require.Contains(t, get(h, "/search?q=C-4712").Body.String(), "no business key, no label")
	masked := o.handler(admin.Config{Access: admin.ReadOnly, Show: func(_ admin.User, kind, _ string, raw json.RawMessage) json.RawMessage {
		if kind == "key" || kind == "label" {
			return []byte(`"hidden"`)
		}
		return raw
	}})
	for _, word := range []string{"C-4711", "customer%3Dada"} {
		require.Contains(t, get(masked, "/search?q="+word).Body.String(), "Nothing found", word)
	}
}

// A command is found by its idempotency key: at its place in the history of its case.
func TestSearchByIdempotencyKey(t *testing.T) {
	o := newOffice(t, "x")
	started, err := o.Do(t.Context(), workflow.With(workflow.Start("bill", []byte(`{}`)), workflow.Key("web-66")))
	require.NoError(t, err)
	h := o.handler(admin.Config{Access: admin.ReadOnly})
	var found struct{ Rows []store.Match }
	require.NoError(t, json.Unmarshal(get(h, "/api/v1/search?q=web-66").Body.Bytes(), &found))
	require.Len(t, found.Rows, 1)
	m := found.Rows[0]
	require.Equal(t, []any{"command", "idempotency-key", started.Case, "start bill"}, []any{m.Kind, m.By, m.Case, m.Command})
	require.Equal(t, fmt.Sprintf("/cases/%s?at=%d&tab=history", started.Case, m.Seq), get(h, "/search?q=web-66").Header().Get("Location"))
	require.Contains(t, get(h, "/search?q=web-67").Body.String(), "no idempotency key")
	require.Equal(t, http.StatusBadRequest, get(h, "/api/v1/search?q=%00").Code)
}

// endless is an engine whose list of cases has no end.
type endless struct{ *engine.Engine }

func (e endless) View(ctx context.Context, f func(store.Reader) error) error {
	return e.Engine.View(ctx, func(r store.Reader) error { return f(endlessReader{r}) })
}

type endlessReader struct{ store.Reader }

func (endlessReader) Cases(_ context.Context, f store.CaseFilter) (rows []*state.Case, err error) {
	for range f.Limit {
		rows = append(rows, &state.Case{Workflow: "bill", State: state.CaseStarted})
	}
	return rows, nil
}

// A search that reaches a bound says so, and continues where it was.
func TestASearchThatIsCut(t *testing.T) {
	o := newOffice(t, "text")
	h := admin.Handler(endless{o.Engine.Engine}, admin.Config{Access: admin.ReadOnly, Clock: o.Clock()})
	var page struct {
		Rows []json.RawMessage
		Next string
		Cut  bool
	}
	w := get(h, "/api/v1/cases?payload=needle")
	require.Equal(t, http.StatusOK, w.Code, w.Body)
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &page))
	require.Empty(t, page.Rows)
	require.True(t, page.Cut)
	require.Equal(t, workitem.CaseID{}.String(), page.Next)
	text := get(h, "/cases?payload=needle").Body.String()
	require.Regexp(t, `0 found in [0-9,]+ that were searched`, text)
	require.Contains(t, text, `rel="next" href="/cases?cursor=`+page.Next+`&amp;payload=needle"`)
}
