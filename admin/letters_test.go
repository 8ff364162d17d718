package admin_test

import (
	"context"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/admin"
	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/bulk"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// A dead letter has a form on its page, and the list of dead letters one for all that its filters select.
func TestDeadLettersByForms(t *testing.T) {
	var up atomic.Bool
	charge := builder.MustFunc("charge", func(_ context.Context, n int) (int, error) {
		if up.Load() {
			return n, nil
		}
		return 0, &workitem.Failure{Code: "no-funds"}
	}, builder.DeadLetter(builder.MustLetters("letters")), builder.Retry(func(p *retry.Policy) { p.Attempts = 1 }))
	o := &office{bulk: bulk.New(engine.Code)}
	o.Engine = enginetest.New(t, charge, o.bulk)
	o.bulk.Serve(o.Engine)
	for n := range 3 {
		_, err := charge.Run(t.Context(), o, n)
		require.NoError(t, err)
	}
	other, err := o.Do(t.Context(), workflow.Start("letters", []byte(`{"case":"01890000-0000-7000-8000-000000000000"}`)))
	require.NoError(t, err)
	o.Drain()
	up.Store(true)
	h := o.handler(admin.Config{Access: as("eve"), Bulk: o.bulk})

	letters, err := bulk.Letters(t.Context(), o, store.CaseFilter{}, "", "")
	require.NoError(t, err)
	require.Len(t, letters, 3)
	require.Contains(t, get(h, "/cases/"+letters[0]).Body.String(), "Redrive…")
	require.NotContains(t, get(h, "/cases/"+other.Case.String()).Body.String(), "Redrive…")
	given := 0
	for c, err := range store.AllCases(t.Context(), o, store.CaseFilter{Workflow: "charge", States: []state.CaseState{state.CaseFailed}}) {
		require.NoError(t, err)
		require.Contains(t, get(h, "/cases/"+c.ID.String()).Body.String(), "Nothing: it is given up; its dead letter is case ")
		given++
	}
	require.Equal(t, 3, given)
	w := submit(t, h, "/act?kind=redrive&case="+letters[0], "reason", "the account is filled")
	require.Equal(t, http.StatusSeeOther, w.Code, w.Body)
	o.Drain()

	require.NotContains(t, get(h, "/cases/"+letters[0]).Body.String(), "Redrive…", "it is redriven")

	list := get(h, "/cases?state=started&label=dead-letter%3Dyes").Body.String()
	require.Contains(t, list, "Redrive all that match…")
	require.NotContains(t, get(h, "/cases?state=started").Body.String(), "Redrive all that match…")
	form := "/bulk?kind=redrive&state=started&label=dead-letter%3Dyes&label=dead-letter-code%3Dno-funds"
	w = submit(t, h, form, "confirm", "2", "reason", "all are")
	require.Equal(t, http.StatusSeeOther, w.Code, w.Body)
	o.Drain()
	completed := 0
	for _, err := range store.AllCases(t.Context(), o, store.CaseFilter{Workflow: "charge", States: []state.CaseState{state.CaseCompleted}}) {
		require.NoError(t, err)
		completed++
	}
	require.Equal(t, 3, completed)
}
