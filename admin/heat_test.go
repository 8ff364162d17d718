package admin_test

import (
	"net/http"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/admin"
	"github.com/tasq-dev/tasq/internal/printable"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// classOf is the class of a task in the picture of a page.
func classOf(body, task string) string {
	found := regexp.MustCompile(`<g class="([^"]*)"[^>]*><title>(?:task )?` + task + `[:;<]`).FindStringSubmatch(body)
	if found == nil {
		return "there is no such task"
	}
	return found[1]
}

// The net of a workflow shows what is live, what fails and what takes long, and the table has the same in numbers.
func TestHeatOfAWorkflow(t *testing.T) {
	o := newOffice(t, "text")
	item := o.Item(o.claim, "assess.1.2")
	o.Advance(90 * time.Minute)
	_, err := o.Do(t.Context(), workflow.Act(item.ID, workitem.Complete, []byte(`{}`)))
	require.NoError(t, err)
	h := o.handler(admin.Config{Access: admin.ReadOnly})
	page := func(query string) string {
		w := get(h, "/workflows/claim"+query)
		require.Equal(t, http.StatusOK, w.Code)
		return w.Body.String()
	}
	live := page("")
	require.Contains(t, classOf(live, "withdraw"), "heat4", "it has a live item, as much as any task")
	require.NotContains(t, classOf(live, "police"), "heat")
	require.Contains(t, live, "live work items of started cases")

	failures := page("?heat=failures")
	require.Contains(t, classOf(failures, "fraud"), "heat")
	require.NotContains(t, classOf(failures, "withdraw"), "heat")

	times := page("?heat=time")
	require.NotContains(t, classOf(times, "withdraw"), "heat", "none of its items has completed")
	require.Contains(t, classOf(times, "register"), "heat1")
	require.Contains(t, times, printable.Took(store.TookOf(store.TookClass(90*time.Minute))), "the table has the time of the item that took long")

	require.NotContains(t, classOf(page("?heat=wait"), "withdraw"), "heat", "none of its items has started")
	_, err = o.Do(t.Context(), workflow.Act(o.Item(o.claim, "withdraw").ID, workitem.Start, nil))
	require.NoError(t, err)
	require.NotContains(t, classOf(page("?heat=wait"), "withdraw"), "heat", "it has started, and not ended")
	_, err = o.Do(t.Context(), workflow.Act(o.Item(o.claim, "withdraw").ID, workitem.Complete, []byte(`{}`)))
	require.NoError(t, err)
	waits := page("?heat=wait")
	require.Contains(t, classOf(waits, "withdraw"), "heat4")
	require.Contains(t, waits, `<title>withdraw: `+printable.Took(store.TookOf(store.TookClass(90*time.Minute)))+` until half of the items started`)
	require.Equal(t, classOf(page(""), "withdraw"), classOf(page("?heat=nothing"), "withdraw"), "what is not known is as nothing")
}

// Failed attempts color a task, and each arrow is as wide as the items that passed it, where that is known.
func TestAttemptsAndArrowsOfAWorkflow(t *testing.T) {
	o := newOffice(t, "text")
	h := o.handler(admin.Config{Access: admin.ReadOnly})
	page := func() string { return get(h, "/workflows/claim?heat=attempts").Body.String() }
	body := page()
	require.Contains(t, classOf(body, "fraud"), "heat1")
	require.Contains(t, body, `<title>fraud: 1+ attempts for each completed work item`, "none has completed")
	require.Contains(t, classOf(body, "assess"), "heat1", "one attempt for each item is no heat")
	require.NotContains(t, classOf(body, "pay"), "heat", "no attempt has ended")

	o.Advance(time.Minute)
	_, err := o.Do(t.Context(), workflow.Act(o.StartItem(o.claim, "fraud.1.2").ID, workitem.Complete, []byte(`{}`)))
	require.NoError(t, err)
	body = page()
	require.Contains(t, classOf(body, "fraud"), "heat4")
	require.Contains(t, body, `<title>fraud: 2.0 attempts for each completed work item`)
	require.Regexp(t, `data-label="attempts"[^>]*>2.0<`, body)

	arrows := regexp.MustCompile(` stroke-width="(\d)"><title>(\d work items? of \w+) completed</title></path>`).FindAllStringSubmatch(body, -1)
	got := make(map[string]int)
	for _, a := range arrows {
		got[a[1]+" px, "+a[2]]++
	}
	require.Equal(t, map[string]int{
		"4 px, 1 work item of register": 3, // into it, and both out of it
		"4 px, 1 work item of assess":   2, // triage chooses among its arrows, so its own items do not count for them
		"4 px, 1 work item of police":   2,
		"4 px, 1 work item of fraud":    2,
	}, got)
}
