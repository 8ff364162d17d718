package admin_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/admin"
	"github.com/tasq-dev/tasq/internal/printable"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workflow"
)

// The overview has the queues as they stand, and for each workflow what ended in the last day and how long it took.
func TestTheOverviewHasQueuesAndDurations(t *testing.T) {
	o := newPlant(t)
	h := o.handler(admin.Config{Access: as("eve")})
	mail := func() {
		t.Helper()
		_, err := o.Do(t.Context(), workflow.Start("mail", []byte(`"a"`)))
		require.NoError(t, err)
	}
	mail()
	o.Drain()
	require.Equal(t, http.StatusSeeOther, submit(t, h, "/act?kind=pause-queue&queue=mails").Code)
	mail()
	o.Advance(2 * time.Hour)
	page := get(h, "/").Body.String()
	require.Contains(t, page, `<td data-label="24 h done" class="num"><a href="/stats?newer=24h&amp;workflow=mail">1</a></td>`)
	require.Regexp(t, `<td data-label="24 h took p95" class="num">[0-9]+ms</td>`, page)
	require.Contains(t, page, `<td data-label="queue">mails</td><td data-label="state"><span class="state s-paused">`)
	require.Contains(t, page, `<a href="/items?state=initialized&amp;queue=mails">1</a>`)
	require.Contains(t, page, `<a href="/jobs?state=pending&amp;queue=mails">1</a>`)
	require.NotContains(t, page, "kind=resume-queue", "the page of limits has the acts")
	require.Regexp(t, `<dt>24 h done</dt><dd><a [^>]*>1</a></dd>`, get(h, "/workflows/mail").Body.String())

	o.Advance(24 * time.Hour)
	page = get(h, "/").Body.String()
	require.NotContains(t, page, "24 h took p95", "nothing completed in the day")

	require.Equal(t, http.StatusSeeOther, submit(t, h, "/act?kind=resume-queue&queue=mails").Code)
	o.Drain()
	page = get(h, "/").Body.String()
	require.Regexp(t, `<td data-label="24 h waited p95" class="num">`+printable.Took(store.TookOf(store.TookClass(26*time.Hour)))+`</td>`, page, "in the paused queue")
}
