package timeout_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/internal/virtual"
	"github.com/tasq-dev/tasq/recipes/timeout"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/sqlite"
	"github.com/tasq-dev/tasq/store/state"
)

var question = timeout.Question{Customer: "Ann", Text: "Where is my parcel?"}

func apologise(_ context.Context, q timeout.Question) (struct{}, error) {
	fmt.Printf("Dear %s, we are sorry that nobody has answered you.\n", q.Customer)
	return struct{}{}, nil
}

// A question that no one answers. The clock is a virtual one; in a test of your own, it comes with enginetest.New.
func Example() {
	ctx, clock := context.Background(), virtual.NewClock()
	recipe, err := timeout.New(timeout.Office, apologise)
	if err != nil {
		panic(err)
	}
	e, err := engine.Config{Clock: clock}.Open(ctx, sqlite.Memory(), recipe)
	if err != nil {
		panic(err)
	}
	defer e.Close()
	id, err := recipe.Start(ctx, e, question)
	if err != nil {
		panic(err)
	}
	for _, hours := range []time.Duration{3, 4, 24} {
		if err := clock.Advance(ctx, e, virtual.Epoch.Add(hours*time.Hour).Sub(clock.Now())); err != nil {
			panic(err)
		}
		fmt.Printf("after %d hours:\n", hours)
		for it, err := range store.AllItems(ctx, e, store.ItemFilter{Case: id}) {
			if err != nil {
				panic(err)
			}
			fmt.Printf("  %-13s %-11s %s\n", it.Label(), it.Queue, it.State)
		}
	}
	// Output:
	// after 3 hours:
	//   answer.1.1    support     initialized
	// after 4 hours:
	//   answer.1.1    support     initialized
	//   answer.1.2    supervisors initialized
	// Dear Ann, we are sorry that nobody has answered you.
	// after 24 hours:
	//   answer.1.1    support     canceled
	//   answer.1.2    supervisors canceled
	//   apologise.1.1             completed
}

// answered runs a case for some time, has the n-th item answered, and returns the items a day later.
func answered(t *testing.T, after time.Duration, n int) []string {
	t.Helper()
	recipe, err := timeout.New(timeout.Office, apologise)
	require.NoError(t, err)
	enginetest.Sound(t, recipe)
	e := enginetest.New(t, recipe)
	id, err := recipe.Start(t.Context(), e, question)
	require.NoError(t, err)
	e.Advance(after)
	enginetest.CompleteItem(e, id, fmt.Sprintf("answer.1.%d", n), timeout.Answer{Text: "Next door."})
	e.Advance(24 * time.Hour)
	c, err := e.Case(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, state.CaseCompleted, c.State)
	return e.States(id)
}

func TestAnAnswerInTimeEndsAllTimers(t *testing.T) {
	require.Equal(t, []string{"answer.1.1 completed"}, answered(t, time.Hour, 1))
}

func TestFirstAnswerWins(t *testing.T) {
	require.Equal(t, []string{"answer.1.1 completed", "answer.1.2 canceled"}, answered(t, 5*time.Hour, 1))
	require.Equal(t, []string{"answer.1.1 canceled", "answer.1.2 completed"}, answered(t, 5*time.Hour, 2))
}

func TestTimersOutliveTheProcess(t *testing.T) {
	recipe, err := timeout.New(timeout.Limits{Escalate: time.Hour, GiveUp: 2 * time.Hour}, apologise)
	require.NoError(t, err)
	e := enginetest.New(t, recipe)
	id, err := recipe.Start(t.Context(), e, question)
	require.NoError(t, err)
	e.Advance(30 * time.Minute)
	e.Crash()
	e.Advance(90 * time.Minute)
	c, err := e.Wait(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, state.CaseCompleted, c.State)
}

func TestLimitsMustLeaveTimeToAnswer(t *testing.T) {
	_, err := timeout.New(timeout.Limits{Escalate: time.Hour, GiveUp: time.Hour}, apologise)
	require.ErrorContains(t, err, "GiveUp above Escalate")
}
