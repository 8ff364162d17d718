package admin_test

import (
	"net/http"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/admin"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// The list of failed items begins with their causes: how many items each has, where they are listed, and what retries them.
func TestFailedItemsByCause(t *testing.T) {
	o := newOfficeOf(t, likely)
	for range 2 {
		result, err := o.Do(t.Context(), workflow.Start("bill", nil))
		require.NoError(t, err)
		o.Drain()
		o.FailItem(result.Case, "charge", &workitem.Failure{Code: "bank-closed", Message: "closed"}, workflow.By("ann"))
	}
	h := o.handler(admin.Config{Access: as("eve")})
	causes := func(h http.Handler, query string) []string {
		w := get(h, "/items"+query)
		require.Equal(t, http.StatusOK, w.Code)
		table := regexp.MustCompile(`(?s)<table id="causes".*?</table>`).FindString(w.Body.String())
		return regexp.MustCompile(`(?s)<tr id=.*?</tr>`).FindAllString(table, -1)
	}
	rows := causes(h, "?state=failed")
	require.Len(t, rows, 3, "the attempt that a later one has replaced has not failed for good")
	require.Contains(t, rows[0], "bank-closed")
	require.Contains(t, rows[0], `href="/items?code=bank-closed&amp;state=failed&amp;task=charge&amp;workflow=bill">2<`)
	require.Contains(t, rows[0], `href="/incidents?code=bank-closed&amp;task=charge&amp;workflow=bill">2 incidents<`)
	bulk := regexp.MustCompile(`href="(/bulk\?[^"]*)">Retry all…<`).FindStringSubmatch(rows[0])
	require.NotNil(t, bulk)
	form := get(h, regexp.MustCompile(`&amp;`).ReplaceAllString(bulk[1], "&"))
	require.Equal(t, http.StatusOK, form.Code)
	require.Contains(t, form.Body.String(), "2")
	require.Contains(t, rows[2], "order", "its case has failed with it")
	require.NotContains(t, rows[2], "/incidents?")

	require.Len(t, causes(h, "?state=failed&workflow=bill"), 2)
	require.Len(t, causes(h, "?state=failed&code=no-funds"), 2)
	require.Len(t, causes(h, "?state=failed&newer=1h"), 3)
	for _, other := range []string{"", "?state=completed", "?state=failed&code=", "?state=failed&payload=x", "?state=failed&attempt=2", "?state=failed&queue=", "?state=failed&case=" + o.bill.String(), "?state=failed&code=none"} {
		require.Empty(t, causes(h, other), other)
	}
	require.NotContains(t, causes(o.handler(admin.Config{Access: admin.ReadOnly}), "?state=failed")[0], "Retry all", "who may not act has no button")
}
