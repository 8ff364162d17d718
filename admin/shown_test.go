package admin_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/admin"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/internal/testsize"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// only is an Access for a user who has one right; "" is none.
func only(right string) func(*http.Request) (admin.User, error) {
	return func(*http.Request) (admin.User, error) {
		return admin.User{Name: "eve", May: func(kind, _ string) bool { return kind == right }}, nil
	}
}

// rightTo is the right that a form needs, by the word for its command.
func rightTo(word string) string {
	switch {
	case strings.HasPrefix(word, "item-"):
		return "item"
	case strings.HasPrefix(word, "schedule-"):
		return "tasq-schedule"
	}
	return word
}

// formKinds are the forms that change something, by the right that each needs.
func formKinds(sheets []*sheet) map[string][]string {
	all := make(map[string][]string)
	for _, s := range sheets {
		if s.method == "post" && s.to != "/presets" { // everybody may save a filter
			right := rightTo(s.fields.Get("kind"))
			all[right] = append(all[right], s.kind())
		}
	}
	return all
}

// Who has one right alone is shown the forms that need it, all of them and no other, and each is permitted. No link leads to a refusal.
func TestPagesShowWhatTheUserMayDo(t *testing.T) {
	whole := newTown(t, "text")
	all := formKinds(crawl(t, whole.handler(admin.Config{Access: as("eve")})).sheets())
	for _, right := range strings.Fields("start item cancel send broadcast restart remove suspend resume move retry give-up retry-incident fork set-limit pause-queue " +
		"resume-queue redrive skip tasq-schedule suspend-workflow") {
		require.NotEmpty(t, all[right], "no page leads to a form that needs the right")
	}
	accesses := map[string]func(*http.Request) (admin.User, error){"none": only(""), "none at all": admin.ReadOnly}
	for i, right := range slices.Sorted(maps.Keys(all)) {
		if i%testsize.Pick(12, 8, 1) == 0 {
			accesses[right] = only(right)
		}
	}
	for right, access := range accesses {
		t.Run(right, func(t *testing.T) {
			o := newTown(t, "text")
			h := o.handler(admin.Config{Access: access})
			pages := crawl(t, h)
			pages.lead(t, h)
			sheets := pages.sheets()
			shown := formKinds(sheets)
			require.Equal(t, all[right], shown[right], "the forms that the right is for")
			delete(shown, right)
			require.Empty(t, shown, "forms that another right is for")
			for _, s := range sheets {
				fill := s.fill
				if s.method != "post" {
					fill = func(url.Values) {} // it is sent as it is
				}
				w := s.sent(h, fill)
				require.NotEqual(t, http.StatusForbidden, w.Code, "%s on %s: %s", s.kind(), s.page, plainText(w.Body.String()))
				sound(t, w, s.kind())
				if to := w.Header().Get("Location"); to != "" {
					require.Less(t, get(h, to).Code, 400, "%s leads to %s", s.kind(), to)
				}
			}
		})
	}
}

// lead requires that every link of the pages to a form or to the API leads to something, also where the crawl has seen enough of its kind.
func (c crawled) lead(t testing.TB, h http.Handler) {
	t.Helper()
	var links []string
	for _, body := range c {
		for _, a := range anchors.FindAllStringSubmatch(body, -1) {
			links = append(links, attribute(a[1], "href"))
		}
	}
	slices.Sort(links)
	for _, to := range slices.Compact(links) {
		if strings.HasPrefix(to, "/act?") || strings.HasPrefix(to, "/bulk?") || strings.HasPrefix(to, "/api/") {
			w := get(h, to)
			require.Less(t, w.Code, 400, "%s: %s", to, w.Body)
		}
	}
}

// Started items are listed by who holds them, in the pages as in the API; other items have no holder.
func TestItemsOfAHolder(t *testing.T) {
	t.Parallel()
	o := newOfficeOf(t, likely)
	h := o.handler(admin.Config{Access: admin.ReadOnly})
	page := get(h, "/items?holder=ann").Body.String()
	require.Contains(t, page, "Remove the filter </span>holder: ann")
	require.Contains(t, page, ">assess.1.2<")
	require.NotContains(t, page, ">assess.1.3<", "it has not been started")
	require.NotContains(t, page, ">police.1.1<", "ann has completed it")
	var list struct {
		Rows []struct{ Label, State, By string }
	}
	require.NoError(t, json.Unmarshal(get(h, "/api/v1/items?holder=ann").Body.Bytes(), &list))
	require.Len(t, list.Rows, 1)
	require.Equal(t, "assess.1.2", list.Rows[0].Label)
	require.Equal(t, "started", list.Rows[0].State)
	require.NotContains(t, get(h, "/items?holder=bob").Body.String(), ">assess.1.2<")
	require.NotContains(t, get(h, "/items?holder=ann&state=completed").Body.String(), ">police.1.1<")
	require.NoError(t, enginetest.Do(t.Context(), o, workflow.Act(o.Item(o.claim, "assess.1.2").ID, workitem.Reset, nil, workflow.By("ann"))))
	require.NotContains(t, get(h, "/items?holder=ann").Body.String(), ">assess.1.2<", "ann has put it back")
}
