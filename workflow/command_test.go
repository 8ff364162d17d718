package workflow_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/domain"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

var (
	aCase = workitem.CaseID{15: 1}
	item  = workitem.ID{15: 2}
)

// one is a command of each kind, with all that the kind takes.
func one() []workflow.Command {
	why := &workitem.Failure{Code: "late", Message: "too late"}
	start := workflow.Start("order", json.RawMessage(`{"a":1}`), workflow.Key("k"), workflow.By("ann"), workflow.Priority(3))
	start.After, start.Fingerprint, start.WaitForOwner = time.Hour, "f", true
	start.Options.OnComplete = []workflow.HandlerCall{{Handler: "saved", Value: json.RawMessage(`1`), Only: []string{"completed"}}}
	act := workflow.Act(item, workitem.Complete, json.RawMessage(`2`), workflow.Route("a", "b"))
	act.Workflow, act.Task = "order", "pay"
	return []workflow.Command{
		start, act, workflow.Fail(item, why), workflow.CancelItem(item, why),
		workflow.AddItem(aCase, "pay", json.RawMessage(`3`), workflow.Queue("q"), workflow.Priority(1)),
		workflow.Cancel(aCase, why), workflow.Send(aCase, "paid", 4), workflow.SendToken("t", 5), workflow.Broadcast("rates", 6),
		workflow.Restart(aCase, workflow.FromStep("charge"), workflow.UnlessRestarted()), workflow.Remove(aCase), workflow.Reclaim(workitem.JobID{15: 3}),
		workflow.Move(aCase, "p", "A", workflow.Force(), workflow.Because("by mistake")),
		workflow.Suspend(aCase, workflow.Because("an audit")),
		workflow.Resume(aCase, json.RawMessage(`7`), workflow.Because("the supplier is back")),
		workflow.Retry(item, json.RawMessage(`8`), workflow.Because("again")),
		workflow.Fork(aCase, 17, workflow.Because("what if")),
		workflow.RetryIncident(workitem.JobID{15: 4}, workflow.Because("the network is back")),
		workflow.GiveUp(item, workflow.Because("lost")), workflow.GiveUpIncident(workitem.JobID{15: 5}, workflow.Because("lost")), workflow.Redrive(workitem.CaseID(item), workflow.Because("it is back")),
		workflow.SetLimit("openai", 60, workflow.By("ann")), workflow.ForgetLimit("openai"), workflow.LimitWaits(workitem.CaseID{1}), workflow.Limits(), workflow.Queues(), workflow.Definitions(), workflow.PauseQueue("mail"), workflow.ResumeQueue(""),
		workflow.SetWorkers("mail", 5), workflow.ForgetWorkers("mail"),
		workflow.SuspendWorkflow("order", workflow.Because("an audit")), workflow.ResumeWorkflow("order"),
		workflow.Skip(item, json.RawMessage(`9`), workflow.Because("by phone"), workflow.Route("a")),
		workflow.DryRun(workflow.Cancel(aCase, nil, workflow.By("ann"))),
	}
}

func TestEveryCommandReadsBack(t *testing.T) {
	kinds := make(map[workflow.Kind]bool)
	for _, c := range one() {
		kinds[c.Kind] = true
		require.NoError(t, c.Check(), c.Kind)
		raw, err := json.Marshal(c)
		require.NoError(t, err)
		back, err := workflow.Decode(raw)
		require.NoError(t, err)
		was, err := c.Hash()
		require.NoError(t, err)
		is, err := back.Hash()
		require.NoError(t, err)
		require.Equal(t, was, is, "%s", raw)
		require.Equal(t, c.Key+c.Actor, back.Key+back.Actor)
		require.NotContains(t, c.String(), "late", "a description has no payload")
	}
	require.Len(t, kinds, len(workflow.Kinds()), "the list above has a command of each kind")
}

// Two commands have the same hash exactly if they ask for the same.
func TestTheHashIsOfWhatIsAsked(t *testing.T) {
	hash := func(c workflow.Command) string {
		h, err := c.Hash()
		require.NoError(t, err)
		return h
	}
	seen := make(map[string]string)
	for _, c := range one() {
		h := hash(c)
		require.NotContains(t, seen, h, c.Kind)
		seen[h] = c.String()
		again := workflow.With(c, workflow.Key("other"), workflow.By("bob"))
		again.Fingerprint = "newer"
		require.Equal(t, h, hash(again), "the key, the actor and the version do not count")
	}
	a := workflow.Start("order", json.RawMessage(`{"a": 1}`))
	require.Equal(t, hash(a), hash(workflow.Start("order", json.RawMessage(`{"a":1}`))), "nor do spaces")
	require.Equal(t, hash(a), hash(workflow.Start("order", json.RawMessage(`{"a":1}`), workflow.After(time.Hour))), "nor when it begins")
	for _, other := range []workflow.Command{
		workflow.Start("orders", json.RawMessage(`{"a":1}`)), workflow.Start("order", json.RawMessage(`{"a":2}`)),
		workflow.Start("order", json.RawMessage(`{"a":1}`), workflow.Priority(1)),
	} {
		require.NotEqual(t, hash(a), hash(other))
	}
}

// A field that a kind of command does not have is refused, whatever the kind.
func TestFieldsOfOtherKindsAreRefused(t *testing.T) {
	stray := map[string]func(c *workflow.Command){
		`"workflow"`: func(c *workflow.Command) { c.Workflow = "w" }, `"task"`: func(c *workflow.Command) { c.Task = "t" },
		`"case"`: func(c *workflow.Command) { c.Case = aCase }, `"item"`: func(c *workflow.Command) { c.Item = item },
		`"action"`: func(c *workflow.Command) { c.Action = workitem.Start }, `"event"`: func(c *workflow.Command) { c.Event = "e" },
		`"token"`: func(c *workflow.Command) { c.Token = "t" }, `"payload"`: func(c *workflow.Command) { c.Payload = []byte("1") },
		`"reason"`: func(c *workflow.Command) { c.Reason = &workitem.Failure{} }, `"route"`: func(c *workflow.Command) { c.Route = []string{} },
		`"fromStep"`: func(c *workflow.Command) { c.FromStep = "s" }, `"unlessRestarted"`: func(c *workflow.Command) { c.UnlessRestarted = true }, `"after" or "at"`: func(c *workflow.Command) { c.At = time.Unix(9, 0) },
		`"priority"`: func(c *workflow.Command) { c.Priority = 1 }, `"queue"`: func(c *workflow.Command) { c.Queue = "q" },
		`"fingerprint"`: func(c *workflow.Command) { c.Fingerprint = "f" },
		`"from"`:        func(c *workflow.Command) { c.From = "p" }, `"to"`: func(c *workflow.Command) { c.To = "p" },
		`"force"`: func(c *workflow.Command) { c.Force = true },
		`"limit"`: func(c *workflow.Command) { c.Limit = "l" }, `"n"`: func(c *workflow.Command) { c.N = 1 },
		`"ifTaken"`: func(c *workflow.Command) { c.IfTaken = workflow.Return }, `"per"`: func(c *workflow.Command) { c.Per = workflow.Day },
		`"options" (OnComplete or Retry)`: func(c *workflow.Command) { c.Options.Retry = []byte("1") },
	}
	refused := 0
	for _, c := range one() {
		for name, set := range stray {
			with := c
			set(&with)
			err := with.Check()
			if err == nil || strings.Contains(err.Error(), "given twice") {
				continue // a field of this kind
			}
			refused++
			require.ErrorIs(t, err, workflow.ErrBadCommand)
			require.ErrorContains(t, err, fmt.Sprintf("%s command takes no %s; leave it out", c.Kind, name))
		}
	}
	require.Equal(t, 724, refused, "no kind takes another field than before")
}

func TestCheckRequiresFieldsOfCommand(t *testing.T) {
	for _, test := range []struct {
		c    workflow.Command
		want string
	}{
		{workflow.Command{}, `bad command: "" is none of the kinds [add-item broadcast cancel definitions dry-run forget-limit forget-workers fork give-up give-up-incident item limit-waits limits move pause-queue queues reclaim redrive remove restart resume resume-queue resume-workflow retry retry-incident send set-limit set-workers skip start suspend suspend-workflow token]`},
		{workflow.Start("", nil), `a start command needs "workflow"`},
		{workflow.Act(workitem.ID{}, workitem.Start, nil), `an item command needs "item"`},
		{workflow.Act(item, workitem.NoAction, nil), `an item command needs "action"`},
		{workflow.Act(item, workitem.Initialize, nil), "initialized by their task alone"},
		{workflow.AddItem(aCase, "", nil), `an add-item command needs "task"`},
		{workflow.Cancel(workitem.CaseID{}, nil), `a cancel command needs "case"`},
		{workflow.Send(aCase, "", 1), `a send command needs "event"`},
		{workflow.Send(aCase, strings.Repeat("e", 201), 1), "has at most 200 bytes, and this one has 201"},
		{workflow.SendToken("", 1), `a token command needs "token"`},
		{workflow.With(workflow.Fail(item, &workitem.Failure{}), nil), ""},
		{workflow.Restart(aCase, workflow.FromStep("")), "FromStep has no name"},
		{workflow.Restart(aCase, workflow.FromStep("a"), workflow.FromStep("b")), "FromStep is given twice"},
	} {
		err := test.c.Check()
		if test.want == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, test.want)
	}
}

func TestTextsMustBeUTF8WithoutNUL(t *testing.T) {
	for _, bad := range []string{"a\xffb", "a\x00b"} {
		mustBeRefused(t, bad)
	}
}

// mustBeRefused puts a text into each field that takes one.
func mustBeRefused(t *testing.T, bad string) {
	t.Helper()
	for _, c := range []workflow.Command{
		workflow.Start(bad, nil), workflow.Send(aCase, bad, 1), workflow.SendToken(bad, 1), workflow.Remove(aCase, workflow.Key(bad)),
		workflow.Remove(aCase, workflow.By(bad)), workflow.AddItem(aCase, bad, nil), workflow.AddItem(aCase, "t", nil, workflow.Queue(bad)),
		workflow.Restart(aCase, workflow.FromStep(bad)), workflow.Cancel(aCase, &workitem.Failure{Code: bad}),
		workflow.Cancel(aCase, &workitem.Failure{Message: bad}),
	} {
		_, invalid := errors.AsType[*domain.InvalidError](c.Check())
		require.True(t, invalid, c.String())
	}
}

func TestWhenACaseBegins(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	due := func(opts ...workflow.Option) (time.Time, error) {
		c := workflow.Start("w", nil, opts...)
		return c.Due(now)
	}
	for want, opts := range map[time.Duration][]workflow.Option{
		0: nil, time.Hour: {workflow.After(time.Hour)}, 2 * time.Hour: {workflow.At(now.Add(2 * time.Hour))},
	} {
		at, err := due(opts...)
		require.NoError(t, err)
		require.Equal(t, now.Add(want), at)
	}
	at, err := due(workflow.At(now.Add(-time.Hour)))
	require.NoError(t, err)
	require.Equal(t, now, at, "a time that is over is at once")
	_, err = due(workflow.After(-time.Second))
	require.ErrorIs(t, err, workflow.ErrBadCommand)
	require.ErrorContains(t, err, "it cannot begin 1s ago")
	_, err = due(workflow.After(time.Second), workflow.At(now.Add(time.Hour)))
	require.ErrorIs(t, err, workflow.ErrBadCommand)
	require.ErrorContains(t, err, "given twice")
	_, err = due(workflow.At(time.Date(300000, 1, 1, 0, 0, 0, 0, time.UTC)))
	require.ErrorIs(t, err, workflow.ErrBadCommand, "no store can keep it")
}

func ExampleCommand() {
	c := workflow.Send(aCase, "paid", map[string]int{"cents": 100}, workflow.Key("transfer 4711"), workflow.By("bank"))
	raw, _ := json.Marshal(c)
	fmt.Println(c.String())
	fmt.Println(string(raw))
	// Output:
	// event paid to 00000000-0000-0000-0000-000000000001
	// {"kind":"send","case":"00000000-0000-0000-0000-000000000001","event":"paid","payload":{"cents":100},"key":"transfer 4711","actor":"bank"}
}
