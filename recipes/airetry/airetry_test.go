package airetry_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/recipes/airetry"
	"github.com/tasq-dev/tasq/recipes/airetry/chat"
	"github.com/tasq-dev/tasq/recipes/airetry/fakechat"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// bench is a recipe on an engine, with a model server that misbehaves as the prompt says.
type bench struct {
	*airetry.Recipe
	t      *testing.T
	e      *enginetest.Engine
	server *fakechat.Server
	client *chat.Client
	id     workitem.CaseID
}

// start starts a case: five attempts, waits of 1s, 2s, 4s and 8s.
func start(t *testing.T, prompt string) *bench {
	t.Helper()
	server, err := fakechat.Start(fakechat.Options{Seed: 1})
	require.NoError(t, err)
	t.Cleanup(server.Close)
	b := &bench{t: t, server: server}
	b.client = &chat.Client{BaseURL: server.URL(), Model: server.Model(), Timeout: 5 * time.Second}
	return b.with(b.client, prompt)
}

func (b *bench) with(m airetry.Model, prompt string) *bench {
	b.t.Helper()
	var err error
	b.Recipe, err = airetry.New(m, retry.Exponential(5, time.Second))
	require.NoError(b.t, err)
	enginetest.Sound(b.t, b.Recipe)
	b.e = enginetest.New(b.t, b.Recipe)
	b.id, err = b.Start(b.t.Context(), b.e, airetry.Prompt{Text: prompt})
	require.NoError(b.t, err)
	b.e.Drain()
	return b
}

// items lists the work items: label, state, code of the failure.
func (b *bench) items() (lines []string) {
	b.t.Helper()
	for row, err := range store.AllItems(b.t.Context(), b.e, store.ItemFilter{Case: b.id}) {
		require.NoError(b.t, err)
		line := row.Label() + " " + row.State.String()
		if row.Failure != nil {
			line += " " + row.Failure.Code
		}
		lines = append(lines, line)
	}
	return lines
}

// jobs lists the pending jobs: kind and time left.
func (b *bench) jobs() (lines []string) {
	b.t.Helper()
	for j, err := range store.AllJobs(b.t.Context(), b.e, store.JobFilter{Root: b.id, States: []state.JobState{state.JobPending}}) {
		require.NoError(b.t, err)
		lines = append(lines, fmt.Sprintf("%s +%v", j.Kind, j.Due.Sub(b.e.Now())))
	}
	return lines
}

// records lists the job records, which are kept in the order of the work items.
func (b *bench) records() (lines []string) {
	b.t.Helper()
	require.NoError(b.t, b.e.View(b.t.Context(), func(r store.Reader) error {
		for e, err := range airetry.Jobs.All(b.t.Context(), r.DB()) {
			if err != nil {
				return err
			}
			lines = append(lines, fmt.Sprintf("%d %s", e.Value.Attempt, e.Value.Status))
		}
		return nil
	}))
	return lines
}

func (b *bench) state() state.CaseState {
	b.t.Helper()
	c, err := b.e.Case(b.t.Context(), b.id)
	require.NoError(b.t, err)
	return c.State
}

// review completes the one open review.
func (b *bench) review(v airetry.Verdict) error {
	b.t.Helper()
	item := b.e.Item(b.id, "review")
	if item.State == workitem.Initialized {
		b.e.StartItem(b.id, "review")
	}
	return b.Review.Complete(b.t.Context(), b.e, item.ID, v)
}

func TestEachAttemptIsAFreshItemDueAfterItsBackoff(t *testing.T) {
	b := start(t, "On rabbits. [[error, error, error, error]]")
	for attempt, wait := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second} {
		require.Equal(t, attempt+1, b.server.Count(), "attempts so far")
		require.Len(t, b.items(), attempt+2, "the fresh item is there at once")
		require.Equal(t, []string{"run +" + wait.String()}, b.jobs(), "scheduled once, and not at once")
		require.Equal(t, state.CaseStarted, b.state(), "a failed item with a successor fails nothing")
		b.e.Advance(wait - time.Millisecond)
		require.Equal(t, attempt+1, b.server.Count(), "not before its time")
		b.e.Advance(time.Millisecond)
	}
	require.Equal(t, []string{
		"generate.1.1 failed internal_error", "generate.1.2 failed internal_error", "generate.1.3 failed internal_error",
		"generate.1.4 failed internal_error", "generate.1.5 completed", "review.1.1 initialized",
	}, b.items())
	require.Equal(t, []string{"1 failed", "2 failed", "3 failed", "4 failed", "5 completed"}, b.records())
	require.Empty(t, b.jobs())
}

func TestTheLastFailureFailsTheCase(t *testing.T) {
	b := start(t, "On rabbits. [[error, drop, cut, garbage, empty]]")
	b.e.Advance(time.Hour)
	require.Equal(t, 5, b.server.Count(), "five attempts in all")
	require.Equal(t, []string{
		"generate.1.1 failed internal_error", "generate.1.2 failed no_connection", "generate.1.3 failed cut_short",
		"generate.1.4 failed invalid_json", "generate.1.5 failed empty_reply",
	}, b.items())
	c, err := b.e.Wait(t.Context(), b.id)
	require.NoError(t, err)
	require.Equal(t, state.CaseFailed, c.State)
	require.Equal(t, "empty_reply", c.Failure.Code)
	require.Equal(t, []string{"1 failed", "2 failed", "3 failed", "4 failed", "5 failed"}, b.records())
	require.Empty(t, b.jobs())
}

func TestEveryFaultIsAnsweredAsItDeserves(t *testing.T) {
	for _, c := range []struct{ fault, code, next string }{
		{"ok", "", ""},
		{"slow 1ms", "", ""},
		{"error", "internal_error", "run +1s"},
		{"limit 30s", "rate_limit_exceeded", "run +30s"},
		{"limit 90s date", "rate_limit_exceeded", "run +1m30s"},
		{"cut", "cut_short", "run +1s"},
		{"drop", "no_connection", "run +1s"},
		{"garbage", "invalid_json", "run +1s"},
		{"shape", "unexpected_shape", "run +1s"},
		{"empty", "empty_reply", "run +1s"},
		{"refuse", "bad_request", ""},
	} {
		t.Run(c.fault, func(t *testing.T) {
			b := start(t, "On rabbits. [["+c.fault+"]]")
			switch {
			case c.code == "":
				require.Equal(t, []string{"generate.1.1 completed", "review.1.1 initialized"}, b.items())
			case c.next == "":
				require.Equal(t, []string{"generate.1.1 failed " + c.code}, b.items())
				require.Equal(t, state.CaseFailed, b.state(), "no further attempt can mend it")
			default:
				require.Equal(t, []string{"generate.1.1 failed " + c.code, "generate.1.2 initialized"}, b.items())
				require.Equal(t, []string{c.next}, b.jobs())
				b.e.Advance(2 * time.Minute)
				require.Equal(t, 2, b.server.Count())
				require.Equal(t, "generate.1.2 completed", b.items()[1])
			}
		})
	}
}

func TestAServerThatSaysNothingIsATimeout(t *testing.T) {
	b := &bench{t: t}
	server, err := fakechat.Start(fakechat.Options{})
	require.NoError(t, err)
	t.Cleanup(server.Close)
	hasty := &chat.Client{BaseURL: server.URL(), Model: server.Model(), Timeout: 20 * time.Millisecond}
	b.with(hasty, "[[hang]] On rabbits.")
	require.Equal(t, []string{"generate.1.1 failed timeout", "generate.1.2 initialized"}, b.items())
}

func TestPermanentFailureIsNotRetried(t *testing.T) {
	for code, spoil := range map[string]func(*chat.Client){
		"invalid_api_key": func(c *chat.Client) { c.Key = "wrong" },
		"model_not_found": func(c *chat.Client) { c.Model = "gpt-none" },
		"bad_client":      func(c *chat.Client) { c.BaseURL = "nonsense" },
	} {
		t.Run(code, func(t *testing.T) {
			server, err := fakechat.Start(fakechat.Options{Key: "right"})
			require.NoError(t, err)
			t.Cleanup(server.Close)
			client := &chat.Client{BaseURL: server.URL(), Model: server.Model(), Key: "right"}
			spoil(client)
			b := (&bench{t: t}).with(client, "On rabbits.")
			require.Equal(t, []string{"generate.1.1 failed " + code}, b.items())
			require.Equal(t, state.CaseFailed, b.state())
		})
	}
}

// says answers with the same words every time, or with an error that no one has classified.
type says string

func (s says) Complete(context.Context, string) (chat.Reply, error) {
	if s == "" {
		return chat.Reply{}, errors.New("the model broke a leg")
	}
	return chat.Reply{Text: string(s), Model: "stub"}, nil
}

func TestADraftThatBreaksItsRulesIsAFailedAttempt(t *testing.T) {
	b := (&bench{t: t}).with(says("Too short."), "On rabbits.")
	require.Equal(t, []string{"generate.1.1 failed invalid", "generate.1.2 initialized"}, b.items())
	b.e.Advance(time.Hour)
	require.Equal(t, state.CaseFailed, b.state())
}

func TestAnErrorOfAnotherKindIsTriedAgain(t *testing.T) {
	b := (&bench{t: t}).with(says(""), "On rabbits.")
	require.Equal(t, []string{"generate.1.1 failed error", "generate.1.2 initialized"}, b.items())
	require.Equal(t, []string{"run +1s"}, b.jobs())
}

func TestARejectedDraftGoesBackWithANote(t *testing.T) {
	b := start(t, "On rabbits. [[error]]")
	b.e.Advance(time.Second)
	require.ErrorContains(t, b.review(airetry.Verdict{}), "note", "a rejection needs a reason")
	require.NoError(t, b.review(airetry.Verdict{Note: "Shorter, please."}))
	b.e.Advance(time.Second)
	require.Equal(t, []string{
		"generate.1.1 failed internal_error", "generate.1.2 completed", "review.1.1 completed",
		"generate.2.1 failed internal_error", "generate.2.2 completed", "review.2.1 initialized",
	}, b.items(), "a new activation, with attempts of its own")
	require.Contains(t, b.server.Requests()[3].Prompt, "Shorter, please.")
	require.NoError(t, b.review(airetry.Verdict{Approved: true}))
	c, err := b.e.Wait(t.Context(), b.id)
	require.NoError(t, err)
	require.Equal(t, state.CaseCompleted, c.State)
	require.Contains(t, string(c.Output), b.server.Text(b.server.Requests()[3].Prompt))
	require.Equal(t, []string{"1 failed", "2 completed", "1 failed", "2 completed"}, b.records())
}

func TestACrashBetweenTwoAttemptsLosesNothing(t *testing.T) {
	b := start(t, "On rabbits. [[error, limit 30s]]")
	b.e.Advance(time.Second)
	b.e.Crash()
	require.Equal(t, []string{"run +30s"}, b.jobs(), "the wait outlives the process")
	b.e.Advance(30 * time.Second)
	require.Equal(t, 3, b.server.Count())
	require.Equal(t, []string{"1 failed", "2 failed", "3 completed"}, b.records())
}

func TestACanceledCaseLeavesNoAttemptPending(t *testing.T) {
	b := start(t, "On rabbits. [[error]]")
	require.NoError(t, enginetest.Do(t.Context(), b.e, workflow.Cancel(b.id, workitem.Failf("obsolete", "nobody wants it"))))
	b.e.Advance(time.Hour)
	require.Equal(t, 1, b.server.Count())
	require.Equal(t, []string{"1 failed", "2 canceled"}, b.records())
}

func TestTheRecordAndTheItemMoveTogether(t *testing.T) {
	b := start(t, "On rabbits.")
	undo := errors.New("changed my mind")
	err := b.e.Update(t.Context(), func(tx *engine.Tx) error {
		if _, err := b.Start(t.Context(), tx, airetry.Prompt{Text: "On foxes."}); err != nil {
			return err
		}
		return undo
	})
	require.ErrorIs(t, err, undo)
	require.Equal(t, []string{"1 completed"}, b.records())
}
