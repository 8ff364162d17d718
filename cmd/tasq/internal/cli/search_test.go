package cli

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workflow"
)

// A word is found as what it is: also as the idempotency key of a command, of which its case and its place in the history are said.
func TestSearch(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, db store.Opener, at string) {
		b := builder.New[string]("order")
		b.Path(b.Start(), builder.Task(b, "pack", builder.Work[string, string]{Input: builder.CaseInput(b)}), b.End())
		w := b.MustBuild()
		e, err := engine.Open(t.Context(), db, w)
		require.NoError(t, err)
		defer func() { require.NoError(t, e.Close()) }()
		order, err := w.Start(t.Context(), e, "ada", workflow.Key("web-66"), workflow.BusinessKey("C-66"), workflow.Label("customer", "ada"))
		require.NoError(t, err)
		find := func(word string) (m store.Match) {
			t.Helper()
			require.NoError(t, json.Unmarshal([]byte(ran(t, at, "search", word, "-o", "json")), &m))
			return m
		}
		for word, want := range map[string][3]string{
			"web-66": {"command", "idempotency-key", ""}, "C-66": {"case", "key", order.String()}, "customer=ada": {"case", "label", order.String()},
			order.String(): {"case", "id", order.String()}, "ord": {"workflow", "name", ""},
		} {
			m := find(word)
			require.Equal(t, want, [3]string{m.Kind, m.By, m.ID}, word)
			if m.Kind != "workflow" {
				require.Equal(t, order, m.Case, word)
			}
		}
		m := find("web-66")
		require.Equal(t, "start order", m.Command)
		require.NotZero(t, m.Seq)
		require.Contains(t, ran(t, at, "search", "web-66"), "start order, entry")
		spaced, err := w.Start(t.Context(), e, "eve", workflow.BusinessKey(" C-67\n"))
		require.NoError(t, err)
		require.Equal(t, spaced, find(" C-67\n").Case)
		require.Equal(t, order, find(" C-66\n").Case, "spaces that were copied with the key")
		code, _, errs := tasq(t, at, "search", "WEB-66")
		require.Equal(t, ExitNotFound, code)
		require.Contains(t, errs, "no idempotency key")
	})
}
