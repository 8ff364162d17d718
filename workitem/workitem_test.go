package workitem_test

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/workitem"
)

var (
	states = []workitem.State{workitem.None, workitem.Initialized, workitem.Started, workitem.Completed, workitem.Failed,
		workitem.Canceled}
	actions = []workitem.Action{workitem.Initialize, workitem.Start, workitem.Complete, workitem.Fail, workitem.Cancel,
		workitem.Reset}
)

// The whole life of a work item, as the documents draw it.
func ExampleNext() {
	for _, from := range states {
		for _, a := range actions {
			if to, ok := workitem.Next(from, a); ok {
				fmt.Println(from, a, to)
			}
		}
	}
	// Output:
	// none initialize initialized
	// initialized start started
	// initialized cancel canceled
	// started complete completed
	// started fail failed
	// started cancel canceled
	// started reset initialized
}

func TestFinalStatesNeverChange(t *testing.T) {
	for _, s := range states {
		for _, a := range actions {
			_, ok := workitem.Next(s, a)
			require.False(t, s.Final() && ok, "%s %s", s, a)
		}
		require.False(t, s.Final() && s.Live())
	}
}

func TestWordsAreReadAsTheyAreWritten(t *testing.T) {
	for _, s := range states[1:] {
		got, err := workitem.ParseState(s.String())
		require.NoError(t, err)
		require.Equal(t, s, got)
	}
	for _, a := range actions {
		got, err := workitem.ParseAction(a.String())
		require.NoError(t, err)
		require.Equal(t, a, got)
	}
	_, err := workitem.ParseState("finished")
	require.ErrorContains(t, err, "completed", "what there is")
	_, err = workitem.ParseState("none")
	require.Error(t, err)
	_, err = workitem.ParseAction("begin")
	require.ErrorContains(t, err, "start")
	require.Equal(t, "state(99)", workitem.State(99).String())
	require.Equal(t, "action(99)", workitem.Action(99).String())
}

func TestATransitionErrorSaysWhatIsNeeded(t *testing.T) {
	err := &workitem.TransitionError{Label: "article/draft.1.1", From: workitem.Initialized, Action: workitem.Complete}
	require.ErrorContains(t, err, "complete work item article/draft.1.1")
	require.ErrorContains(t, err, "it is initialized, and the action needs it to be started")
}

func TestIDsRise(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := workitem.NewGenerator(rand.Reader)
		now := time.UnixMilli(rapid.Int64Range(0, 1<<47).Draw(t, "now"))
		var last workitem.ID
		for range rapid.IntRange(1, 50).Draw(t, "ids") {
			now = now.Add(time.Duration(rapid.Int64Range(-5000, 5000).Draw(t, "step")) * time.Microsecond)
			id := g.NewID(now)
			require.Positive(t, bytes.Compare(id[:], last[:]), "%s after %s", id, last)
			require.Equal(t, byte(7), id[6]>>4, "the version")
			require.Equal(t, byte(2), id[8]>>6, "the variant")
			last = id
		}
		later := workitem.NewGenerator(rand.Reader)
		later.Above(last)
		next := later.NewID(now.Add(-time.Hour))
		require.Positive(t, bytes.Compare(next[:], last[:]), "from one process to the next, and with a clock that went back")
	})
}

func TestMoreIDsThanAMillisecondHolds(t *testing.T) {
	g := workitem.NewGenerator(rand.Reader)
	now := time.UnixMilli(1)
	ids := make([]string, 10_000)
	for i := range ids {
		ids[i] = g.NewCaseID(now).String()
	}
	require.True(t, slices.IsSorted(ids))
	require.Len(t, slices.Compact(ids), 10_000)
}

func TestIDsAsText(t *testing.T) {
	id := workitem.NewGenerator(rand.Reader).NewJobID(time.Now())
	got, err := workitem.ParseJobID(id.String())
	require.NoError(t, err)
	require.Equal(t, id, got)
	for _, garbage := range []string{"", "7", "not-an-id", id.String() + "x"} {
		_, err := workitem.ParseID(garbage)
		require.Error(t, err, "%q", garbage)
	}
	require.Empty(t, workitem.CaseID{}.String())
	var zero workitem.CaseID
	require.NoError(t, zero.UnmarshalText(nil))
	require.True(t, zero.IsZero())
}

func TestFailures(t *testing.T) {
	require.Nil(t, workitem.FailureOf(nil))
	plain := workitem.FailureOf(errors.New("overloaded"))
	require.Equal(t, &workitem.Failure{Code: workitem.CodeError, Message: "overloaded", Retryable: true}, plain)
	fatal := workitem.FailureOf(fmt.Errorf("draft: %w", workitem.Fatal(errors.New("no such model"))))
	require.False(t, fatal.Retryable)
	require.Equal(t, "draft: no such model", fatal.Message)
	coded := workitem.FailureOf(fmt.Errorf("charge: %w", workitem.Failf("no-funds", "%d are missing", 7)))
	require.Equal(t, "no-funds: charge: 7 are missing", coded.String())
	require.True(t, coded.Retryable)
	panicked := workitem.FailureOf(retry.NewPanicError(errors.New("nil map")))
	require.Equal(t, "panic: nil map", panicked.String())
	require.True(t, panicked.Retryable)
	var stack string
	require.NoError(t, json.Unmarshal(panicked.Details, &stack))
	require.Contains(t, stack, "TestFailures")

	require.NoError(t, workitem.Fatal(nil))
	require.Empty(t, (*workitem.Failure)(nil).String())
}

// What the errors around a failure say is part of its message: which order it was, and what else went wrong.
func TestAFailureKeepsTheWordsAroundIt(t *testing.T) {
	f := workitem.Failf("no-funds", "7 are missing")
	for want, err := range map[string]error{
		"no-funds: 7 are missing":                          f,
		"no-funds: 7 are missing ":                         bringer{f}, // it says the same in its own words
		"no-funds: 7 are missing  ":                        silent{f},
		"no-funds: order 17: 7 are missing":                workitem.Fatal(fmt.Errorf("order 17: %w", f)),
		"no-funds: order 17: 7 are missing, after 2 calls": fmt.Errorf("order 17: %w, after 2 calls", bringer{f}),
		"no-funds: 7 are missing\nno refund":               errors.Join(f, errors.New("no refund")),
		"no-funds: late\nseat 3: 7 are missing":            errors.Join(errors.New("late"), fmt.Errorf("seat 3: %w", bringer{f})),
		"no-funds: order 17: no-funds":                     fmt.Errorf("order 17: %w", &workitem.Failure{Code: "no-funds"}),
		"order 17: 7 are missing":                          fmt.Errorf("order 17: %w", &workitem.Failure{Message: "7 are missing"}),
	} {
		require.Equal(t, strings.TrimRight(want, " "), workitem.FailureOf(err).String())
	}
}

// bringer carries a failure that it makes another text of, as the errors of steps do.
type bringer struct{ f *workitem.Failure }

func (b bringer) Error() string { return "it failed for " + b.f.Code }
func (b bringer) Unwrap() error { return b.f }

// silent makes itself a failure.
type silent struct{ f *workitem.Failure }

func (silent) Error() string { return "silent" }
func (s silent) As(target any) bool {
	t, ok := target.(**workitem.Failure)
	if ok {
		*t = s.f
	}
	return ok
}

// outcome is an activation's items by state, the last of which has just got there.
func outcome(states ...workitem.State) workitem.Outcome {
	o := workitem.Outcome{State: states[len(states)-1]}
	for _, s := range states {
		o.Tally.Add(s, false)
	}
	return o
}

func TestPolicies(t *testing.T) {
	const (
		live, done, bad, gone = workitem.Started, workitem.Completed, workitem.Failed, workitem.Canceled
		goOn, complete, fail  = workitem.Continue, workitem.CompleteTask, workitem.FailTask
	)
	for _, c := range []struct {
		policy  workitem.Policy
		outcome workitem.Outcome
		want    workitem.Verdict
	}{
		{workitem.Default(), outcome(live, done), goOn},
		{workitem.Default(), outcome(done, done), complete},
		{workitem.Default(), outcome(gone), complete},
		{workitem.Default(), outcome(live, bad), fail},
		{workitem.ContinueOnFailure(), outcome(live, bad), goOn},
		{workitem.ContinueOnFailure(), outcome(done, bad), complete},
		{workitem.Quorum(2), outcome(live, done), goOn},
		{workitem.Quorum(2), outcome(live, done, done), complete},
		{workitem.Quorum(2), outcome(live, live, bad), goOn},
		{workitem.Quorum(2), outcome(live, bad, gone), fail},
		{workitem.Threshold(1), outcome(live, bad), goOn},
		{workitem.Threshold(1), outcome(live, bad, bad), fail},
		{workitem.Threshold(1), outcome(bad, done), complete},
		{workitem.All(), outcome(live, done), goOn},
		{workitem.All(), outcome(done, done), complete},
		{workitem.All(), outcome(live, gone), fail},
	} {
		got, err := c.policy.Decide(c.outcome)
		require.NoError(t, err)
		require.Equal(t, c.want, got, "%s of %+v", c.policy.Name(), c.outcome)
		require.True(t, c.policy.BuiltIn())
	}
}

func TestALineageCountsOnce(t *testing.T) {
	var tally workitem.Tally
	tally.Add(workitem.Failed, true)
	tally.Add(workitem.Initialized, false)
	require.Equal(t, workitem.Tally{Retried: 1, Initialized: 1}, tally)
	require.Equal(t, 1, tally.Total())
	verdict, err := workitem.Default().Decide(workitem.Outcome{State: workitem.Failed, Tally: tally})
	require.NoError(t, err)
	require.Equal(t, workitem.Continue, verdict, "a failed item with a successor does not count")
}

func TestAJustStartedTaskGoesOn(t *testing.T) {
	for _, p := range []workitem.Policy{workitem.Default(), workitem.ContinueOnFailure(), workitem.Quorum(1), workitem.All()} {
		got, err := p.Decide(workitem.Outcome{Tally: workitem.Tally{Initialized: 1}})
		require.NoError(t, err)
		require.Equal(t, workitem.Continue, got, p.Name())
	}
}
