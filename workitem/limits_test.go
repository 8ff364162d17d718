package workitem_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/workitem"
)

func TestWordsOfUnknownStates(t *testing.T) {
	require.Equal(t, "state(6)", workitem.State(6).String())
	require.Equal(t, "action(7)", workitem.Action(7).String())
	require.Equal(t, "state(5)", workitem.StepState(5).String())
	require.Equal(t, "verdict(4)", workitem.Verdict(4).String())
	_, err := workitem.ParseAction("none")
	require.ErrorContains(t, err, "the actions are initialize, start")
	_, err = workitem.ParseStepState("none")
	require.ErrorContains(t, err, "use one of waiting, done")
}

func TestStatesOfSteps(t *testing.T) {
	for _, s := range []workitem.StepState{workitem.StepWaiting, workitem.StepDone, workitem.StepFailed, workitem.StepCanceled} {
		got, err := workitem.ParseStepState(s.String())
		require.NoError(t, err)
		require.Equal(t, s, got)
		require.Equal(t, s != workitem.StepWaiting, s.Final())
	}
	require.False(t, workitem.StepNone.Final())
	require.Equal(t, "none", workitem.StepNone.String())
	s := workitem.Step{Job: workitem.JobID{1}}
	require.Equal(t, [16]byte{1}, s.Owner())
	s.Item = workitem.ID{2}
	require.Equal(t, [16]byte{2}, s.Owner())
}

func TestATallyCountsEachState(t *testing.T) {
	tally := workitem.Tally{Initialized: 1, Started: 2, Completed: 4, Failed: 8, Canceled: 16, Retried: 32}
	require.Equal(t, 3, tally.Live())
	require.Equal(t, 31, tally.Total())
	for _, s := range states[1:] {
		before := tally
		tally.Add(s, false)
		require.Equal(t, before.Total()+1, tally.Total())
		require.Equal(t, before.Retried, tally.Retried)
		tally.Remove(s, false)
		require.Equal(t, before, tally)
	}
	require.Equal(t, workitem.Tally{Completed: 1}, outcome(workitem.Completed).Tally)
	require.Equal(t, workitem.Tally{Failed: 1, Canceled: 1}, outcome(workitem.Failed, workitem.Canceled).Tally)
}

func TestPolicyNames(t *testing.T) {
	own := workitem.NewPolicy("own", func(workitem.Outcome) (workitem.Verdict, error) { return workitem.FailTask, nil })
	require.False(t, own.BuiltIn())
	verdict, err := own.Decide(workitem.Outcome{})
	require.NoError(t, err)
	require.Equal(t, workitem.FailTask, verdict)
	for name, p := range map[string]workitem.Policy{"default": workitem.Default(), "continue": workitem.ContinueOnFailure(),
		"quorum:2": workitem.Quorum(2), "threshold:3": workitem.Threshold(3), "all": workitem.All(), "own": own} {
		require.Equal(t, name, p.Name())
	}
	require.Equal(t, "continue complete fail", fmt.Sprint(workitem.Continue, " ", workitem.CompleteTask, " ", workitem.FailTask))
}

// The bound of each policy: one item more or less decides otherwise.
func TestPolicyBounds(t *testing.T) {
	const done, bad, gone, live = workitem.Completed, workitem.Failed, workitem.Canceled, workitem.Started
	for _, c := range []struct {
		policy  workitem.Policy
		outcome workitem.Outcome
		want    workitem.Verdict
	}{
		{workitem.Quorum(2), outcome(live, bad, done), workitem.Continue},
		{workitem.Quorum(2), outcome(bad, done), workitem.FailTask},
		{workitem.Quorum(2), outcome(done, done, bad), workitem.CompleteTask},
		{workitem.Quorum(2), outcome(done, done, live), workitem.Continue}, // nothing has ended
		{workitem.Quorum(2), outcome(bad, live), workitem.Continue},
		{workitem.Threshold(0), outcome(live, bad), workitem.FailTask},
		{workitem.Threshold(2), outcome(done, bad, bad), workitem.CompleteTask},
		{workitem.Threshold(2), outcome(bad, live), workitem.Continue},
		{workitem.All(), outcome(bad), workitem.FailTask},
		{workitem.All(), outcome(bad, gone), workitem.FailTask},
		{workitem.All(), outcome(done, live), workitem.Continue},
		{workitem.ContinueOnFailure(), outcome(done, live), workitem.Continue},
		{workitem.Default(), outcome(done, live), workitem.Continue},
	} {
		got, err := c.policy.Decide(c.outcome)
		require.NoError(t, err)
		require.Equal(t, c.want, got, "%s of %+v", c.policy.Name(), c.outcome)
	}
}

func TestFailureMethods(t *testing.T) {
	var none *workitem.Failure
	require.Equal(t, []any{"", false, time.Duration(0), "", json.RawMessage(nil)},
		[]any{none.String(), none.Permanent(), none.RetryAfter(), none.FailureCode(), none.FailureDetails()})
	f := &workitem.Failure{Code: "busy", After: time.Second, Details: json.RawMessage(`1`)}
	require.Equal(t, []any{"busy", true, time.Second, "busy", json.RawMessage(`1`)},
		[]any{f.String(), f.Permanent(), f.RetryAfter(), f.FailureCode(), f.FailureDetails()})
	require.False(t, (&workitem.Failure{Retryable: true}).Permanent())
	require.Equal(t, "later", (&workitem.Failure{Message: "later"}).String())
	require.Equal(t, "busy: later", (&workitem.Failure{Code: "busy", Message: "later"}).Error())
	require.True(t, workitem.IsFatal(fmt.Errorf("x: %w", workitem.Fatal(errors.New("y")))))
	require.False(t, workitem.IsFatal(errors.New("y")))
}

// asking asks for a wait.
type asking struct {
	error
	wait time.Duration
}

func (a asking) RetryAfter() time.Duration { return a.wait }
func (a asking) Unwrap() error             { return a.error }

func TestAnErrorAsksForAWait(t *testing.T) {
	require.Equal(t, time.Minute, workitem.FailureOf(asking{errors.New("x"), time.Minute}).After)
	require.Zero(t, workitem.FailureOf(asking{errors.New("x"), -time.Minute}).After)
	own := &workitem.Failure{Code: "busy", After: time.Second}
	require.Equal(t, time.Second, workitem.FailureOf(asking{own, 0}).After, "no wait is asked for")
	require.Equal(t, time.Minute, workitem.FailureOf(asking{own, time.Minute}).After)
}

// A failure is kept whatever its error was: up to the bounds as it is, beyond them cut.
func TestFailuresAreBounded(t *testing.T) {
	details := func(n int) json.RawMessage { return json.RawMessage(`"` + strings.Repeat("d", n-2) + `"`) }
	message := func(n int) string { return strings.Repeat("m", n) }
	of := func(text string, d json.RawMessage) *workitem.Failure {
		return workitem.FailureOf(&workitem.Failure{Code: "x", Message: text, Details: d})
	}
	f := of(message(workitem.MaxMessage), details(workitem.MaxDetails))
	require.Equal(t, message(workitem.MaxMessage), f.Message)
	require.Len(t, f.Details, workitem.MaxDetails)

	f = of("short", details(workitem.MaxDetails+1))
	require.Nil(t, f.Details)
	require.Equal(t, fmt.Sprintf("short (its details had %d bytes, and are left out)", workitem.MaxDetails+1), f.Message)

	f = of(message(workitem.MaxMessage+1), nil)
	require.Len(t, f.Message, workitem.MaxMessage)
	require.True(t, strings.HasSuffix(f.Message, fmt.Sprintf("m... (%d bytes in all)", workitem.MaxMessage+1)))

	f = of(message(workitem.MaxMessage-3), details(workitem.MaxDetails+1))
	require.Len(t, f.Message, workitem.MaxMessage, "both notes fit")
	require.Contains(t, f.Message, "left out)")

	f = of(message(workitem.MaxMessage-4)+"世世世", nil)
	require.LessOrEqual(t, len(f.Message), workitem.MaxMessage)
	f = workitem.FailureOf(&workitem.Failure{Code: "\xff", Message: "\xfe", Details: json.RawMessage("{")})
	require.Equal(t, "\uFFFD: \uFFFD", f.String())
	require.JSONEq(t, `"{"`, string(f.Details))
}

func TestNothingIsDueTooFarAhead(t *testing.T) {
	require.NoError(t, workitem.CheckDue(time.Date(workitem.LastYear, 12, 31, 0, 0, 0, 0, time.UTC)))
	require.ErrorContains(t, workitem.CheckDue(time.Date(workitem.LastYear+1, 1, 1, 0, 0, 0, 0, time.UTC)), "290001 is too far")
	require.Equal(t, "draft.2.13", (&workitem.Item{Task: "draft", Generation: 2, Number: 13}).Label())
}

// counted counts what is read, and fails beyond a limit.
type counted struct{ read, limit int }

func (c *counted) Read(p []byte) (int, error) {
	if c.read+len(p) > c.limit {
		return 0, io.ErrUnexpectedEOF
	}
	c.read += len(p)
	return len(p), nil
}

// A millisecond has 4096 ids, and then the next one is begun. Random bits are drawn for 64 ids at a time.
func TestIDsUseTheirBits(t *testing.T) {
	random := &counted{limit: 1 << 20}
	g := workitem.NewGenerator(random)
	millis := func(id workitem.ID) uint64 { return binary.BigEndian.Uint64(id[:8]) >> 16 }
	at := time.UnixMilli(5000)
	for i := range 4096 {
		id := g.NewID(at)
		require.Equal(t, uint64(5000), millis(id), i)
		require.Equal(t, (i/64+1)*512, random.read, i)
	}
	require.Equal(t, uint64(5001), millis(g.NewID(at)))
	require.Equal(t, uint64(5001), millis(g.NewID(at)))
	require.Equal(t, uint64(5002), millis(g.NewID(time.UnixMilli(5002))))

	g = workitem.NewGenerator(&counted{limit: 512})
	for range 64 {
		g.NewID(at)
	}
	g.NewID(at)
	g.NewID(at)
	err := g.Failed()
	require.ErrorIs(t, err, workitem.ErrRandom)
	require.EqualError(t, err, "the source of random bits failed: unexpected EOF")
	require.ErrorIs(t, g.Failed(), workitem.ErrRandom, "it is asked again")
}

// slow gives a byte after each so many empty answers.
type slow struct{ empty, n int }

func (s *slow) Read(p []byte) (int, error) {
	if s.n++; s.n%(s.empty+1) != 0 {
		return 0, nil
	}
	p[0] = byte(s.n)
	return 1, nil
}

func TestASourceThatGivesNothingFails(t *testing.T) {
	g := workitem.NewGenerator(&slow{empty: 99})
	require.NoError(t, g.Failed(), "a slow one is waited for")
	var secret [3]byte
	n, err := g.Read(secret[:])
	require.NoError(t, err)
	require.Equal(t, len(secret), n)
	require.NotZero(t, secret)

	g = workitem.NewGenerator(&slow{empty: 100})
	require.ErrorIs(t, g.Failed(), io.ErrNoProgress)
	n, err = g.Read(secret[:])
	require.ErrorIs(t, err, workitem.ErrRandom)
	require.ErrorIs(t, err, io.ErrNoProgress)
	require.Zero(t, n)
}

// A generator continues above the last id of another one, also within its millisecond, and not from an older one.
func TestIDsGoOnAboveOthers(t *testing.T) {
	g, at := workitem.NewGenerator(&counted{limit: 1 << 20}), time.UnixMilli(7)
	var last workitem.ID
	for range 3 {
		last = g.NewID(at)
	}
	next := workitem.NewGenerator(&counted{limit: 1 << 20})
	next.NewID(at)
	next.Above(last)
	next.Above(workitem.ID{})
	id := next.NewID(at)
	require.Positive(t, bytes.Compare(id[:], last[:]))
	require.Equal(t, last[5], id[5], "the same millisecond")
}

func TestTheTextOfIDs(t *testing.T) {
	id := workitem.ID{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 255}
	text, err := id.MarshalText()
	require.NoError(t, err)
	require.Equal(t, uuid.UUID(id).String(), string(text))
	require.Equal(t, id.String(), string(text))
	text, err = workitem.ID{}.AppendText([]byte("x"))
	require.NoError(t, err)
	require.Equal(t, "x", string(text))
}
