package engine_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/sqlite"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

type prompt struct {
	Text string `json:"text" validate:"required"`
}

type draft struct {
	Body string `json:"body" validate:"required"`
}

type verdict struct {
	OK bool `json:"ok"`
}

// article is the process of most tests: a draft that is made by a function, and a review by a person.
type article struct {
	*builder.Workflow[prompt]
	draft  *builder.TaskRef[prompt, draft]
	review *builder.TaskRef[draft, verdict]
}

func newArticle(t testing.TB, work builder.Work[prompt, draft]) article {
	t.Helper()
	b := builder.New[prompt]("article")
	work.Input = builder.CaseInput(b)
	a := article{draft: builder.Task(b, "draft", work)}
	a.review = builder.Task(b, "review", builder.Work[draft, verdict]{Input: builder.Output(a.draft), Queue: "editors"})
	b.Path(b.Start(), a.draft, a.review, b.End())
	var err error
	a.Workflow, err = b.Build()
	require.NoError(t, err)
	return a
}

func write(_ context.Context, p prompt) (draft, error) { return draft{Body: "On " + p.Text}, nil }

// items lists a case's work items as text: label, state, attempt, failure.
func items(t testing.TB, e *enginetest.Engine, id workitem.CaseID) []string {
	t.Helper()
	var lines []string
	for row, err := range store.AllItems(t.Context(), e, store.ItemFilter{Case: id}) {
		require.NoError(t, err)
		line := fmt.Sprintf("%s %s %d", row.Label(), row.State, row.Attempt)
		if row.Failure != nil {
			line += " " + row.Failure.Code
		}
		lines = append(lines, line)
	}
	return lines
}

// live finds the one live item of a task.
func live(t testing.TB, e *enginetest.Engine, id workitem.CaseID, task string) *store.ItemRow {
	t.Helper()
	var found *store.ItemRow
	for row, err := range store.AllItems(t.Context(), e, store.ItemFilter{Case: id, Task: task}) {
		require.NoError(t, err)
		if row.State.Live() {
			require.Nil(t, found, "task %s has several live items", task)
			found = row
		}
	}
	require.NotNil(t, found, "task %s has no live item", task)
	return found
}

func TestACaseFromStartToEnd(t *testing.T) {
	a := newArticle(t, builder.Work[prompt, draft]{Run: write})
	e := enginetest.New(t, a)
	id, err := a.Start(t.Context(), e, prompt{Text: "nets"})
	require.NoError(t, err)
	e.Drain()
	review := live(t, e, id, "review")
	require.JSONEq(t, `{"body":"On nets"}`, string(review.Input))
	require.NoError(t, a.review.Start(t.Context(), e, review.ID))
	require.NoError(t, a.review.Complete(t.Context(), e, review.ID, verdict{OK: true}))
	c, err := e.Wait(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, state.CaseCompleted, c.State)
	require.Equal(t, []string{"draft.1.1 completed 1", "review.1.1 completed 1"}, items(t, e, id))
}

func TestACallbackThatFailsUndoesItsCommand(t *testing.T) {
	for name, hook := range map[string]func(context.Context, *activities.Activation) error{
		"error": func(context.Context, *activities.Activation) error { return errors.New("no room") },
		"panic": func(context.Context, *activities.Activation) error { panic("no room") },
	} {
		t.Run(name, func(t *testing.T) {
			a := newArticle(t, builder.Work[prompt, draft]{OnEnabled: hook})
			e := enginetest.New(t, a)
			_, err := a.Start(t.Context(), e, prompt{Text: "nets"})
			require.ErrorContains(t, err, "no room")
			require.ErrorContains(t, err, "article/draft", "the error names the task")
			require.ErrorContains(t, err, "engine_test.go:", "and where it was declared")
			for c := range store.AllCases(t.Context(), e, store.CaseFilter{}) {
				t.Errorf("case %s is there", c.ID)
			}
		})
	}
}

func TestACallbackThatNeverReturnsIsAbandoned(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	late := make(chan error, 1)
	a := newArticle(t, builder.Work[prompt, draft]{OnEnabled: func(ctx context.Context, a *activities.Activation) error {
		if strings.Contains(string(a.Case().Input), "hang") {
			<-release
			_, err := a.NewItem(ctx, activities.NewItem{})
			late <- err
		}
		return nil
	}})
	e := enginetest.Open(t, enginetest.Store(t), engine.Config{CallbackTimeout: time.Second}, a)
	_, err := a.Start(t.Context(), e, prompt{Text: "hang"})
	require.ErrorIs(t, err, engine.ErrCallback)
	id, err := a.Start(t.Context(), e, prompt{Text: "nets"})
	require.NoError(t, err, "everybody else goes on")
	close(release)
	require.Error(t, <-late, "what the callback does later is refused")
	require.Equal(t, []string{"draft.1.1 initialized 1"}, items(t, e, id))
}

func TestACallbackMayCallOthers(t *testing.T) {
	initialized := 0
	a := newArticle(t, builder.Work[prompt, draft]{
		Initialize: func(context.Context, *activities.Item, prompt) error {
			initialized++
			return nil
		},
		Run:                    func(context.Context, prompt) (draft, error) { return draft{}, errors.New("not yet") },
		OnWorkItemStateChanged: activities.Retry(retry.Constant(3, 0)),
	})
	e := enginetest.New(t, a)
	_, err := a.Start(t.Context(), e, prompt{Text: "nets"})
	require.NoError(t, err)
	e.Drain()
	require.Equal(t, 3, initialized, "the activity makes an item, whose action runs within it")
}

func TestTheSameKeyReturnsTheFirstAnswer(t *testing.T) {
	a := newArticle(t, builder.Work[prompt, draft]{})
	e := enginetest.New(t, a)
	first, err := a.Start(t.Context(), e, prompt{Text: "nets"}, workflow.Key("order-7"))
	require.NoError(t, err)
	e.Crash()
	second, err := a.Start(t.Context(), e, prompt{Text: "nets"}, workflow.Key("order-7"))
	require.NoError(t, err)
	require.Equal(t, first, second)
	item := live(t, e, first, "draft")
	require.NoError(t, a.draft.Start(t.Context(), e, item.ID, workflow.Key("s")))
	require.NoError(t, a.draft.Start(t.Context(), e, item.ID, workflow.Key("s")), "the command was done already")
	require.ErrorIs(t, a.draft.Cancel(t.Context(), e, item.ID, nil, workflow.Key("s")), engine.ErrKeyReused)
}

func TestWrongCommandsSayWhatIsWrong(t *testing.T) {
	a := newArticle(t, builder.Work[prompt, draft]{})
	e := enginetest.New(t, a)
	ctx := t.Context()
	_, err := a.Start(ctx, e, prompt{})
	require.ErrorContains(t, err, "text", "the missing field is named")
	id, err := a.Start(ctx, e, prompt{Text: "nets"})
	require.NoError(t, err)
	item := live(t, e, id, "draft")

	var transition *workitem.TransitionError
	require.ErrorAs(t, a.draft.Complete(ctx, e, item.ID, draft{Body: "x"}), &transition)
	require.ErrorContains(t, transition, "needs it to be started")
	require.ErrorIs(t, a.review.Start(ctx, e, item.ID), engine.ErrNotFound, "an item of another task")
	require.ErrorIs(t, a.draft.Start(ctx, e, workitem.ID{1}), engine.ErrNotFound)
	require.ErrorIs(t, enginetest.Do(ctx, e, workflow.Cancel(workitem.CaseID{1}, nil)), engine.ErrNotFound)
	_, err = enginetest.Start(ctx, e, "artcle", nil)
	require.ErrorIs(t, err, engine.ErrUnknown)
	require.ErrorContains(t, err, "article", "what there is")
	require.NoError(t, a.draft.Start(ctx, e, item.ID))
	require.ErrorContains(t, enginetest.Do(ctx, e, workflow.Act(item.ID, workitem.Complete, []byte(`{"body":`))), "JSON")
	require.ErrorContains(t, enginetest.Do(ctx, e, workflow.Act(item.ID, workitem.Complete, []byte(`{"boddy":"x"}`))), "boddy")
	require.ErrorIs(t, enginetest.Do(ctx, e, workflow.Act(item.ID, workitem.Complete, []byte(`"`+strings.Repeat("x", 2<<20)+`"`))), engine.ErrTooLarge)
	require.NoError(t, enginetest.Do(ctx, e, workflow.Cancel(id, nil)))
	require.ErrorIs(t, enginetest.Do(ctx, e, workflow.Cancel(id, nil)), engine.ErrInactive)
	require.ErrorAs(t, a.draft.Complete(ctx, e, item.ID, draft{Body: "x"}), &transition)
	require.ErrorIs(t, enginetest.Do(ctx, e, workflow.AddItem(id, "draft", nil)), engine.ErrInactive)
}

func TestATransactionHappensWholeOrNotAtAll(t *testing.T) {
	a := newArticle(t, builder.Work[prompt, draft]{})
	e := enginetest.New(t, a)
	ctx := t.Context()
	require.NoError(t, e.Update(ctx, func(tx *engine.Tx) error {
		_, err := tx.DB().ExecContext(ctx, "CREATE TABLE orders (id TEXT, case_id TEXT)")
		return err
	}))
	count := func() (n int) {
		require.NoError(t, e.View(ctx, func(r store.Reader) error {
			return r.DB().QueryRowContext(ctx, "SELECT count(*) FROM orders").Scan(&n)
		}))
		return n
	}
	place := func(fail error) error {
		return e.Update(ctx, func(tx *engine.Tx) error {
			id, err := a.Start(ctx, tx, prompt{Text: "nets"})
			if err != nil {
				return err
			}
			if _, err := tx.DB().ExecContext(ctx, "INSERT INTO orders VALUES ('7', $1)", id.String()); err != nil {
				return err
			}
			return fail
		})
	}
	require.NoError(t, place(nil))
	require.Equal(t, 1, count())
	refused := errors.New("refused")
	require.ErrorIs(t, place(refused), refused)
	require.Equal(t, 1, count())
	n := 0
	for range store.AllCases(ctx, e, store.CaseFilter{}) {
		n++
	}
	require.Equal(t, 1, n)
}

func TestAfterACrashEveryCaseGoesOn(t *testing.T) {
	var calls atomic.Int32
	hang := make(chan struct{})
	a := newArticle(t, builder.Work[prompt, draft]{Run: func(ctx context.Context, p prompt) (draft, error) {
		if calls.Add(1) == 1 {
			<-hang // the process dies with this one
		}
		return write(ctx, p)
	}})
	e := enginetest.New(t, a)
	id, err := a.Start(t.Context(), e, prompt{Text: "nets"})
	require.NoError(t, err)
	require.Eventually(t, func() bool { return calls.Load() == 1 }, time.Minute, time.Millisecond)
	require.NoError(t, e.Update(t.Context(), func(*engine.Tx) error { return nil })) // the claim is durable by now
	e.Crash()
	close(hang)
	e.Drain()
	require.Equal(t, []string{"draft.1.1 completed 1", "review.1.1 initialized 1"}, items(t, e, id),
		"a crash is not a failed attempt, and the zombie's result is refused")
	for j, err := range store.AllJobs(t.Context(), e, store.JobFilter{Case: id}) {
		require.NoError(t, err)
		require.EqualValues(t, 2, j.Fence)
		require.Equal(t, 1, j.Crashes)
	}
}

func TestADefinitionMustNotChangeUnderRunningCases(t *testing.T) {
	a := newArticle(t, builder.Work[prompt, draft]{})
	o := sqlite.Memory()
	e, err := engine.Open(t.Context(), o, a)
	require.NoError(t, err)
	_, err = a.Start(t.Context(), e, prompt{Text: "nets"})
	require.NoError(t, err)
	require.NoError(t, e.Close())

	changed := newArticle(t, builder.Work[prompt, draft]{Queue: "writers"})
	_, err = engine.Open(t.Context(), o, changed)
	require.ErrorIs(t, err, engine.ErrDrift)
	require.ErrorContains(t, err, "writers", "what changed is said")
	e, err = engine.Open(t.Context(), o, a)
	require.NoError(t, err)
	require.NoError(t, e.Close())
}

func TestManyCallersAtOnce(t *testing.T) {
	a := newArticle(t, builder.Work[prompt, draft]{Run: write})
	e := enginetest.New(t, a)
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for range 20 {
				id, err := a.Start(context.Background(), e, prompt{Text: "nets"})
				if err != nil {
					t.Error(err)
					return
				}
				for entry, err := range e.Watch(t.Context(), id, 0) {
					if err != nil {
						t.Error(err)
						return
					}
					if item := reviewIn(entry); !item.IsZero() {
						err := errors.Join(a.review.Start(context.Background(), e, item),
							a.review.Complete(context.Background(), e, item, verdict{OK: true}))
						if err != nil {
							t.Error(err)
						}
						break
					}
				}
				if c, err := e.Wait(context.Background(), id); err != nil || c.State != state.CaseCompleted {
					t.Errorf("case %s: %v", id, err)
				}
			}
		})
	}
	wg.Wait()
	counts, err := counted(t, e)
	require.NoError(t, err)
	for _, n := range counts {
		if n.What == "item" {
			require.Equal(t, "completed", n.State)
			require.EqualValues(t, 320, n.N)
		}
	}
}

// reviewIn finds the review item that an entry created; zero if it did not.
func reviewIn(entry *store.Entry) workitem.ID {
	for _, event := range entry.Changes {
		if opened, ok := event.(*state.ItemOpened); ok && opened.Item.Task == "review" {
			return opened.Item.ID
		}
	}
	return workitem.ID{}
}
