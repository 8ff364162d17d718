package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/activities"
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

// supplier fails until it is repaired.
type supplier struct{ fixed atomic.Bool }

func (b *supplier) run(_ context.Context, n int) (int, error) {
	if b.fixed.Load() {
		return n + 1, nil
	}
	return 0, workitem.Failf("supplier-down", "no answer")
}

// lettersOf lists the dead letters of an engine, oldest first.
func lettersOf(t *testing.T, e *enginetest.Engine, f store.CaseFilter) (cases []*state.Case, letters []workflow.Letter) {
	t.Helper()
	f.Labels = workflow.LetterLabels("", "")
	for c, err := range store.AllCases(t.Context(), e, f) {
		require.NoError(t, err)
		var l workflow.Letter
		require.NoError(t, json.Unmarshal(c.Input, &l))
		cases, letters = append(cases, c), append(letters, l)
	}
	return cases, letters
}

func itemRows(t *testing.T, e *enginetest.Engine, id workitem.CaseID) (list []*store.ItemRow) {
	t.Helper()
	for it, err := range store.AllItems(t.Context(), e, store.ItemFilter{Case: id}) {
		require.NoError(t, err)
		list = append(list, it)
	}
	return list
}

// letterNotes lists what the journal of a case notes about dead letters.
func letterNotes(t *testing.T, e *enginetest.Engine, root workitem.CaseID) (list []string) {
	t.Helper()
	for entry, err := range store.AllEntries(t.Context(), e, store.JournalFilter{Root: root}) {
		require.NoError(t, err)
		for _, c := range entry.Changes {
			if n, ok := c.(*state.Noted); ok && n.Code == state.NoteDeadLetter {
				list = append(list, n.Text)
			}
		}
	}
	return list
}

func TestARunThatIsGivenUpLeavesADeadLetter(t *testing.T) {
	var b supplier
	letters := builder.MustLetters("letters")
	charge := builder.MustFunc("charge", func(ctx context.Context, n int) (int, error) {
		if _, err := step.Do(ctx, "reserve", func(context.Context) (int, error) { return n, nil }); err != nil {
			return 0, err
		}
		return b.run(ctx, n)
	}, builder.DeadLetter(letters), builder.Keep(time.Hour), builder.Label("customer", func(int) string { return "ada" }))
	e := enginetest.New(t, charge)

	run, err := charge.Run(t.Context(), e, 7, workflow.Priority(3), workflow.BusinessKey("C-7"))
	require.NoError(t, err)
	e.Advance(time.Minute)
	cases, all := lettersOf(t, e, store.CaseFilter{})
	require.Len(t, all, 1)
	l := all[0]
	require.Equal(t, "charge", l.Workflow)
	require.Equal(t, run.ID, l.Case)
	require.Zero(t, l.Item)
	require.JSONEq(t, "7", string(l.Input))
	require.Equal(t, "supplier-down", l.Failure.Code)
	require.Equal(t, "C-7", l.BusinessKey)
	require.Equal(t, map[string]string{"customer": "ada"}, l.Labels)
	require.Len(t, l.Attempts, 4)
	for i, a := range l.Attempts {
		require.Equal(t, i+1, a.Attempt)
		require.Equal(t, "supplier-down", a.Failure.Code)
		require.False(t, a.Ended.IsZero())
	}
	letter := cases[0]
	require.Equal(t, "letters", letter.Workflow)
	require.Equal(t, map[string]string{"dead-letter": "yes", "dead-letter-of": "charge", "dead-letter-code": "supplier-down"}, letter.Labels)
	require.Equal(t, "letters", itemRows(t, e, letter.ID)[0].Queue)
	require.Contains(t, letterNotes(t, e, run.ID), "it is given up; its dead letter is case "+letter.ID.String()+" of letters")

	answer, err := e.Why(t.Context(), run.ID)
	require.NoError(t, err)
	require.Contains(t, answer.String(), "; it is given up; its dead letter is case "+letter.ID.String()+" of letters")

	// It fails again, so it leaves another letter; the first one is over.
	again, err := e.Do(t.Context(), workflow.Redrive(letter.ID, workflow.By("ann"), workflow.Because("try it")))
	require.NoError(t, err)
	require.NotEqual(t, run.ID, again.Case)
	e.Advance(time.Minute)
	require.Equal(t, state.CaseCanceled, caseOf(t, e, letter.ID).State)
	require.Equal(t, "redriven", caseOf(t, e, letter.ID).Failure.Code)
	require.Contains(t, caseOf(t, e, letter.ID).Failure.Message, "try it")
	cases, all = lettersOf(t, e, store.CaseFilter{States: []state.CaseState{state.CaseStarted}})
	require.Len(t, all, 1)
	require.Equal(t, again.Case, all[0].Case)
	require.Equal(t, run.ID, caseOf(t, e, again.Case).Predecessor)

	// The original is removed meanwhile: it starts again with what the letter has.
	e.Advance(2 * time.Hour)
	_, err = e.RunInfo(t.Context(), again.Case)
	require.ErrorIs(t, err, engine.ErrNotFound)
	b.fixed.Store(true)
	last, err := e.Do(t.Context(), workflow.Redrive(cases[0].ID))
	require.NoError(t, err)
	e.Drain()
	got, err := charge.Of(last.Case).Result(t.Context(), e)
	require.NoError(t, err)
	require.Equal(t, 8, got)
	c := caseOf(t, e, last.Case)
	require.Equal(t, "C-7", c.Key)
	require.Equal(t, "ada", c.Labels["customer"])
	require.Equal(t, 3, c.Priority)
	_, all = lettersOf(t, e, store.CaseFilter{States: []state.CaseState{state.CaseStarted}})
	require.Empty(t, all)
}

func TestAnItemThatIsGivenUpLeavesADeadLetter(t *testing.T) {
	for name, p := range map[string]struct {
		policy workitem.Policy
		letter bool
	}{
		"the case fails": {workitem.Default(), true},
		"it is borne":    {workitem.ContinueOnFailure(), true},
		"it is held":     {workitem.Incident(workitem.Default()), false},
	} {
		t.Run(name, func(t *testing.T) {
			var b supplier
			letters := builder.MustLetters("letters")
			d := builder.New[int]("order")
			d.Path(d.Start(), builder.Task(d, "ask", builder.Work[int, int]{Input: builder.CaseInput(d), Run: b.run, Policy: p.policy,
				Retry: retry.Exponential(2, time.Second), DeadLetter: letters}), d.End())
			w := d.MustBuild()
			e := enginetest.New(t, w)
			id, err := w.Start(t.Context(), e, 7)
			require.NoError(t, err)
			e.Advance(time.Minute)
			items := itemRows(t, e, id)
			require.Len(t, items, 2)
			cases, all := lettersOf(t, e, store.CaseFilter{})
			if !p.letter {
				require.Empty(t, all, "a person decides")
				require.NoError(t, enginetest.Do(t.Context(), e, workflow.GiveUp(items[1].ID)))
				cases, all = lettersOf(t, e, store.CaseFilter{})
			}
			require.Len(t, all, 1)
			require.Equal(t, items[1].ID, all[0].Item)
			require.Equal(t, "ask", all[0].Task)
			require.Len(t, all[0].Attempts, 2)
			require.Equal(t, "supplier-down", all[0].Failure.Code)
			if name == "it is borne" {
				return // its task is over
			}
			b.fixed.Store(true)
			result, err := e.Do(t.Context(), workflow.Redrive(cases[0].ID, workflow.By("ann")))
			require.NoError(t, err)
			require.Equal(t, id, result.Case)
			e.Drain()
			require.Equal(t, state.CaseCompleted, caseOf(t, e, id).State)
			require.Equal(t, state.CaseCanceled, caseOf(t, e, cases[0].ID).State)
		})
	}
}

func TestNoDeadLetterWithoutGivingUp(t *testing.T) {
	letters := builder.MustLetters("letters")
	wait := builder.MustFunc("wait", func(ctx context.Context, fail bool) (int, error) {
		if fail {
			return 0, errors.New("no")
		}
		return 0, step.Sleep(ctx, "long", time.Hour)
	}, builder.DeadLetter(letters))
	parent := builder.MustFunc("parent", func(ctx context.Context, _ int) (string, error) {
		_, err := step.Call[int](ctx, "call", "wait", true)
		return err.Error(), nil
	})
	e := enginetest.New(t, wait, parent)
	run, err := wait.Run(t.Context(), e, false)
	require.NoError(t, err)
	_, err = run.Cancel(t.Context(), e, nil)
	require.NoError(t, err)
	_, err = parent.Run(t.Context(), e, 1)
	require.NoError(t, err)
	e.Advance(time.Minute)
	_, all := lettersOf(t, e, store.CaseFilter{})
	require.Empty(t, all)
	require.ErrorIs(t, enginetest.Do(t.Context(), e, workflow.Redrive(run.ID)), workflow.ErrNotFound)
}

// A failure and its letter are one transaction: a letter that cannot begin leaves the work to a person.
func TestADeadLetterWhoseStartFailsIsKept(t *testing.T) {
	var b supplier
	d := builder.New[workflow.Letter]("letters")
	d.Path(d.Start(), builder.Task(d, "look", builder.Work[any, any]{}), d.End())
	d.OnInitialized(func(context.Context, *activities.Case) error { return errors.New("no room") })
	charge := builder.MustFunc("charge", b.run, builder.DeadLetter(d.MustBuild()),
		builder.Retry(func(p *retry.Policy) { p.Attempts = 1 }))
	e := enginetest.New(t, charge)
	run, err := charge.Run(t.Context(), e, 7)
	require.NoError(t, err)
	e.Advance(time.Hour)
	info, err := e.RunInfo(t.Context(), run.ID)
	require.NoError(t, err)
	require.Equal(t, workflow.RunStuck, info.State)
	_, all := lettersOf(t, e, store.CaseFilter{})
	require.Empty(t, all)
}

func TestDeadLettersAreRedrivenTogether(t *testing.T) {
	var b supplier
	charge := builder.MustFunc("charge", b.run, builder.DeadLetter(builder.MustLetters("letters")))
	repairs := bulk.New(engine.Code)
	e := enginetest.New(t, charge, repairs)
	repairs.Serve(e)
	for n := range 10 {
		_, err := charge.Run(t.Context(), e, n)
		require.NoError(t, err)
	}
	e.Advance(time.Minute)
	none, err := bulk.Letters(t.Context(), e, store.CaseFilter{}, "charge", "no-funds")
	require.NoError(t, err)
	require.Empty(t, none)
	targets, err := bulk.Letters(t.Context(), e, store.CaseFilter{}, "charge", "supplier-down")
	require.NoError(t, err)
	require.Len(t, targets, 10)
	b.fixed.Store(true)
	run, err := repairs.Start(t.Context(), e, bulk.Action{Kind: workflow.KindRedrive, Reason: "it is back", Actor: "ann"}, targets)
	require.NoError(t, err)
	e.Drain()
	result, err := run.Result(t.Context(), e)
	require.NoError(t, err)
	require.Equal(t, bulk.Result{Done: 10}, result)
	completed := 0
	for _, err := range store.AllCases(t.Context(), e, store.CaseFilter{Workflow: "charge", States: []state.CaseState{state.CaseCompleted}}) {
		require.NoError(t, err)
		completed++
	}
	require.Equal(t, 10, completed)
	left, err := bulk.Letters(t.Context(), e, store.CaseFilter{}, "", "")
	require.NoError(t, err)
	require.Empty(t, left)
}

// countCases counts the cases of a workflow.
func countCases(t *testing.T, e *enginetest.Engine, workflow string) (n int) {
	t.Helper()
	for _, err := range store.AllCases(t.Context(), e, store.CaseFilter{Workflow: workflow}) {
		require.NoError(t, err)
		n++
	}
	return n
}

// Two people, or a person and a bulk action, redrive one letter: the second one starts nothing, also if the original is removed meanwhile.
func TestALetterIsRedrivenOnce(t *testing.T) {
	var b supplier
	charge := builder.MustFunc("charge", b.run, builder.DeadLetter(builder.MustLetters("letters")),
		builder.Retry(func(p *retry.Policy) { p.Attempts = 1 }))
	repairs := bulk.New(engine.Code)
	e := enginetest.New(t, charge, repairs)
	repairs.Serve(e)
	run, err := charge.Run(t.Context(), e, 7)
	require.NoError(t, err)
	e.Drain()
	targets, err := bulk.Letters(t.Context(), e, store.CaseFilter{}, "", "")
	require.NoError(t, err)
	require.Len(t, targets, 1)
	id, err := workitem.ParseID(targets[0])
	require.NoError(t, err)
	letter := workitem.CaseID(id)
	b.fixed.Store(true)
	first, err := e.Do(t.Context(), workflow.Redrive(letter, workflow.Key("ann's")))
	require.NoError(t, err)
	again, err := e.Do(t.Context(), workflow.Redrive(letter, workflow.Key("ann's")))
	require.NoError(t, err)
	require.Equal(t, first, again, "the same command is answered again")

	refused := func() {
		t.Helper()
		_, err := e.Do(t.Context(), workflow.Redrive(letter))
		require.ErrorIs(t, err, workflow.ErrInactive)
		require.ErrorContains(t, err, "is redriven already")
		require.ErrorContains(t, err, first.Case.String()+" goes on")
	}
	refused()
	action, err := repairs.Start(t.Context(), e, bulk.Action{Kind: workflow.KindRedrive, Actor: "bob"}, targets)
	require.NoError(t, err)
	e.Drain()
	result, err := action.Result(t.Context(), e)
	require.NoError(t, err)
	require.Zero(t, result.Done)
	require.Len(t, result.Refused, 1)
	require.Equal(t, "not-active", result.Refused[0].Code)

	require.NoError(t, enginetest.Do(t.Context(), e, workflow.Remove(run.ID)))
	refused()
	e.Drain()
	require.Equal(t, 1, countCases(t, e, "charge"), "the one that was redriven")
}

// The workflow of the letters completes each by itself, so a redrive cannot cancel the letter: the second one is refused all the same, also
// with an idempotency key, after the original is removed, and after a crash.
func TestAnEndedLetterIsRedrivenOnce(t *testing.T) {
	for name, first := range map[string][]workflow.Option{"without a key": nil, "with a key": {workflow.Key("ann's"), workflow.By("ann")}} {
		t.Run(name, func(t *testing.T) {
			var b supplier
			noted := builder.MustFunc("noted", func(context.Context, workflow.Letter) (int, error) { return 0, nil })
			charge := builder.MustFunc("charge", b.run, builder.DeadLetter(noted), builder.Retry(func(p *retry.Policy) { p.Attempts = 1 }))
			e := enginetest.New(t, charge, noted)
			run, err := charge.Run(t.Context(), e, 7)
			require.NoError(t, err)
			e.Drain()
			letters, _ := lettersOf(t, e, store.CaseFilter{})
			require.Len(t, letters, 1)
			require.Equal(t, state.CaseCompleted, letters[0].State)
			b.fixed.Store(true)
			result, err := e.Do(t.Context(), workflow.Redrive(letters[0].ID, first...))
			require.NoError(t, err)
			if first != nil {
				again, err := e.Do(t.Context(), workflow.Redrive(letters[0].ID, first...))
				require.NoError(t, err)
				require.Equal(t, result, again, "the same command is answered again")
			}
			refused := func() {
				t.Helper()
				_, err := e.Do(t.Context(), workflow.Redrive(letters[0].ID, workflow.Key("bob's")))
				require.ErrorIs(t, err, workflow.ErrInactive)
				require.ErrorContains(t, err, "is redriven already")
				require.ErrorContains(t, err, result.Case.String()+" goes on")
			}
			refused()
			require.NoError(t, enginetest.Do(t.Context(), e, workflow.Remove(run.ID)))
			e.Crash()
			refused()
			e.Drain()
			require.Equal(t, 1, countCases(t, e, "charge"), "the one that was redriven")
		})
	}
}
