package admin_test

import (
	"net/http"
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/admin"
)

// A past state leads to what differs from now, and the API says the same between any two positions.
func TestWhatDiffersBetweenTwoMoments(t *testing.T) {
	o := newOffice(t, "text")
	h := o.handler(admin.Config{Access: admin.ReadOnly})
	past := get(h, "/cases/"+o.claim.String()+"?entry=2").Body.String()
	m := regexp.MustCompile(`<a href="(/cases/[^"]*/differences\?from=\d+)">`).FindStringSubmatch(past)
	require.NotNil(t, m, past)
	page := get(h, m[1])
	require.Equal(t, http.StatusOK, page.Code)
	require.Regexp(t, `<td data-label="what">item</td><td data-label="name">triage.1.1</td><td data-label="now">completed</td>|`+
		`<td data-label="what">item</td><td data-label="name">triage.1.1</td><td data-label="then"></td><td data-label="now">completed</td>`, page.Body.String())
	require.Contains(t, get(h, "/api/v1"+m[1]).Body.String(), `{"what":"item","name":"triage.1.1","from":"","to":"completed"}`)
	first := journal(t, o.Engine, o.claim)[0].Seq
	require.Contains(t, get(h, "/cases/"+o.claim.String()+"/differences?from="+strconv.FormatInt(first, 10)+"&until="+strconv.FormatInt(first, 10)).Body.String(), "Nothing differs.")
	require.Equal(t, http.StatusNotFound, get(h, "/cases/01999999-9999-7999-8999-999999999999/differences?from=1").Code)
}
