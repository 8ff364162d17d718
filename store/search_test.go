package store_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/internal/pgtest"
	"github.com/tasq-dev/tasq/internal/scenario"
	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/postgres"
	"github.com/tasq-dev/tasq/store/sqlite"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

const billing = `
workflow bill
  start begin
  end over
  task charge policy=incident
  flow begin -> charge
  flow charge -> over
`

// A search finds a text in inputs, outputs and failures, also one that is written with escapes, on each store, together with the other filters.
func TestSearchInPayloads(t *testing.T) {
	for name, open := range map[string]func(t *testing.T) store.Opener{
		"sqlite":   func(*testing.T) store.Opener { return sqlite.Memory() },
		"postgres": func(t *testing.T) store.Opener { return postgres.Open(pgtest.Database(t)) },
	} {
		t.Run(name, func(t *testing.T) {
			parsed, err := scenario.ParseNotation(net.Pos{}, billing)
			require.NoError(t, err)
			defs, _, err := scenario.Compile(parsed, nil)
			require.NoError(t, err)
			e := enginetest.Open(t, open(t), engine.Config{}, defs[0])
			ctx := t.Context()
			var ids []workitem.CaseID
			for _, input := range []string{`{"customer":"ada","cents":9007199254740993}`, `{"customer":"J\u00fcrgen \"J\""}`, `{"customer":"bob"}`} {
				id, err := enginetest.Start(ctx, e, "bill", json.RawMessage(input))
				require.NoError(t, err)
				ids = append(ids, id)
				e.Drain()
			}
			enginetest.CompleteItem(e, ids[0], "charge", "receipt 17")
			e.FailItem(ids[1], "charge", &workitem.Failure{Code: "no-funds", Message: "the account of Jürgen is empty", Details: []byte(`{"account":"DE99"}`)})

			cases := func(text string, f store.CaseFilter) (found []workitem.CaseID) {
				t.Helper()
				rows, err := store.SearchCases(ctx, e, f, store.Search{Payload: text}, nil)
				require.NoError(t, err)
				for _, c := range rows {
					found = append(found, c.ID)
				}
				return found
			}
			for text, want := range map[string][]workitem.CaseID{
				"ada": {ids[0]}, "9007199254740993": {ids[0]}, "Jürgen": {ids[1]}, `n "J"`: {ids[1]}, "customer": ids, "": ids, "Ada": nil, "receipt": nil,
			} {
				require.Equal(t, want, cases(text, store.CaseFilter{}), text)
			}
			require.Equal(t, ids[2:], cases("customer", store.CaseFilter{Page: store.Page{Desc: true, Limit: 1}}))
			require.Equal(t, ids[1:], cases("customer", store.CaseFilter{States: []state.CaseState{state.CaseStarted}}))

			items := func(text string, shown func(*workitem.Item) *workitem.Item) (found []workitem.CaseID) {
				t.Helper()
				rows, err := store.SearchItems(ctx, e, store.ItemFilter{}, store.Search{Payload: text}, shown)
				require.NoError(t, err)
				for _, it := range rows {
					found = append(found, it.Case)
				}
				return found
			}
			for text, want := range map[string][]workitem.CaseID{"receipt 17": ids[:1], "account of Jürgen": ids[1:2], "DE99": ids[1:2], "bob!": nil} {
				require.Equal(t, want, items(text, nil), text)
			}
			require.Empty(t, items("DE99", func(it *workitem.Item) *workitem.Item { return &workitem.Item{ID: it.ID} }), "what is hidden is not found")
			_, err = e.Do(ctx, workflow.Cancel(ids[2], nil))
			require.NoError(t, err)
		})
	}
}

// endless is a store of cases without end, of which one in a thousand has the text.
type endless struct{ views int }

func (v *endless) View(_ context.Context, f func(store.Reader) error) error {
	v.views++
	return f(endlessReader{})
}

type endlessReader struct{ store.Reader }

func (endlessReader) Cases(_ context.Context, f store.CaseFilter) (rows []*state.Case, err error) {
	var first int
	if f.After != "" {
		id, err := workitem.ParseID(f.After)
		if err != nil {
			return nil, err
		}
		first = int(id[13])<<16 | int(id[14])<<8 | int(id[15])
	}
	for n := first + 1; n <= first+f.Limit; n++ {
		c := &state.Case{Input: []byte(fmt.Sprintf("%d", n%1000))}
		c.ID[13], c.ID[14], c.ID[15] = byte(n>>16), byte(n>>8), byte(n)
		rows = append(rows, c)
	}
	return rows, nil
}

// A search ends at its bound of rows, or of time, with what it has found, and says where to continue.
func TestASearchIsBounded(t *testing.T) {
	v := new(endless)
	look := func(f store.CaseFilter, s store.Search) (found int, cut *store.CutError) {
		t.Helper()
		s.Payload = "999"
		rows, err := store.SearchCases(t.Context(), v, f, s, nil)
		if err != nil {
			require.ErrorAs(t, err, &cut)
		}
		return len(rows), cut
	}
	hour := store.Search{Rows: 2600, Time: time.Hour}
	found, cut := look(store.CaseFilter{}, hour)
	require.Equal(t, 2, found)
	require.Equal(t, 2600, cut.Rows)
	found, cut = look(store.CaseFilter{Page: store.Page{After: cut.After}}, hour)
	require.Equal(t, 3, found, "the third to the fifth")
	require.NotNil(t, cut)
	found, cut = look(store.CaseFilter{Page: store.Page{Limit: 2}}, hour)
	require.Equal(t, 2, found)
	require.Nil(t, cut, "it has all that was asked for")
	found, cut = look(store.CaseFilter{}, store.Search{Time: time.Hour})
	require.Equal(t, 100, found)
	require.Equal(t, store.MaxSearched, cut.Rows)

	all, spent := hour, new(store.SearchSpent)
	all.Spent = spent
	found, cut = look(store.CaseFilter{Page: store.Page{Limit: 2}}, all)
	require.Equal(t, 2, found)
	require.Nil(t, cut)
	require.Equal(t, 1999, spent.Rows)
	after := store.Page{Limit: 2, After: workitem.CaseID{14: 1999 >> 8, 15: 1999 & 255}.String()}
	found, cut = look(store.CaseFilter{Page: after}, all)
	require.Zero(t, found, "the next is the 2999th, and the bound holds over both pages")
	require.Equal(t, 2600, cut.Rows)
	found, cut = look(store.CaseFilter{Page: after}, all)
	require.Zero(t, found)
	require.Equal(t, after.After, cut.After, "nothing is left of the bound")
	_, cut = look(store.CaseFilter{}, store.Search{Time: time.Hour, Spent: &store.SearchSpent{Until: time.Unix(1, 0)}})
	require.Equal(t, 500, cut.Rows, "a page is looked at in any time")

	v.views = 0
	_, cut = look(store.CaseFilter{}, store.Search{Time: time.Nanosecond})
	require.Equal(t, 500, cut.Rows)
	require.Equal(t, 1, v.views)
	require.EqualError(t, cut, "the search looked at 500 rows, and there are more: it goes on after "+cut.After)
}
