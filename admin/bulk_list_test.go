package admin_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/admin"
	"github.com/tasq-dev/tasq/engine/bulk"
	"github.com/tasq-dev/tasq/workflow"
)

// The list of bulk actions has each with its progress, also for those who may only read and without the workflow in the program; the case of an action
// leads to its page.
func TestBulkActionsAreListed(t *testing.T) {
	o := newOffice(t, "text")
	var targets []string
	for _, id := range o.bills(t, 2) {
		targets = append(targets, o.Item(id, "charge.1.1").ID.String())
	}
	run, err := o.bulk.Start(t.Context(), o.Engine, bulk.Action{Kind: workflow.KindRetry, Actor: "ann", Reason: "the account is filled"}, targets)
	require.NoError(t, err)
	o.Drain()
	page := "/bulk/" + run.ID.String()
	link := `href="` + page + `"`
	own := o.handler(admin.Config{Access: as("eve")})
	for _, h := range []http.Handler{own, o.handler(admin.Config{Access: admin.ReadOnly}), admin.Handler(admin.Reading(o.Engine.Engine, nil), admin.Config{Access: admin.ReadOnly})} {
		w := get(h, "/bulk")
		require.Equal(t, http.StatusOK, w.Code)
		for _, want := range []string{link, ">retry<", "completed", ">ann<", "the account is filled", `<a href="/bulk" aria-current="page">Bulk actions</a>`} {
			require.Contains(t, w.Body.String(), want)
		}
		require.Contains(t, get(h, page).Body.String(), `<a href="/bulk">Bulk actions</a>`)
		require.Contains(t, get(h, "/cases/"+run.ID.String()).Body.String(), link)
	}
	require.NotContains(t, get(own, "/cases/"+o.bill.String()).Body.String(), "/bulk/")
	require.Contains(t, get(own, "/bulk?cursor="+run.ID.String()).Body.String(), "There are no bulk actions", "there is no second page")
	require.Contains(t, get(own, "/bulk?ids=").Body.String(), "No action is chosen", "rows without one of the buttons below them")
}
