package admin_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/admin"
	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/bulk"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/internal/scenario"
	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/step"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// claims is a workflow with an or-join that waits, attempts, and a task whose failure is an incident.
const claims = `
workflow claim
  start received
  end closed
  condition open
  task register split=and
  task triage split=or
  task assess items=3
  task police
  task fraud retry=4:30s
  task decide join=or
  task withdraw
  task settle policy=incident
  task pay
  flow received -> register
  flow register -> triage, open
  flow open -> withdraw
  flow triage -> assess, police, fraud
  flow assess -> decide
  flow police -> decide
  flow fraud -> decide
  flow decide -> settle
  flow settle -> pay
  flow pay -> closed
  flow withdraw -> closed
workflow bill
  start begin
  end over
  task charge policy=incident
  flow begin -> charge
  flow charge -> over
`

// office is an engine with cases in several states.
type office struct {
	*enginetest.Engine
	bulk   *bulk.Bulk
	claim  workitem.CaseID // waits for people, another attempt and a join
	bill   workitem.CaseID // waits for a decision
	order  workitem.CaseID // a function that waits for an event
	failed workitem.CaseID
}

// texts are what stands in the fields of an office's cases that take any text.
type texts struct {
	name           string // of who acts
	account        string // in the payloads
	result         string // of a step
	busy, declined string // why a model and a bank failed
}

// likely is an office as it may be.
var likely = texts{name: "ann", account: "DE02 1203 0000 0000 2020 51", result: "charge-7f3a", busy: "model fraud-2: 429 too many requests",
	declined: "the account has 12.40 EUR, and 95.00 EUR are due"}

// newOffice opens an engine and brings its cases on the way. The text is in each field that takes any.
func newOffice(t testing.TB, text string) *office {
	return newOfficeOf(t, texts{text, text, text, text, text})
}

// newOfficeOf is newOffice with texts of their own for the fields.
func newOfficeOf(t testing.TB, in texts) *office {
	t.Helper()
	o := &office{bulk: bulk.New(engine.Code)}
	o.Engine = enginetest.New(t, append(workflows(t, in), o.bulk)...)
	o.bulk.Serve(o.Engine)
	o.act(t, in)
	return o
}

// workflows are those of the office.
func workflows(t testing.TB, in texts) []engine.Workflow {
	t.Helper()
	parsed, err := scenario.ParseNotation(net.Pos{}, claims)
	require.NoError(t, err)
	defs, problems, err := scenario.Compile(parsed, nil)
	require.NoError(t, err)
	require.Empty(t, problems)
	order := builder.MustFunc("order", func(ctx context.Context, s string) (string, error) {
		if _, err := step.Do(ctx, "charge", func(context.Context) (string, error) { return in.result, nil }); err != nil {
			return "", err
		}
		if s == "fail" {
			return "", &workitem.Failure{Code: "no-funds", Message: in.declined}
		}
		return step.Await[string](ctx, "paid")
	})
	flows := []engine.Workflow{order}
	for _, d := range defs {
		flows = append(flows, d)
	}
	return flows
}

func (o *office) act(t testing.TB, in texts) {
	t.Helper()
	ctx := t.Context()
	payload := plainJSON(t, map[string]string{"iban": in.account})
	by := workflow.By(in.name)
	start := func(name string, input []byte) workitem.CaseID {
		result, err := o.Do(ctx, workflow.Start(name, input, by))
		require.NoError(t, err)
		o.Drain()
		return result.Case
	}
	o.claim = start("claim", payload)
	complete := func(label string, opts ...workflow.Option) {
		it := o.StartItem(o.claim, label, by)
		_, err := o.Do(ctx, workflow.Act(it.ID, workitem.Complete, payload, append(opts, by)...))
		require.NoError(t, err)
	}
	reason := &workitem.Failure{Code: "rate-limited", Message: in.busy, Details: payload, Retryable: true}
	complete("register")
	complete("triage", workflow.Route("assess", "police", "fraud"))
	complete("assess.1.1")
	o.StartItem(o.claim, "assess.1.2", by)
	complete("police")
	o.FailItem(o.claim, "fraud", reason, by)
	o.bill = start("bill", payload)
	o.FailItem(o.bill, "charge", &workitem.Failure{Code: "no-funds", Message: in.declined, Details: payload}, by)
	o.order = start("order", []byte(`"pay"`))
	o.failed = start("order", []byte(`"fail"`))
	_, err := o.Do(ctx, workflow.Send(o.order, "other", json.RawMessage(payload), by))
	require.NoError(t, err)
	o.Drain()
}

// plainJSON is a value as JSON with its markup as it is: json.Marshal would escape it, and hide that a page does not.
func plainJSON(t testing.TB, v any) []byte {
	t.Helper()
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	require.NoError(t, e.Encode(v))
	return bytes.TrimSpace(b.Bytes())
}

// handler serves the office.
func (o *office) handler(c admin.Config) http.Handler {
	c.Logger, c.Clock = slog.New(slog.NewTextHandler(io.Discard, nil)), o.Clock()
	if c.Bulk == nil {
		c.Bulk = o.bulk
	}
	return admin.Handler(o.Engine.Engine, c)
}

// as is an Access for a user who may act.
func as(name string) func(*http.Request) (admin.User, error) {
	return func(*http.Request) (admin.User, error) {
		return admin.User{Name: name, May: func(string, string) bool { return true }}, nil
	}
}

// get asks for a page.
func get(h http.Handler, path string, accept ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, path, nil)
	for _, a := range accept {
		r.Header.Set("Accept", a)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// post sends a form.
func post(h http.Handler, path string, fields ...string) *httptest.ResponseRecorder {
	v := url.Values{}
	for i := 0; i < len(fields); i += 2 {
		v.Add(fields[i], fields[i+1])
	}
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(v.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// paths are all pages and answers that are only looked at, with the ids of the office.
func (o *office) paths(t testing.TB) []string {
	t.Helper()
	var item, job string
	for it, err := range store.AllItems(t.Context(), o, store.ItemFilter{Case: o.claim, Code: new("rate-limited")}) {
		require.NoError(t, err)
		item = it.ID.String()
	}
	for j, err := range store.AllJobs(t.Context(), o, store.JobFilter{Case: o.order}) {
		require.NoError(t, err)
		job = j.ID.String()
	}
	c, third := "/cases/"+o.claim.String(), journal(t, o.Engine, o.claim)[2].Seq
	return []string{"/", "/workflows", "/workflows/claim", "/workflows/claim?heat=failures", "/workflows/claim?heat=time", "/cases", "/cases?state=started&workflow=claim&older=0s", c, c + "?tab=steps", c + "?tab=jobs",
		c + "?tab=events", c + "?tab=history", c + "?tab=data", c + "?tab=children", c + "?entry=4", c + "?entry=4&tab=history", "/cases/" + o.bill.String(),
		"/cases/" + o.order.String() + "?tab=steps", "/cases/" + o.order.String() + "?tab=events", "/cases/" + o.failed.String(), "/items",
		"/items?queue=&state=failed", "/items?state=failed", "/items/" + item, "/jobs", "/jobs/" + job, "/steps", "/events", "/incidents", "/doctor", "/audit", "/bulk", "/search?q=cla",
		"/search?q=nothing+of+this", "/help",
		"/api/v1/openapi.json", "/api/v1/cases", "/api/v1" + c, fmt.Sprintf("/api/v1%s?at=%d", c, third), "/api/v1" + c + "/why", "/api/v1" + c + "/history", "/api/v1/items",
		"/api/v1/items/" + item, "/api/v1/jobs", "/api/v1/jobs/" + job, "/api/v1/steps", "/api/v1/events", "/api/v1/incidents", "/api/v1/definitions", "/api/v1/engines",
		"/api/v1/counts", "/api/v1/audit", "/api/v1/failures", "/api/v1/doctor", "/api/v1/stats?hourly", "/limits", "/schedules", "/stats", "/stats?newer=30d&workflow=claim", "/stats?task=none", "/api/v1/limits", "/api/v1/queues", "/api/v1/schedules"}
}

// pages are all pages that a browser opens, also forms and what is not found.
func (o *office) pages(t testing.TB) []string {
	t.Helper()
	elsewhere := func(path string) bool { return strings.HasPrefix(path, "/api/") || strings.Contains(path, "q=cla") }
	return append(slices.DeleteFunc(o.paths(t), elsewhere), "/act?kind=cancel&case="+o.claim.String(), "/act?kind=send&case="+o.order.String(),
		"/act?kind=start&workflow=claim", "/bulk?kind=retry&workflow=bill", "/cases?state=canceled&workflow=claim")
}
