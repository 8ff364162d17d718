package eventlog_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/internal/scenario"
	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/step"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/eventlog"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

const flows = `
workflow claim
  start received
  end closed
  task register
  dummy sort
  composite assess of quote
  task pay retry=2:30s
  flow received -> register
  flow register -> sort
  flow sort -> assess
  flow assess -> pay
  flow pay -> closed
workflow quote
  start begin
  end over
  task ask
  flow begin -> ask
  flow ask -> over
`

// hostile is what no format may take for its own.
const hostile = `<x a="1">]]>&'` + "\x01\u202e"

func open(t *testing.T) (e *enginetest.Engine, claim, order workitem.CaseID) {
	t.Helper()
	parsed, err := scenario.ParseNotation(net.Pos{}, flows)
	require.NoError(t, err)
	defs, problems, err := scenario.Compile(parsed, nil)
	require.NoError(t, err)
	require.Empty(t, problems)
	all := []engine.Workflow{builder.MustFunc("order", func(ctx context.Context, s string) (string, error) {
		if _, err := step.Do(ctx, "charge", func(context.Context) (string, error) { return s, nil }); err != nil {
			return "", err
		}
		return step.Await[string](ctx, "paid")
	})}
	for _, d := range defs {
		all = append(all, d)
	}
	e = enginetest.New(t, all...)
	ctx, ann := t.Context(), workflow.By("ann")
	claim, err = enginetest.Start(ctx, e, "claim", nil, ann, workflow.BusinessKey("C-1"), workflow.Label("customer", hostile))
	require.NoError(t, err)
	e.Drain()
	e.StartItem(claim, "register", ann)
	require.NoError(t, enginetest.Do(ctx, e, workflow.Act(e.Item(claim, "register").ID, workitem.Reset, nil, workflow.By(hostile))))
	e.Advance(time.Minute)
	e.StartItem(claim, "register", ann)
	enginetest.CompleteItem[any](e, claim, "register", nil, ann)
	e.Drain()
	for c, err := range store.AllCases(ctx, e, store.CaseFilter{Root: claim}) {
		require.NoError(t, err)
		if c.Workflow == "quote" {
			e.StartItem(c.ID, "ask", ann)
			enginetest.CompleteItem[any](e, c.ID, "ask", nil, ann)
		}
	}
	e.Drain()
	e.StartItem(claim, "pay", ann)
	e.FailItem(claim, "pay", &workitem.Failure{Code: "no-funds", Message: "secret", Retryable: true}, ann)
	e.Drain()
	order, err = enginetest.Start(ctx, e, "order", []byte(`"x"`))
	require.NoError(t, err)
	e.Drain()
	require.NoError(t, enginetest.Do(ctx, e, workflow.Send(order, "paid", []byte(`"secret"`), workflow.By("bank"))))
	e.Drain()
	return e, claim, order
}

func written(t *testing.T, v store.Viewer, f eventlog.Format, o eventlog.Options) []byte {
	t.Helper()
	t.Setenv("TMPDIR", t.TempDir())
	var b bytes.Buffer
	require.NoError(t, eventlog.Write(t.Context(), &b, v, f, o))
	left, err := os.ReadDir(os.TempDir())
	require.NoError(t, err)
	require.Empty(t, left, "no temporary file is left")
	require.NotContains(t, b.String(), "secret", "payloads and messages are left out")
	require.NotContains(t, b.String(), "\u202e", "what acts on a terminal is written as an escape")
	return b.Bytes()
}

// A log in XES has a trace for each root case, with the life of its work items, child cases, steps and messages in their order.
func TestXES(t *testing.T) {
	e, claim, order := open(t)
	log := checkXES(t, written(t, e, eventlog.XES, eventlog.Options{}))
	traces := log.all("trace")
	require.Len(t, traces, 2)
	lines := func(trace *element) (all []string) {
		var last string
		for _, ev := range trace.all("event") {
			at := ev.value("time:timestamp")
			require.LessOrEqual(t, last, at)
			last = at
			all = append(all, strings.TrimSpace(ev.value("tasq:workflow")+" "+ev.value("concept:name")+" "+ev.value("lifecycle:transition")+" "+ev.value("tasq:code")))
		}
		return all
	}
	require.Equal(t, claim.String(), traces[0].value("concept:name"))
	require.Equal(t, "C-1", traces[0].value("tasq:key"))
	require.Equal(t, "started", traces[0].value("tasq:state"))
	require.Equal(t, strings.ReplaceAll(hostile, "\x01", "\uFFFD"), traces[0].value("label:customer"))
	require.Equal(t, []string{
		"claim register schedule", "claim register start", "claim register reassign", "claim register start", "claim register complete",
		"claim sort start", "claim sort complete", "quote ask schedule", "claim assess start", "quote ask start", "quote ask complete", "claim assess complete",
		"claim pay schedule", "claim pay start", "claim pay ate_abort no-funds", "claim pay schedule",
	}, lines(traces[0]))
	register := traces[0].all("event")[4]
	require.Equal(t, "ann", register.value("org:resource"))
	require.Equal(t, "register.1.1", register.value("concept:instance"))
	require.Equal(t, order.String(), traces[1].value("concept:name"))
	require.Equal(t, "completed", traces[1].value("tasq:state"))
	require.Subset(t, lines(traces[1]), []string{"order charge complete", "order paid start", "order paid complete"})
	require.True(t, slices.ContainsFunc(traces[1].all("event"), func(ev *element) bool { return ev.value("org:resource") == "bank" }), "who sent the event")
}

// A log in OCEL has the cases and work items as objects, and events that are about a case and an item.
func TestOCEL(t *testing.T) {
	e, claim, _ := open(t)
	log := checkOCEL(t, written(t, e, eventlog.OCEL, eventlog.Options{}))
	types := make(map[string]int)
	for _, o := range log.Objects {
		types[o.Type]++
	}
	require.Equal(t, map[string]int{"claim": 1, "quote": 1, "order": 1, "work item": 5}, types)
	quote := log.Objects[slices.IndexFunc(log.Objects, func(o row) bool { return o.Type == "quote" })]
	require.Equal(t, []relation{{claim.String(), "child of"}}, quote.Relationships)
	failed := slices.IndexFunc(log.Events, func(r row) bool { return r.Type == "pay fail" })
	require.GreaterOrEqual(t, failed, 0)
	require.Equal(t, "no-funds", log.Events[failed].value("code"))
	require.Equal(t, "ate_abort", log.Events[failed].value("lifecycle"))
	require.Equal(t, []string{"case", "item"}, []string{log.Events[failed].Relationships[0].Qualifier, log.Events[failed].Relationships[1].Qualifier})
	again := log.Objects[slices.IndexFunc(log.Objects, func(o row) bool { return o.value("label") == "pay.1.2" })]
	require.Equal(t, "retry of", again.Relationships[1].Qualifier)
	xes := checkXES(t, written(t, e, eventlog.XES, eventlog.Options{}))
	n := 0
	for _, trace := range xes.all("trace") {
		n += len(trace.all("event"))
	}
	require.Len(t, log.Events, n, "both formats have the same events")
}

// A filter selects root cases with all that is below them; what a user may not see is not in the log; an empty log is one, too.
func TestWhatALogHolds(t *testing.T) {
	e, _, order := open(t)
	of := func(f store.CaseFilter) eventlog.Options { return eventlog.Options{Cases: f} }
	for _, f := range []store.CaseFilter{{Workflow: "order"}, {States: []state.CaseState{state.CaseCompleted}}, {Page: store.Page{Limit: 1, Desc: true}}} {
		traces := checkXES(t, written(t, e, eventlog.XES, of(f))).all("trace")
		require.Len(t, traces, 1)
		require.Equal(t, order.String(), traces[0].value("concept:name"))
	}
	none := of(store.CaseFilter{Workflow: "quote"}) // child cases alone
	require.Empty(t, checkXES(t, written(t, e, eventlog.XES, none)).all("trace"))
	require.Empty(t, checkOCEL(t, written(t, e, eventlog.OCEL, none)).Events)
	hidden := eventlog.Options{Shown: func(c *state.Case) *state.Case {
		shown := *c
		shown.Key, shown.Labels = "hidden", nil
		return &shown
	}}
	for _, f := range eventlog.Formats() {
		text := string(written(t, e, f, hidden))
		require.NotContains(t, text, "C-1")
		require.NotContains(t, text, "customer")
		require.Contains(t, text, "hidden")
	}
}

// failing is a writer that has no room.
type failing struct{ left int }

var errFull = errors.New("no room")

func (f *failing) Write(p []byte) (int, error) {
	if f.left -= len(p); f.left < 0 {
		return 0, errFull
	}
	return len(p), nil
}

// A log that cannot be written or read ends with the error, and leaves no file behind.
func TestALogThatFails(t *testing.T) {
	e, _, _ := open(t)
	t.Setenv("TMPDIR", t.TempDir())
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	for _, f := range eventlog.Formats() {
		for _, room := range []int{0, 4000} {
			require.ErrorIs(t, eventlog.Write(t.Context(), &failing{room}, e, f, eventlog.Options{}), errFull)
		}
		require.ErrorIs(t, eventlog.Write(canceled, &bytes.Buffer{}, e, f, eventlog.Options{}), context.Canceled)
	}
	_, err := eventlog.ParseFormat("csv")
	require.EqualError(t, err, `"csv" is not a format of event logs; use one of ocel, xes`)
	require.EqualError(t, eventlog.Write(t.Context(), &bytes.Buffer{}, e, "csv", eventlog.Options{}), err.Error())
	left, err := os.ReadDir(os.TempDir())
	require.NoError(t, err)
	require.Empty(t, left)
}
