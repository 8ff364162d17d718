package admin_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/admin"
	"github.com/tasq-dev/tasq/engine/why"
	"github.com/tasq-dev/tasq/store"
)

// The frames of a film, read in parts, add up to what differs between the first entry and each other one.
func TestAFilmShowsEachState(t *testing.T) {
	o := newOffice(t, "text")
	h := o.handler(admin.Config{Access: admin.ReadOnly})
	var frames []store.Frame
	for next := int64(-1); next != 0; {
		before := next
		w := get(h, fmt.Sprintf("/api/v1/cases/%s/film?limit=3&after=%d", o.claim, max(next, 0)))
		require.Equal(t, http.StatusOK, w.Code, w.Body)
		var part struct {
			Rows []store.Frame
			Next int64
		}
		require.NoError(t, json.Unmarshal(w.Body.Bytes(), &part))
		require.LessOrEqual(t, len(part.Rows), 3)
		frames, next = append(frames, part.Rows...), part.Next
		require.True(t, next == 0 || next > before, "the part after %d is followed by that after %d", before, next)
	}
	entries := journal(t, o.Engine, o.claim)
	require.Len(t, frames, len(entries), "each entry of this case changes its state")
	require.Equal(t, "start claim", frames[0].Command)
	require.Contains(t, frames[0].Changes, store.Difference{What: "case", To: "started"})
	type part struct{ what, name string }
	changed := make(map[part]store.Difference)
	for _, f := range frames[1:] {
		for _, d := range f.Changes {
			at := part{d.What, d.Name}
			if was, ok := changed[at]; ok {
				require.Equal(t, was.To, d.From, "%v", at)
				d.From = was.From
			}
			changed[at] = d
		}
		var sum []store.Difference
		for _, d := range changed {
			if d.From != d.To {
				sum = append(sum, d)
			}
		}
		want, err := store.Differences(t.Context(), o, o.claim, store.Moment{Seq: frames[0].Seq}, store.Moment{Seq: f.Seq})
		require.NoError(t, err)
		require.ElementsMatch(t, want, sum, "up to %d", f.Seq)
	}
	require.Equal(t, http.StatusNotFound, get(h, "/api/v1/cases/01999999-9999-7999-8999-999999999999/film").Code)
}

// The page and the API name the tasks of the shortest run that completes a case, and who must act.
func TestTheWayToTheEnd(t *testing.T) {
	o := newOffice(t, "text")
	h := o.handler(admin.Config{Access: admin.ReadOnly})
	var way why.Way
	require.NoError(t, json.Unmarshal(get(h, "/api/v1/cases/"+o.claim.String()+"/way").Body.Bytes(), &way))
	require.True(t, way.Found)
	require.Len(t, way.Tasks, 1)
	require.Equal(t, "withdraw", way.Tasks[0].Task)
	page := get(h, "/cases/"+o.claim.String()+"?tab=way").Body.String()
	require.Contains(t, page, "The case is started, and completes after 1 task:")
	require.Regexp(t, `<b>withdraw</b>.*<a href="/items/[^"]*">item withdraw.1.1 \(initialized, the default queue\) waits for a user to start it`, page)
	require.Contains(t, get(h, "/cases/"+o.claim.String()+"?tab=way&entry=1").Body.String(), "completes after 2 tasks")
	require.Contains(t, get(h, "/cases/"+o.failed.String()+"?tab=way").Body.String(), "The case is failed")
}

// Completed items can be left out of the page of a case, and so can the chart; moving through the history, and live changes, keep that.
func TestTheItemsOfACaseWithoutTheCompletedOnes(t *testing.T) {
	o := newOffice(t, "text")
	h := o.handler(admin.Config{Access: admin.ReadOnly})
	c := "/cases/" + o.claim.String()
	all, some := get(h, c).Body.String(), get(h, c+"?hide=completed").Body.String()
	require.Contains(t, all, "register.1.1")
	require.Contains(t, all, `href="`+c+`?hide=completed"`)
	require.NotContains(t, some, ">register.1.1<")
	require.Contains(t, some, ">assess.1.2<")
	require.Contains(t, some, "completed are hidden")
	require.Contains(t, some, "hide=completed&amp;tab=jobs", "another tab keeps it")
	require.Regexp(t, `href="[^"]*at=\d+&amp;hide=completed"[^>]*aria-label="One entry back"`, some)
	past := get(h, c+"?hide=completed&entry=5").Body.String()
	require.NotContains(t, past, ">register.1.1<")
	require.Contains(t, past, ">assess.1.1<")
	require.Contains(t, past, `<input type="hidden" name="hide" value="completed">`)
	require.Contains(t, all, "Items over time")
	require.NotContains(t, get(h, c+"?chart=off").Body.String(), "Items over time")
}

// Any two moments are chosen on the page of differences, by the commands after which they are.
func TestTwoMomentsAreChosen(t *testing.T) {
	o := newOffice(t, "text")
	h := o.handler(admin.Config{Access: admin.ReadOnly})
	entries := journal(t, o.Engine, o.claim)
	path := "/cases/" + o.claim.String() + "/differences"
	require.Contains(t, get(h, "/cases/"+o.claim.String()).Body.String(), fmt.Sprintf(`href="%s?from=%d">compare`, path, entries[0].Seq))
	page := get(h, fmt.Sprintf("%s?from=%d", path, entries[2].Seq)).Body.String()
	require.Contains(t, page, fmt.Sprintf(`<option value="%d" selected>%[1]d: item complete register.1.1`, entries[2].Seq))
	require.Contains(t, page, `<option value="" selected>now</option>`)
	sent := get(h, path+"?filter=1&from=&until=")
	require.Equal(t, http.StatusSeeOther, sent.Code)
	require.Equal(t, path, sent.Header().Get("Location"))
	require.True(t, slices.ContainsFunc(strings.Split(get(h, fmt.Sprintf("%s?from=%d&until=%d", path, entries[2].Seq, entries[4].Seq)).Body.String(), "\n"), func(line string) bool {
		return strings.Contains(line, `<td data-label="name">assess.1.1</td>`)
	}))
}
