package engine_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/internal/record"
	"github.com/tasq-dev/tasq/limit"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
)

// A dry run says what a command would do, or why it would be refused, and does nothing.
func TestADryRunDoesNothing(t *testing.T) {
	t.Parallel()
	s := newShipping(t, retry.Policy{})
	e := enginetest.New(t, s)
	id, err := s.Start(t.Context(), e, "book")
	require.NoError(t, err)
	e.Drain()
	before := caseOf(t, e, id)
	require.Equal(t, state.CaseFailed, before.State)

	p, err := e.DryRun(t.Context(), workflow.Resume(id, nil, workflow.Key("k")))
	require.NoError(t, err)
	require.Equal(t, id, p.Result.Case)
	require.Len(t, p.Trees, 1)
	require.Equal(t, state.CaseStarted, p.Trees[0].Tree.Case(id).State)
	require.Equal(t, 2, p.Trees[0].Tree.Case(id).Items.Len())
	require.IsType(t, &state.CaseResumed{}, p.Trees[0].Changes[0])
	e.Drain()
	after := caseOf(t, e, id)
	require.Equal(t, state.CaseFailed, after.State)
	require.Equal(t, before.LastSeq, after.LastSeq)
	require.Equal(t, []string{"order.1.1 failed"}, e.States(id))

	p, err = e.DryRun(t.Context(), workflow.Start("shipping", []byte(`"pen"`)))
	require.NoError(t, err)
	require.Len(t, p.Trees, 1)
	_, err = e.Case(t.Context(), p.Result.Case)
	require.ErrorIs(t, err, store.ErrNotFound)
	_, err = e.DryRun(t.Context(), workflow.Cancel(id, nil))
	require.ErrorIs(t, err, workflow.ErrInactive)

	s.down.Store(false)
	result, err := e.Do(t.Context(), workflow.Resume(id, nil, workflow.Key("k")))
	require.NoError(t, err, "the key of a dry run is not used up")
	require.Equal(t, id, result.Case)
}

// A dry run of a setting says what it would be, and applies nothing, not even for a moment: a resumed queue would start its jobs.
func TestADryRunOfASettingAppliesNothing(t *testing.T) {
	t.Parallel()
	openai := limit.Rate("openai", 5, time.Minute, limit.SlidingWindow)
	var calls atomic.Int32
	f := builder.MustFunc("fetch", func(context.Context, int) (int, error) { calls.Add(1); return 0, nil },
		builder.OnQueue("mail"), builder.Limits(builder.Takes(openai, 1)))
	e := enginetest.Open(t, enginetest.Store(t), engine.Config{}, f)
	settings := func() (list []store.Setting) {
		require.NoError(t, e.View(t.Context(), func(r store.Reader) (err error) {
			list, err = r.Settings(t.Context())
			return err
		}))
		return list
	}
	asked := func(c workflow.Command) workflow.Result {
		result, err := e.Do(t.Context(), c)
		require.NoError(t, err)
		return result
	}
	tried := func(c workflow.Command, lines ...string) {
		t.Helper()
		before, limits, queues := settings(), asked(workflow.Limits()).Limits, asked(workflow.Queues()).Queues
		p, err := e.DryRun(t.Context(), c)
		require.NoError(t, err)
		require.Empty(t, p.Trees)
		var got []string
		for _, s := range p.Settings {
			line, err := record.SettingChange(s.Name, s.From, s.To)
			require.NoError(t, err)
			got = append(got, line)
		}
		require.Equal(t, lines, got)
		e.Drain()
		require.Zero(t, calls.Load())
		require.Equal(t, before, settings())
		require.Equal(t, limits, asked(workflow.Limits()).Limits)
		require.Equal(t, queues, asked(workflow.Queues()).Queues)
	}
	by := []workflow.Option{workflow.By("ann"), workflow.Because("the server moves")}
	tried(workflow.PauseQueue("mail", by...), `queue "mail": open -> paused by ann (the server moves)`)
	tried(workflow.PauseKey("mail", "ada", by...), `queue "mail": open -> open, key ada paused by ann (the server moves)`)
	tried(workflow.SetWorkers("mail", 3), `queue "mail": open -> open, 3 workers`)
	tried(workflow.SetLimit("openai", 7, by...), "limit openai: 5 (as defined) -> 7 by ann (the server moves)")
	tried(workflow.SuspendWorkflow("fetch", by...), "workflow fetch: not suspended -> suspended by ann (the server moves)")
	tried(workflow.ResumeWorkflow("fetch"))
	tried(workflow.ResumeQueue("mail"))

	require.NoError(t, enginetest.Do(t.Context(), e, workflow.PauseQueue("mail", by...)))
	require.NoError(t, enginetest.Do(t.Context(), e, workflow.SetLimit("openai", 0, by...)))
	require.NoError(t, enginetest.Do(t.Context(), e, workflow.SuspendWorkflow("fetch")))
	require.NoError(t, enginetest.Do(t.Context(), e, workflow.ResumeWorkflow("fetch")))
	_, err := f.Run(t.Context(), e, 1)
	require.NoError(t, err)
	e.Drain()
	tried(workflow.SetLimit("openai", 5), "limit openai: 0 by ann (the server moves) -> 5 (as defined)")
	tried(workflow.ForgetLimit("openai"), "limit openai: 0 by ann (the server moves) -> 5 (as defined)")
	tried(workflow.ResumeQueue("mail"), `queue "mail": paused by ann (the server moves) -> open`)
	_, err = e.DryRun(t.Context(), workflow.SetLimit("none", 5))
	require.ErrorIs(t, err, store.ErrNotFound)
	require.NoError(t, enginetest.Do(t.Context(), e, workflow.SetLimit("openai", 5)))
	require.NoError(t, enginetest.Do(t.Context(), e, workflow.ResumeQueue("mail")))
	e.Drain()
	require.EqualValues(t, 1, calls.Load())
}

// A case that would be removed is there afterwards.
func TestADryRunOfARemoval(t *testing.T) {
	t.Parallel()
	f := builder.MustFunc("fetch", func(context.Context, int) (int, error) { return 0, nil })
	e := enginetest.New(t, f)
	run, err := f.Run(t.Context(), e, 1)
	require.NoError(t, err)
	e.Drain()
	p, err := e.DryRun(t.Context(), workflow.Remove(run.ID))
	require.NoError(t, err)
	require.Len(t, p.Trees, 1)
	require.Equal(t, run.ID, p.Trees[0].Tree.Root)
	require.Equal(t, "fetch", p.Trees[0].Tree.Case(run.ID).Workflow)
	require.NotEmpty(t, p.Trees[0].Changes)
	require.Equal(t, "completed: 0", outcome(t, e, run.ID))
}

func TestACaseAsItWas(t *testing.T) {
	t.Parallel()
	s := newShipping(t, retry.Constant(2, time.Hour))
	e := enginetest.New(t, s)
	started := e.Now()
	id, err := s.Start(t.Context(), e, "book")
	require.NoError(t, err)
	e.Drain()
	e.Advance(2 * time.Hour)
	require.NoError(t, enginetest.Do(t.Context(), e, workflow.Resume(id, nil)))
	e.Drain()
	at := func(m store.Moment) *state.Case {
		tree, err := store.At(t.Context(), e, id, m)
		require.NoError(t, err)
		return tree.Case(id)
	}
	require.Equal(t, caseOf(t, e, id).State, at(store.Moment{}).State)
	require.Equal(t, 3, at(store.Moment{}).Items.Len())
	require.Equal(t, 2, at(store.Moment{Time: started}).Items.Len(), "the second attempt waits")
	require.Equal(t, state.CaseStarted, at(store.Moment{Time: started.Add(time.Minute)}).State)
	require.Equal(t, state.CaseFailed, at(store.Moment{Time: started.Add(time.Hour)}).State)
	var entries []*store.Entry
	require.NoError(t, e.View(t.Context(), func(r store.Reader) (err error) {
		entries, err = r.Journal(t.Context(), store.JournalFilter{Root: id, Limit: 1})
		return err
	}))
	first := at(store.Moment{Seq: entries[0].Seq})
	require.Equal(t, 1, first.Items.Len())
	require.Equal(t, entries[0].Seq, first.LastSeq)
	_, err = store.At(t.Context(), e, id, store.Moment{Time: started.Add(-time.Second)})
	require.ErrorIs(t, err, store.ErrNotFound)
}
