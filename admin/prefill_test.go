package admin_test

import (
	"encoding/json"
	"html"
	"net/http"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/admin"
	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// newPayments is an office with a case that waits for a decision about a failed item, which has an input.
func newPayments(t *testing.T, c admin.Config) (*office, http.Handler, workitem.CaseID) {
	t.Helper()
	b := builder.New[map[string]string]("payment")
	pay := builder.Task(b, "pay", builder.Work[map[string]string, string]{Input: builder.CaseInput(b), Policy: workitem.Incident(workitem.Default())})
	b.Path(b.Start(), pay, b.End())
	o := &office{Engine: enginetest.New(t, b.MustBuild())}
	started, err := o.Do(t.Context(), workflow.Start("payment", json.RawMessage(`{"iban": "DE02","cents":"9007199254740993"}`)))
	require.NoError(t, err)
	o.FailItem(started.Case, "pay", &workitem.Failure{Code: "no-funds"})
	c.Access = eve
	return o, o.handler(c), started.Case
}

var payloadField = regexp.MustCompile(`(?s)<textarea name="payload"[^>]*>(.*?)</textarea>`)

// filledIn is the text in the field of a payload.
func filledIn(t *testing.T, page string) string {
	t.Helper()
	field := payloadField.FindStringSubmatch(page)
	require.NotNil(t, field, page)
	return html.UnescapeString(field[1])
}

// The form of a retry has the input of the item, to be changed. Sent unchanged, it retries with the input that the item has.
func TestTheFormOfARetryHasTheInput(t *testing.T) {
	o, h, id := newPayments(t, admin.Config{})
	pay := o.Item(id, "pay.1.1")
	form := "/act?kind=retry&item=" + pay.ID.String()
	text := filledIn(t, get(h, form).Body.String())
	require.JSONEq(t, string(pay.Input), text)
	require.Contains(t, text, "\n  ", "it is in lines")

	require.Equal(t, http.StatusSeeOther, submit(t, h, form, "payload", text).Code)
	again := o.Item(id, "pay.1.2")
	require.Equal(t, string(pay.Input), string(again.Input), "as it is stored")

	o.FailItem(id, "pay.1.2", &workitem.Failure{Code: "no-funds"}, workflow.By("ann"))
	form = "/act?kind=retry&item=" + again.ID.String()
	w := submit(t, h, form, "payload", `{"iban":`)
	require.Equal(t, http.StatusUnprocessableEntity, w.Code)
	require.Equal(t, `{"iban":`, filledIn(t, w.Body.String()), "what was typed")
	require.Equal(t, http.StatusSeeOther, submit(t, h, form, "payload", `{"iban":"another"}`).Code)
	require.JSONEq(t, `{"iban":"another"}`, string(o.Item(id, "pay.1.3").Input))
}

// A masked input is not in the form: the mask would be sent as the new input.
func TestTheFormOfARetryHasNoMaskedInput(t *testing.T) {
	o, h, id := newPayments(t, admin.Config{Show: func(admin.User, string, string, json.RawMessage) json.RawMessage {
		return json.RawMessage(`"hidden"`)
	}})
	pay := o.Item(id, "pay.1.1")
	form := "/act?kind=retry&item=" + pay.ID.String()
	page := get(h, form).Body.String()
	require.Empty(t, filledIn(t, page))
	require.NotContains(t, page, "DE02")
	require.NotContains(t, page, `name="was"`)
	require.Equal(t, http.StatusSeeOther, submit(t, h, form).Code)
	require.Equal(t, string(pay.Input), string(o.Item(id, "pay.1.2").Input))
}

// newFailedPayments is an office with a case that has failed with its item.
func newFailedPayments(t *testing.T, c admin.Config) (*office, http.Handler, workitem.CaseID) {
	t.Helper()
	b := builder.New[map[string]string]("payment")
	pay := builder.Task(b, "pay", builder.Work[map[string]string, string]{Input: builder.CaseInput(b)})
	b.Path(b.Start(), pay, b.End())
	o := &office{Engine: enginetest.New(t, b.MustBuild())}
	started, err := o.Do(t.Context(), workflow.Start("payment", json.RawMessage(`{"iban": "DE02","cents":"9007199254740993"}`)))
	require.NoError(t, err)
	o.FailItem(started.Case, "pay", &workitem.Failure{Code: "no-funds"})
	c.Access = eve
	return o, o.handler(c), started.Case
}

// The form of a resume has the input of the item that failed, as that of a retry has.
func TestTheFormOfAResumeHasTheInput(t *testing.T) {
	o, h, id := newFailedPayments(t, admin.Config{})
	form := "/act?kind=resume&case=" + id.String()
	text := filledIn(t, get(h, form).Body.String())
	input := o.Item(id, "pay.1.1").Input
	require.JSONEq(t, string(input), text)
	require.Equal(t, http.StatusSeeOther, submit(t, h, form, "payload", text).Code)
	require.Equal(t, string(input), string(o.Item(id, "pay.1.2").Input), "as it is stored")

	require.Empty(t, filledIn(t, get(h, form).Body.String()), "the case has not failed now")
	o.FailItem(id, "pay.1.2", &workitem.Failure{Code: "no-funds"}, workflow.By("ann"))
	require.Equal(t, http.StatusSeeOther, submit(t, h, form, "payload", `{"iban":"another"}`).Code)
	require.JSONEq(t, `{"iban":"another"}`, string(o.Item(id, "pay.1.3").Input))

	masked, h, id := newFailedPayments(t, admin.Config{Show: func(admin.User, string, string, json.RawMessage) json.RawMessage {
		return json.RawMessage(`"hidden"`)
	}})
	form = "/act?kind=resume&case=" + id.String()
	require.Empty(t, filledIn(t, get(h, form).Body.String()))
	require.Equal(t, http.StatusSeeOther, submit(t, h, form).Code)
	require.Equal(t, string(input), string(masked.Item(id, "pay.1.2").Input))
}
