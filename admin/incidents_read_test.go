package admin_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/admin"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// incidentsRead counts what pages read of cases, items, jobs and incidents. If most is not 0, the store lists no more open incidents
// at once.
type incidentsRead struct {
	*engine.Engine
	lists, rows, heads, most int
}

func (b *incidentsRead) View(ctx context.Context, f func(store.Reader) error) error {
	return b.Engine.View(ctx, func(r store.Reader) error { return f(&incidentReader{r, b}) })
}

type incidentReader struct {
	store.Reader
	b *incidentsRead
}

func (r *incidentReader) Cases(ctx context.Context, f store.CaseFilter) ([]*state.Case, error) {
	all, err := r.Reader.Cases(ctx, f)
	r.b.lists, r.b.rows = r.b.lists+1, r.b.rows+len(all)
	return all, err
}

func (r *incidentReader) Items(ctx context.Context, f store.ItemFilter) ([]*store.ItemRow, error) {
	all, err := r.Reader.Items(ctx, f)
	r.b.lists, r.b.rows = r.b.lists+1, r.b.rows+len(all)
	return all, err
}

func (r *incidentReader) Jobs(ctx context.Context, f store.JobFilter) ([]*state.Job, error) {
	all, err := r.Reader.Jobs(ctx, f)
	r.b.lists, r.b.rows = r.b.lists+1, r.b.rows+len(all)
	return all, err
}

func (r *incidentReader) OpenIncidents(ctx context.Context, most int) ([]workitem.JobID, bool, error) {
	if r.b.most > 0 {
		most = min(most, r.b.most)
	}
	return r.Reader.OpenIncidents(ctx, most)
}

func (r *incidentReader) IncidentHeads(ctx context.Context, ids []workitem.JobID) ([]store.IncidentHead, error) {
	all, err := r.Reader.IncidentHeads(ctx, ids)
	r.b.heads += len(all)
	return all, err
}

// newDesk has so many open incidents, each of a case of its own.
func newDesk(t *testing.T, incidents int) (*incidentsRead, http.Handler, func(from, to int)) {
	t.Helper()
	w := deskOf("1")
	e := enginetest.New(t, w)
	b := &incidentsRead{Engine: e.Engine}
	add := func(from, to int) {
		for n := from; n < to; n++ {
			id, err := w.Start(t.Context(), e, nil)
			require.NoError(t, err)
			e.FailItem(id, "check.1.1", &workitem.Failure{Code: fmt.Sprint("cause-", n%3), Message: fmt.Sprintf("form %d is not signed", n)})
		}
	}
	add(0, incidents)
	return b, admin.Handler(b, admin.Config{Access: admin.ReadOnly, Logger: slog.New(slog.DiscardHandler)}), add
}

// What the overview and the page of incidents read does not grow with the number of open incidents: their rows are read for those that are
// shown alone, in a few statements, and what groups an incident is read once.
func TestManyIncidentsAreNotReadAgain(t *testing.T) {
	t.Parallel()
	b, h, add := newDesk(t, 60)
	reads := func(address string) (lists, rows, heads int) {
		b.lists, b.rows, b.heads = 0, 0, 0
		require.Equal(t, http.StatusOK, get(h, address).Code)
		return b.lists, b.rows, b.heads
	}
	lists, rows, heads := reads("/")
	require.Equal(t, 60, heads)
	require.Less(t, lists, 6)
	require.Less(t, rows, 135, "the count of the navigation reads 60, the newest 8 cases are listed, and 60 examined")
	_, rows, heads = reads("/")
	require.Less(t, rows, 75, "they are not examined again at once")
	require.Zero(t, heads)
	add(60, 62)
	_, _, heads = reads("/")
	require.Equal(t, 2, heads, "the new ones")
	for _, address := range []string{"/incidents", "/incidents?code=cause-1", "/incidents?code=none-has-it"} {
		lists, rows, heads = reads(address)
		require.Less(t, lists, 6, address)
		require.Less(t, rows, 130, address)
		require.Zero(t, heads, address)
	}
	page := get(h, "/incidents").Body.String()
	require.Contains(t, page, "</span> 21</span> desk/check")
	require.Contains(t, page, "and 16 more")
	require.Contains(t, page, "cause-0: form … is not signed")
}

// The count of a group is exact, or says that there may be more.
func TestMoreIncidentsThanAreExamined(t *testing.T) {
	t.Parallel()
	b, h, _ := newDesk(t, 12)
	require.Contains(t, get(h, "/").Body.String(), "> 4</b>")
	b.most = 9
	page := get(h, "/").Body.String()
	require.Contains(t, page, "> 3&#43;</b>")
	require.NotContains(t, page, "> 3</b>")
	page = get(h, "/incidents").Body.String()
	require.Contains(t, page, "</span> 3&#43;</span> desk/check")
	require.Contains(t, page, "incidents are open: only the oldest 10,000 were examined.")
	page = get(h, "/incidents?code=cause-1").Body.String()
	require.Contains(t, page, "only the oldest 50,000 were examined.")
}

// The doctor counts the open incidents beyond those that the navigation counts.
func TestTheDoctorCountsMoreIncidents(t *testing.T) {
	t.Parallel()
	b, h, _ := newDesk(t, 120)
	require.Contains(t, get(h, "/doctor").Body.String(), "120 incidents open")
	b.most = 110
	require.Contains(t, get(h, "/doctor").Body.String(), "110&#43; incidents open")
}

// The page of a workflow shows where its cases have open incidents, in the net and in the table of tasks, though no item is live there.
func TestAWorkflowShowsItsIncidents(t *testing.T) {
	t.Parallel()
	_, h, _ := newDesk(t, 4)
	page := get(h, "/workflows/desk").Body.String()
	require.Contains(t, page, "check: 0 live work items, 4 open incidents")
	require.Contains(t, page, ">!4<")
	require.Regexp(t, `class="[^"]*t-bad`, page)
	require.Contains(t, page, `<td data-label="incidents" class="num"><a href="/incidents?task=check&amp;workflow=desk">4</a>`)
	require.NotContains(t, get(h, "/workflows/desk?heat=failures").Body.String(), ">!4<")
}
