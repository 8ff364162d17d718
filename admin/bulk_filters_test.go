package admin_test

import (
	"context"
	"errors"
	"html"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/admin"
	"github.com/tasq-dev/tasq/admin/internal/query"
	"github.com/tasq-dev/tasq/admin/internal/selection"
	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/bulk"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/step"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// shop is an engine with cases that differ in everything that a list filters by.
type shop struct {
	*office
	parent, child workitem.CaseID
}

// newShop starts orders, which fail with the code of their input, or wait for a payment, some of them in a child case;
// half of them are older than an hour. A bulk action waits in its paused queue.
func newShop(t *testing.T) *shop {
	t.Helper()
	s := &shop{office: &office{bulk: bulk.New(engine.Code)}}
	order := builder.MustFunc("order", func(ctx context.Context, code string) (string, error) {
		if code != "waits" {
			return "", &workitem.Failure{Code: code}
		}
		return step.Await[string](ctx, "paid")
	})
	parcel := builder.MustFunc("parcel", func(ctx context.Context, code string) (string, error) {
		return step.Call[string](ctx, "order", "order", code)
	})
	s.Engine = enginetest.New(t, order, parcel, s.bulk)
	s.bulk.Serve(s.Engine)
	start := func(name, input string, opts ...workflow.Option) workitem.CaseID {
		result, err := s.Do(t.Context(), workflow.Start(name, []byte(strconv.Quote(input)), opts...))
		require.NoError(t, err)
		s.Drain()
		return result.Case
	}
	do := func(c workflow.Command) {
		_, err := s.Do(t.Context(), c)
		require.NoError(t, err)
	}
	for range 2 {
		for _, name := range []string{"order", "parcel"} {
			start(name, "waits")
			start(name, "", workflow.BusinessKey("K-1"))
			start(name, "no-funds", workflow.Label("customer", "ada"))
			start(name, "timeout", workflow.BusinessKey("K-1"), workflow.Label("customer", "ada"))
			start(name, "waits", workflow.BusinessKey("K-1"), workflow.Label("customer", "ada"))
			do(workflow.Suspend(start(name, "waits", workflow.Label("customer", "ada"))))
		}
		s.Advance(2 * time.Hour)
	}
	s.parent = start("parcel", "waits", workflow.BusinessKey("K-2"))
	for c, err := range store.AllCases(t.Context(), s, store.CaseFilter{Root: s.parent}) {
		require.NoError(t, err)
		s.child = c.ID
	}
	do(workflow.PauseQueue(bulk.Name))
	_, err := s.bulk.Start(t.Context(), s.Engine, bulk.Action{Kind: workflow.KindCancel}, []string{s.parent.String()}, workflow.Label("customer", "ada"))
	require.NoError(t, err)
	return s
}

var (
	filterForms = regexp.MustCompile(`(?s)<form method="get".*?</form>`)
	fieldNames  = regexp.MustCompile(`<(?:input|select)[^>]* name="([^"]*)"`)
	rowIDs      = regexp.MustCompile(`<tr id="row-([0-9a-f-]{36})"`)
	bulkLinks   = regexp.MustCompile(`href="(/bulk\?[^"]*)"`)
	countedIn   = regexp.MustCompile(`<h1>[^<]*: (\d+) (?:case|incident)s?</h1>`)
)

// targetsOf returns how many targets the form of a bulk action has.
func targetsOf(t *testing.T, h http.Handler, form string) int {
	t.Helper()
	page := get(h, form)
	require.Equal(t, http.StatusOK, page.Code, "%s\n%s", form, page.Body)
	m := countedIn.FindStringSubmatch(page.Body.String())
	if m == nil {
		require.Contains(t, page.Body.String(), "Nothing matches any more", form)
		return 0
	}
	n, err := strconv.Atoi(m[1])
	require.NoError(t, err)
	return n
}

// roots returns the cases of a list that a bulk action is on: without child cases and bulk actions.
func (s *shop) roots(t *testing.T, page string) (roots []string) {
	t.Helper()
	require.NotContains(t, page, "is no filter of this list")
	for _, m := range rowIDs.FindAllStringSubmatch(page, -1) {
		var id workitem.CaseID
		require.NoError(t, id.UnmarshalText([]byte(m[1])))
		c, err := s.Case(t.Context(), id)
		require.NoError(t, err)
		if c.Parent.IsZero() && c.Workflow != bulk.Name {
			roots = append(roots, m[1])
		}
	}
	return roots
}

// Bulk actions on cases select what the list shows, for each of its filters, alone and with every other one.
func TestBulkActionsSelectWhatTheListOfCasesShows(t *testing.T) {
	s := newShop(t)
	h := s.handler(admin.Config{Access: as("eve")})
	c, err := s.Case(t.Context(), s.parent)
	require.NoError(t, err)
	values := map[string][]string{"state": {"started", "failed", "started,failed"}, "workflow": {"order", "parcel", bulk.Name}, "fingerprint": {c.Fingerprint},
		"older": {"1h"}, "newer": {"3h"}, "root-only": {"true", "false", ""}, "suspended": {"true", "false", ""}, "code": {"no-funds", "other"}, "key": {"K-1"},
		"label": {"customer=ada"}, "payload": {"no-f", "waits"}, "case": {s.parent.String(), s.child.String()}}
	q := query.Of(url.Values{}, s.Clock().Now())
	q.Cases()
	q.Case()
	q.Search()
	require.Equal(t, q.Names(), slices.Sorted(maps.Keys(values)), "the test has a value for each filter that is read")
	for _, form := range filterForms.FindAllString(get(h, "/cases").Body.String(), -1) {
		for _, m := range fieldNames.FindAllStringSubmatch(form, -1) {
			if !slices.Contains([]string{"q", "filter", selection.IDs}, m[1]) {
				require.Contains(t, values, m[1], "the test has a value for each filter that is shown")
			}
		}
	}
	forms, fewer := 0, make(map[string]bool) // filters with which some, but not all are selected
	compare := func(v url.Values) {
		list := "/cases?" + v.Encode() + "&limit=500"
		page := get(h, list)
		require.Equal(t, http.StatusOK, page.Code, page.Body)
		roots := s.roots(t, page.Body.String())
		for _, m := range bulkLinks.FindAllStringSubmatch(page.Body.String(), -1) {
			if forms++; testing.Short() && forms%5 != 0 {
				continue
			}
			require.Equal(t, len(roots), targetsOf(t, h, html.UnescapeString(m[1])), "%s leads to %s", list, m[1])
			for name := range v {
				fewer[name] = fewer[name] || len(roots) > 0 && len(roots) < 10
			}
		}
	}
	for _, present := range []string{"started", "failed"} {
		for one, ones := range values {
			for _, a := range ones {
				for other, others := range values {
					for _, b := range others {
						v := url.Values{"state": {present}}
						v.Set(one, a)
						if other >= one {
							v.Set(other, b)
							compare(v)
						}
					}
				}
			}
		}
	}
	require.Greater(t, forms, 300)
	for name := range values {
		require.True(t, fewer[name], "no form shows that %s selects", name)
	}
	v := url.Values{"state": {"started"}, "suspended": {"true"}, "payload": {"waits"}, "case": {s.parent.String()}}
	require.Equal(t, http.StatusBadRequest, get(h, "/bulk?kind=cancel&stat=started").Code, "a misspelled filter")

	// What is executed is what the form says.
	v.Del("suspended")
	links := bulkLinks.FindAllStringSubmatch(get(h, "/cases?"+v.Encode()).Body.String(), -1)
	cancel := html.UnescapeString(links[len(links)-1][1])
	require.Contains(t, cancel, "kind=cancel")
	require.Equal(t, http.StatusSeeOther, submit(t, h, cancel).Code)
	_, err = s.Do(t.Context(), workflow.ResumeQueue(bulk.Name))
	require.NoError(t, err)
	require.Equal(t, state.CaseCanceled, s.stateOf(t, s.parent))
	for c, err := range store.AllCases(t.Context(), s, store.CaseFilter{States: []state.CaseState{state.CaseCanceled}, RootOnly: true}) {
		require.NoError(t, err)
		require.Equal(t, s.parent, c.ID)
	}
}

var groupHeads = regexp.MustCompile(`(?s)<section class="card group">.*?</span> (\d+)</span> ([^<]*)</h2>(.*?)</section>`)

// newClaims opens an engine with incidents of two tasks, with several codes and with none, and with incidents of completion handlers, which have no
// task. Half of them are older than an hour.
func newClaims(t *testing.T) *office {
	t.Helper()
	o := &office{bulk: bulk.New(engine.Code)}
	told := builder.LaterHandler("told", func(_ context.Context, _ builder.Ended[int], code string) error {
		return &workitem.Failure{Code: code, Message: "no answer"}
	}, builder.JobOptions{Retry: retry.Constant(1, 0)})
	counts := builder.MustFunc("counts", func(context.Context, int) (int, error) { return 1, nil }, builder.Handles(told), builder.Keep(builder.Forever))
	flows := []engine.Workflow{o.bulk, counts}
	for _, name := range []string{"claim", "bill"} {
		b := builder.New[string](name)
		var last builder.Node = b.Start()
		for _, task := range []string{"ask", "pay"} {
			next := builder.Task(b, task, builder.Work[string, string]{Input: builder.CaseInput(b), Policy: workitem.Incident(workitem.Policy{}),
				Run: func(_ context.Context, code string) (string, error) {
					if code, found := strings.CutPrefix(code, task+" "); found {
						return "", &workitem.Failure{Code: code, Message: "no answer"}
					}
					return "", nil
				}})
			b.Path(last, next)
			last = next
		}
		b.Path(last, b.End())
		flows = append(flows, b.MustBuild())
	}
	o.Engine = enginetest.New(t, flows...)
	o.bulk.Serve(o.Engine)
	n := 0
	for range 2 {
		for _, code := range []string{"", "down", "late", "down", "down"} {
			for _, name := range []string{"claim", "bill"} {
				for _, task := range []string{"ask", "pay"} {
					n++
					_, err := o.Do(t.Context(), workflow.Start(name, []byte(strconv.Quote(task+" "+code)), workflow.Label("of", task), workflow.BusinessKey("C-"+strconv.Itoa(n))))
					require.NoError(t, err)
				}
			}
			_, err := counts.Run(t.Context(), o, 1, builder.OnCompleteLater(told, code))
			require.NoError(t, err)
		}
		o.Drain()
		o.Advance(2 * time.Hour)
	}
	return o
}

// Bulk actions on a group of incidents select what the list shows of the group, for each filter, alone and with every
// other one. A group without a code, or without a task, is no more than that. The links to a group lead to it alone.
func TestBulkActionsSelectTheGroupOfIncidents(t *testing.T) {
	o := newClaims(t)
	h := o.handler(admin.Config{Access: as("eve")})
	var first workitem.CaseID
	for i, err := range store.Incidents(t.Context(), o, store.IncidentFilter{Page: store.Page{Limit: 1}}) {
		require.NoError(t, err)
		first = i.Case
	}
	values := map[string][]string{"workflow": {"claim", "counts"}, "task": {"ask", ""}, "kind": {state.IncidentAttempts, state.IncidentHandler},
		"code": {"down", "late", ""}, "older": {"3h"}, "newer": {"3h"}, "case": {first.String()},
		"key": {"C-6", "none"}, "label": {"of=ask"}}
	q := query.Of(url.Values{}, o.Clock().Now())
	q.Incidents()
	q.Case()
	require.Equal(t, q.Names(), slices.Sorted(maps.Keys(values)), "the test has a value for each filter")
	only := func(link, n string) {
		groups := groupHeads.FindAllStringSubmatch(get(h, html.UnescapeString(link)).Body.String(), -1)
		require.Len(t, groups, 1, link)
		require.Equal(t, n, groups[0][1], link)
	}
	forms, more := 0, regexp.MustCompile(`href="(/incidents\?[^"]*)">and \d+ more`)
	compare := func(v url.Values) {
		list := get(h, "/incidents?"+v.Encode())
		require.Equal(t, http.StatusOK, list.Code, list.Body)
		for _, g := range groupHeads.FindAllStringSubmatch(list.Body.String(), -1) {
			for _, m := range bulkLinks.FindAllStringSubmatch(g[3], -1) {
				forms++
				require.Equal(t, g[1], strconv.Itoa(targetsOf(t, h, html.UnescapeString(m[1]))), "%s of %s leads to %s", g[2], v.Encode(), m[1])
			}
			if m := more.FindStringSubmatch(g[3]); m != nil {
				only(m[1], g[1])
			}
		}
	}
	for one, ones := range values {
		for _, a := range ones {
			compare(url.Values{one: {a}})
			for other, others := range values {
				for _, b := range others {
					compare(url.Values{one: {a}, other: {b}})
				}
			}
		}
	}
	require.Greater(t, forms, 200)
	lines := regexp.MustCompile(`<a href="(/incidents\?[^"]*)"><b[^>]*>.*?</span> (\d+)</b>`).FindAllStringSubmatch(get(h, "/").Body.String(), -1)
	require.NotEmpty(t, lines)
	for _, m := range lines {
		only(m[1], m[2])
	}
	for filter, want := range map[string]int{"workflow=claim&task=ask&code=": 2, "task=": 10, "task=&code=": 2, "code=": 10, "": 50} {
		body := get(h, "/api/v1/incidents?limit=500&"+filter).Body.String()
		require.Equal(t, want, strings.Count(body, `"id"`), "the API has the same meaning: %s", filter)
		n := 0
		for _, g := range groupHeads.FindAllStringSubmatch(get(h, "/incidents?"+filter).Body.String(), -1) {
			of, err := strconv.Atoi(g[1])
			require.NoError(t, err)
			n += of
		}
		require.Equal(t, want, n, filter)
	}
	require.Contains(t, get(h, "/incidents?code=").Body.String(), "failure code: none")
}

// An item whose timer was given up has not failed: a bulk retry of items leaves it out, and one of incidents has its timer.
func TestABulkRetryLeavesOutTheItemsOfTimers(t *testing.T) {
	t.Parallel()
	b := builder.New[string]("timed")
	b.Path(b.Start(), builder.Task(b, "wait", builder.Work[string, string]{Input: builder.CaseInput(b), Timers: []activities.Timer{
		{Name: "remind", After: time.Minute, Item: func(context.Context, *activities.Item) error { return errors.New("no connection") }}}}), b.End())
	w := b.MustBuild()
	o := &office{bulk: bulk.New(engine.Code)}
	o.Engine = enginetest.New(t, w, o.bulk)
	o.bulk.Serve(o.Engine)
	_, err := w.Start(t.Context(), o.Engine, "x")
	require.NoError(t, err)
	o.Advance(24 * time.Hour)
	h := o.handler(admin.Config{Access: mayNot()})
	for kind, want := range map[string]string{"retry": `"targets":0`, "skip": `"targets":1`, "retry-incident": `"targets":1`} {
		w := commandTo(h, "/api/v1/bulk", `{"kind":"`+kind+`","filter":{"workflow":["timed"]},"count":true}`)
		require.Contains(t, w.Body.String(), want, kind)
	}
	o.Check()
}
