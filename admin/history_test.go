package admin_test

import (
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/admin"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/workflow"
)

// acted is a bill that ann starts at once, bob suspends an hour later, and ann resumes an hour after that.
func acted(t *testing.T) (o *office, h http.Handler, id string, begun time.Time) {
	o = newOffice(t, "text")
	begun = o.Now()
	started, err := o.Do(t.Context(), workflow.Start("bill", []byte(`{}`), workflow.By("ann")))
	require.NoError(t, err)
	o.Advance(time.Hour)
	require.NoError(t, enginetest.Do(t.Context(), o, workflow.Suspend(started.Case, workflow.By("bob"), workflow.Because("wait"))))
	o.Advance(time.Hour)
	require.NoError(t, enginetest.Do(t.Context(), o, workflow.Resume(started.Case, nil, workflow.By("ann"), workflow.Because("go on"))))
	return o, o.handler(admin.Config{Access: admin.ReadOnly}), started.Case.String(), begun
}

// entriesAt are the commands that an address of the API answers with, one for each entry.
func entriesAt(t *testing.T, h http.Handler, address string) (all []string, next int64) {
	t.Helper()
	var page struct {
		Rows []struct{ Command, By, Reason string }
		Next int64
	}
	reply := get(h, address)
	require.Equal(t, http.StatusOK, reply.Code, reply.Body.String())
	require.NoError(t, json.Unmarshal(reply.Body.Bytes(), &page))
	for _, row := range page.Rows {
		text := row.By + ": " + row.Command[:5] + row.Reason
		if n := len(all); n == 0 || all[n-1] != text {
			all = append(all, text)
		}
	}
	return all, page.Next
}

// A history is listed in both orders, page by page, by actor, by command and for a period.
func TestAHistoryIsSelected(t *testing.T) {
	_, h, id, begun := acted(t)
	of := "/api/v1/cases/" + id + "/history"
	whole, next := entriesAt(t, h, of)
	require.Equal(t, []string{"ann: start", "bob: case ", "ann: case "}, whole)
	require.Zero(t, next)
	later := url.QueryEscape(begun.Add(time.Minute).Format(time.RFC3339))
	for query, want := range map[string][]string{
		"?newest": {"ann: case ", "bob: case ", "ann: start"}, "?by=bob": {"bob: case "}, "?newest&by=ann": {"ann: case ", "ann: start"},
		"?command=start": {"ann: start"}, "?command=sta": nil, "?older=" + later: {"ann: start"}, "?newer=" + later: {"bob: case ", "ann: case "},
	} {
		got, _ := entriesAt(t, h, of+query)
		require.Equal(t, want, got, query)
	}
	var paged []string
	for until := int64(0); ; {
		part, next := entriesAt(t, h, fmt.Sprintf("%s?newest&limit=1&until=%d", of, until))
		paged = append(paged, part...)
		if until = next; next == 0 {
			break
		}
	}
	slices.Reverse(whole)
	require.Equal(t, whole, paged)
}

// The commands with an actor are listed by actor, by command, for a case and for a period, with their reasons: by the API and on the page.
func TestTheAuditIsSelected(t *testing.T) {
	_, h, id, begun := acted(t)
	got, _ := entriesAt(t, h, "/api/v1/audit?case="+id)
	require.Equal(t, []string{"ann: case go on", "bob: case wait", "ann: start"}, got)
	got, next := entriesAt(t, h, "/api/v1/audit?limit=1&case="+id)
	require.Equal(t, []string{"ann: case go on"}, got)
	got, _ = entriesAt(t, h, fmt.Sprintf("/api/v1/audit?limit=1&case=%s&before=%d", id, next))
	require.Equal(t, []string{"bob: case wait"}, got)
	later := url.QueryEscape(begun.Add(time.Minute).Format(time.RFC3339))
	got, _ = entriesAt(t, h, "/api/v1/audit?command=case+suspend&newer="+later)
	require.Equal(t, []string{"bob: case wait"}, got)
	got, _ = entriesAt(t, h, "/api/v1/audit?command=case+suspend&older="+later)
	require.Empty(t, got)

	page := get(h, "/audit?case="+id+"&command=case+suspend").Body.String()
	require.Contains(t, page, ">wait<")
	require.NotContains(t, page, ">go on<")
	require.NotContains(t, get(h, "/audit?newer="+later+"&by=ann").Body.String(), ">wait<")
	require.Equal(t, http.StatusBadRequest, get(h, "/audit?newer=yesterday").Code)
	require.Equal(t, http.StatusNotFound, get(h, "/audit?case=0197a3c4-5d6e-7f80-9a1b-2c3d4e5f6071").Code)
}

// Failures are grouped by cause: of work items by the API, and of cases on the page of incidents, each with a link to these cases.
func TestFailuresAreGroupedByCause(t *testing.T) {
	o, h, _, _ := acted(t)
	var page struct {
		Rows []struct {
			Workflow, Task, Code string
			N                    int
		}
	}
	require.NoError(t, json.Unmarshal(get(h, "/api/v1/failures").Body.Bytes(), &page))
	require.NotEmpty(t, page.Rows)
	whole := 0
	for _, row := range page.Rows {
		require.NotEmpty(t, row.Task)
		whole += row.N
	}
	page.Rows = nil
	require.NoError(t, json.Unmarshal(get(h, "/api/v1/failures?by=workflow").Body.Bytes(), &page))
	for _, row := range page.Rows {
		require.Empty(t, row.Task)
		whole -= row.N
	}
	require.Zero(t, whole)
	require.Equal(t, http.StatusBadRequest, get(h, "/api/v1/failures?by=colour").Code)

	incidents := get(h, "/incidents").Body.String()
	require.Contains(t, incidents, "Failed cases by cause")
	link := regexp.MustCompile(`href="(/cases\?code=[^"]*state=failed[^"]*)">1 case<`).FindStringSubmatch(incidents)
	require.NotNil(t, link)
	require.Contains(t, get(h, html.UnescapeString(link[1])).Body.String(), o.failed.String())
	require.NotContains(t, get(h, "/incidents?kind=attempts").Body.String(), "Failed cases by cause")
}

// Incidents are listed for a case, and statistics are grouped with the word of the command.
func TestFiltersHaveTheNamesOfTheCommand(t *testing.T) {
	_, h, id, _ := acted(t)
	require.Contains(t, get(h, "/incidents?case="+id).Body.String(), "Nothing matches case: "+id)
	for by, same := range map[string]string{"hour": "hourly", "workflow": "cases", "task": ""} {
		require.Equal(t, get(h, "/api/v1/stats?"+same).Body.String(), get(h, "/api/v1/stats?by="+by).Body.String(), by)
	}
	require.NotEqual(t, get(h, "/api/v1/stats?by=hour").Body.String(), get(h, "/api/v1/stats?by=task").Body.String())
}
