package admin_test

import (
	"encoding/csv"
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/admin"
	"github.com/tasq-dev/tasq/workflow"
)

// A list leads to all rows that its filters select, as a file for a spreadsheet, which takes no text of them for a formula.
func TestListsAsCSV(t *testing.T) {
	o := newOffice(t, `=HYPERLINK("http://evil","a, b")`)
	for range 60 { // more than a page
		_, err := o.Do(t.Context(), workflow.Start("bill", []byte(`{"cents":9007199254740993}`), workflow.BusinessKey("=1+1")))
		require.NoError(t, err)
	}
	for _, prefix := range []string{"", "/a/b"} {
		h := o.handler(admin.Config{Prefix: prefix, Access: admin.ReadOnly})
		for path, columns := range map[string]string{
			"/cases?workflow=bill&state=started": "workflow state key input", "/items?workflow=bill": "task state attempt input failure",
			"/jobs": "kind state due", "/steps": "name kind state", "/events": "name by",
		} {
			link := regexp.MustCompile(`href="([^"]*)" download`).FindStringSubmatch(get(h, prefix+path).Body.String())
			require.NotNil(t, link, path)
			w := get(h, strings.ReplaceAll(link[1], "&amp;", "&"))
			require.Equal(t, http.StatusOK, w.Code, w.Body.String())
			require.Equal(t, "text/csv; charset=utf-8", w.Header().Get("Content-Type"))
			require.Equal(t, `attachment; filename="rows.csv"`, w.Header().Get("Content-Disposition"))
			rows, err := csv.NewReader(w.Body).ReadAll()
			require.NoError(t, err, path)
			require.Subset(t, rows[0], strings.Fields(columns), path)
			objects := strings.Count(get(h, strings.Replace(strings.ReplaceAll(link[1], "&amp;", "&"), "format=csv", "limit=500", 1), "application/x-ndjson").Body.String(), "\n")
			require.Len(t, rows, 1+objects, "%s has as many rows as lines of JSON", path)
			for _, row := range rows[1:] {
				for i, cell := range row {
					require.NotRegexp(t, `^[=+@\t\r]`, cell, "column %s of %s", rows[0][i], path)
				}
			}
			if strings.HasPrefix(path, "/cases") {
				require.Greater(t, len(rows), 60)
				require.Equal(t, "'=1+1", rows[1][indexOf(rows[0], "key")])
				require.JSONEq(t, `{"cents":9007199254740993}`, rows[1][indexOf(rows[0], "input")])
				require.Contains(t, rows[1][indexOf(rows[0], "input")], "9007199254740993", "numbers of 64 bits stay as they are")
			}
		}
		require.NotContains(t, get(h, prefix+"/cases?state=canceled").Body.String(), " download>", "there is nothing to download")
		require.True(t, json.Valid(get(h, prefix+"/api/v1/cases").Body.Bytes()))
	}
}

func indexOf(names []string, name string) int {
	for i, n := range names {
		if n == name {
			return i
		}
	}
	return -1
}
