package admin_test

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/admin"
)

// The API counts what ended by task and hour, as the command does, and refuses a parameter that it does not know.
func TestTheAPIHasRates(t *testing.T) {
	t.Parallel()
	o := newOffice(t, "x")
	h := o.handler(admin.Config{Access: admin.ReadOnly})
	rates := func(path string) (rows []object) {
		w := get(h, path)
		require.Equal(t, http.StatusOK, w.Code, w.Body)
		var got struct {
			Rows []object
		}
		require.NoError(t, json.Unmarshal(w.Body.Bytes(), &got))
		return got.Rows
	}
	by := rates("/api/v1/stats")
	require.NotEmpty(t, by)
	require.NotContains(t, by[0], "hour")
	hourly := rates("/api/v1/stats?hourly&workflow=" + by[0]["workflow"].(string))
	require.NotEmpty(t, hourly)
	require.Contains(t, hourly[0], "hour")
	require.Equal(t, by[0]["done"], hourly[0]["done"])
	require.Contains(t, hourly[0], "waited_p95")
	require.Empty(t, rates("/api/v1/stats?task=withdraw"))
	cases := rates("/api/v1/stats?cases")
	require.NotEmpty(t, cases)
	require.NotContains(t, cases[0], "task")
	require.NotContains(t, cases[0], "hour")
	require.Contains(t, rates("/api/v1/stats?cases&hourly")[0], "hour")
	require.Equal(t, http.StatusBadRequest, get(h, "/api/v1/stats?task=none").Code)
	require.Equal(t, http.StatusBadRequest, get(h, "/api/v1/stats?taks=none").Code)
}

// The page of statistics has what ended in the period by task and by hour, as a chart and as downloads, and says when nothing did.
func TestStatisticsOfAPeriod(t *testing.T) {
	o := newOffice(t, "x")
	h := o.handler(admin.Config{Access: admin.ReadOnly, Prefix: "/tasq"})
	page := func(query string) string {
		w := get(h, "/tasq/stats"+query)
		require.Equal(t, http.StatusOK, w.Code, w.Body)
		return w.Body.String()
	}
	today := page("")
	require.Contains(t, today, `<a href="/tasq/stats?newer=24h" aria-current="true">24h</a>`)
	require.Contains(t, today, `<a href="/tasq/items?newer=24h&amp;task=register&amp;workflow=claim">register</a>`)
	require.Contains(t, today, `<a href="/tasq/items?newer=24h&amp;state=failed&amp;task=fraud&amp;workflow=claim">1</a>`)
	require.Regexp(t, `<rect class="d"[^>]*><title>\d\d \w+ \d\d:00: \d+ done, \d+ failed</title>`, today)
	require.Contains(t, today, `<th scope="col">hour, UTC</th>`)
	require.Contains(t, today, `<th scope="col" class="num">waited p95</th>`)

	require.Contains(t, today, `<a href="/tasq/cases?newer=24h&amp;state=failed&amp;workflow=order">1</a>`)
	cases := regexp.MustCompile(`href="([^"]*cases=true[^"]*)" download`).FindStringSubmatch(today)
	require.NotNil(t, cases)
	require.Contains(t, get(h, strings.ReplaceAll(cases[1], "&amp;", "&")).Body.String(), "\norder,")

	one := page("?workflow=claim&task=register")
	require.NotContains(t, one, "task=fraud")
	require.NotContains(t, one, "Cases by workflow", "a task has none")
	link := regexp.MustCompile(`href="([^"]*hourly=true[^"]*)" download`).FindStringSubmatch(one)
	require.NotNil(t, link)
	rows := strings.Split(get(h, strings.ReplaceAll(link[1], "&amp;", "&")).Body.String(), "\n")
	require.Equal(t, "workflow,task,hour,done,failed,p50,p95,started,waited_p50,waited_p95", rows[0])
	require.Regexp(t, `^claim,register,[^,]+:00:00Z,1,0,`, rows[1])
	require.Len(t, rows, 3, "one row, and the end of its line")

	o.Advance(30 * time.Hour)
	require.Contains(t, page(""), "Nothing ended")
	require.Contains(t, page("?newer=7d"), "task=register")
	require.Contains(t, page("?newer=30d"), "<title>", "days have bars too")
	require.Equal(t, http.StatusBadRequest, get(h, "/tasq/stats?newer=soon").Code)
}
