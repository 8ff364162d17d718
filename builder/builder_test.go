package builder_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/domain"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

type Prompt struct {
	Text string `json:"text" validate:"required,max=40"`
}

type Draft struct {
	Body string `json:"body" validate:"required"`
}

type Verdict struct {
	OK bool `json:"ok"`
}

var ctx = context.Background()

type article struct {
	*builder.Workflow[Prompt]
	draft  *builder.TaskRef[Prompt, Draft]
	review *builder.TaskRef[Draft, Verdict]
}

// newArticle is the first program of the documentation.
func newArticle(generate func(context.Context, Prompt) (Draft, error)) *article {
	a := new(article)
	b := builder.New[Prompt]("article")
	a.draft = builder.Task(b, "draft", builder.Work[Prompt, Draft]{
		Input:                  builder.CaseInput(b),
		Run:                    generate,
		OnWorkItemStateChanged: activities.Retry(retry.Exponential(5, time.Second)),
	})
	a.review = builder.Task(b, "review", builder.Work[Draft, Verdict]{
		Input: builder.Output(a.draft),
		Queue: "editors",
	})
	b.Path(b.Start(), a.draft, a.review, b.End())
	b.Result(builder.Output(a.review))
	a.Workflow = b.MustBuild()
	return a
}

func TestTheFirstProgramRuns(t *testing.T) {
	tries := 0
	a := newArticle(func(_ context.Context, p Prompt) (Draft, error) {
		if tries++; tries == 1 {
			return Draft{}, errors.New("overloaded")
		}
		return Draft{Body: "<" + p.Text + ">"}, nil
	})
	m := newProcess(a)
	defer m.close()
	_, err := a.Start(ctx, m, Prompt{Text: "Why?"}, workflow.By("ann"), workflow.Key("k1"))
	require.NoError(t, err)
	require.Equal(t, "start article", m.last.String())
	require.Equal(t, "k1", m.last.Key)
	require.Equal(t, "ann", m.last.Actor)
	require.Equal(t, "article started, draft.1.1 initialized {\"text\":\"Why?\"}\n", m.show())

	require.NoError(t, m.work(ctx))
	require.Equal(t, "article started, draft.1.2 initialized {\"text\":\"Why?\"}\n", m.show(), "it waits a second")
	m.advance(time.Second)
	require.NoError(t, m.work(ctx))
	require.Equal(t, "article started, review.1.1 initialized {\"body\":\"<Why?>\"}\n", m.show())

	it := m.item("review")
	require.Equal(t, "editors", it.Queue)
	in, err := a.review.InputOf(it)
	require.NoError(t, err)
	require.Equal(t, Draft{Body: "<Why?>"}, in)
	require.NoError(t, a.review.Start(ctx, m, it.ID))
	require.NoError(t, a.review.Reset(ctx, m, it.ID))
	require.NoError(t, a.review.Start(ctx, m, it.ID))
	require.NoError(t, a.review.Complete(ctx, m, it.ID, Verdict{OK: true}))
	require.Equal(t, "article completed, gave {\"ok\":true}\n", m.show())
}

func TestHandlesActAndRead(t *testing.T) {
	a := newArticle(func(context.Context, Prompt) (Draft, error) { return Draft{Body: "b"}, nil })
	m := newProcess(a)
	defer m.close()
	_, err := a.Start(ctx, m, Prompt{})
	var invalid *domain.InvalidError
	require.ErrorAs(t, err, &invalid)
	require.ErrorContains(t, err, "start article: ")

	_, err = a.Start(ctx, m, Prompt{Text: "x"})
	require.NoError(t, err)
	require.NoError(t, m.work(ctx))
	it := m.item("review")
	_, err = a.draft.InputOf(it)
	require.ErrorContains(t, err, "input of work item review.1.1: it belongs to task review, and not to draft")
	_, err = a.review.OutputOf(it)
	require.ErrorContains(t, err, "it is initialized, and only a completed one has an output")
	require.NoError(t, a.review.Start(ctx, m, it.ID))
	require.NoError(t, a.review.Fail(ctx, m, it.ID, workitem.Failf("dull", "boring")))
	require.Equal(t, "article failed\n", m.show())
	require.Equal(t, "dull: boring", m.root().Failure.String())

	_, err = a.Start(ctx, m, Prompt{Text: "x"})
	require.NoError(t, err)
	require.NoError(t, a.draft.Cancel(ctx, m, m.item("draft").ID, nil))
	require.Contains(t, m.root().Failure.String(), "no-output: input of article/review",
		"the task completes, and its output is needed")
	require.Error(t, a.draft.Start(ctx, nil, it.ID))
	_, err = a.Start(ctx, nil, Prompt{Text: "x"})
	require.ErrorContains(t, err, "no engine")

	done := &workitem.Item{Task: "draft", State: workitem.Completed, Output: json.RawMessage(`{"body":"b"}`)}
	out, err := a.draft.OutputOf(done)
	require.NoError(t, err)
	require.Equal(t, Draft{Body: "b"}, out)
	_, err = a.draft.OutputOf(nil)
	require.ErrorContains(t, err, "there is no item")
}

func TestAHandleNeedsABuiltWorkflow(t *testing.T) {
	b := builder.New[any]("w")
	task := builder.Task(b, "a", builder.Work[any, any]{})
	err := task.Start(ctx, newProcess(), workitem.ID{})
	require.ErrorContains(t, err, "call Build first")
	var none *builder.TaskRef[any, any]
	require.ErrorContains(t, none.Complete(ctx, newProcess(), workitem.ID{}, 1), "call Build first")
	require.Empty(t, none.Name())
	var nothing *builder.Workflow[any]
	_, err = nothing.Start(ctx, newProcess(), nil)
	require.ErrorContains(t, err, "build it first")
	require.Zero(t, nothing.Case(nil))
}

func TestActionsGetTypedPayloads(t *testing.T) {
	var log []string
	note := func(format string, args ...any) error {
		log = append(log, fmt.Sprintf(format, args...))
		return nil
	}
	plain := func(name string) func(context.Context, *activities.Item) error {
		return func(_ context.Context, it *activities.Item) error { return note("%s %s", name, it.Label()) }
	}
	failure := func(name string) func(context.Context, *activities.Item, *workitem.Failure) error {
		return func(_ context.Context, _ *activities.Item, f *workitem.Failure) error { return note("%s %v", name, f) }
	}
	b := builder.New[Prompt]("w")
	task := builder.Task(b, "a", builder.Work[Prompt, Verdict]{
		Items: func(context.Context, *activities.Activation) ([]Prompt, error) { return nil, nil },
		OnEnabled: func(ctx context.Context, a *activities.Activation) error {
			for range 3 {
				if _, err := a.NewItem(ctx, activities.NewItem{Input: a.Case().Input}); err != nil {
					return err
				}
			}
			return nil
		},
		Initialize: func(_ context.Context, it *activities.Item, p Prompt) error { return note("initialize %s", p.Text) },
		Start:      plain("start"), Reset: plain("reset"),
		Complete: func(_ context.Context, it *activities.Item, v Verdict) error { return note("complete %v", v.OK) },
		Fail:     failure("fail"), Cancel: failure("cancel"),
		Policy: workitem.ContinueOnFailure(),
	})
	b.Path(b.Start(), task, b.End())
	w := b.MustBuild()
	m := newProcess(w)
	defer m.close()
	_, err := w.Start(ctx, m, Prompt{Text: "x"})
	require.NoError(t, err)
	items := m.root().Items.Slice()
	require.NoError(t, task.Start(ctx, m, items[0].ID))
	require.NoError(t, task.Reset(ctx, m, items[0].ID))
	require.NoError(t, task.Start(ctx, m, items[0].ID))
	require.NoError(t, task.Start(ctx, m, items[1].ID))
	require.NoError(t, task.Complete(ctx, m, items[0].ID, Verdict{OK: true}))
	require.NoError(t, task.Fail(ctx, m, items[1].ID, workitem.Failf("c", "m")))
	require.NoError(t, task.Cancel(ctx, m, items[2].ID, nil))
	require.Equal(t, []string{
		"initialize x", "initialize x", "initialize x", "start a.1.1", "reset a.1.1", "start a.1.1", "start a.1.2",
		"complete true", "fail c: m", "cancel ",
	}, log)
	require.Equal(t, "w completed\n", m.show())
}

func TestCompositeTasks(t *testing.T) {
	cb := builder.New[Prompt]("child")
	write := builder.Task(cb, "write", builder.Work[Prompt, Draft]{Input: builder.CaseInput(cb)})
	cb.Path(cb.Start(), write, cb.End())
	child := cb.MustBuild()
	eb := builder.New[any]("empty")
	eb.Path(eb.Start(), eb.Routing("skip", builder.Routing{}), eb.End())
	empty := eb.MustBuild()

	b := builder.New[Prompt]("parent")
	one := builder.Composite(b, "one", child, builder.Cases[Prompt]{Input: builder.CaseInput(b)})
	two := builder.Composite(b, "two", child, builder.Cases[Prompt]{
		Items: func(context.Context, *activities.Activation) ([]Prompt, error) {
			return []Prompt{{Text: "a"}, {Text: "b"}}, nil
		},
	})
	choice := b.Dynamic("choice", builder.Choice{
		Of: []builder.Definition{child, empty},
		Cases: func(context.Context, *activities.Activation) ([]activities.NewCase, error) {
			return []activities.NewCase{child.Case(Prompt{Text: "last"}), empty.Case(1)}, nil
		},
	})
	b.Path(b.Start(), one, two, choice, b.End())
	w := b.MustBuild()
	m := newProcess(w, child, empty)
	defer m.close()
	_, err := w.Start(ctx, m, Prompt{Text: "first"})
	require.NoError(t, err)
	require.Equal(t, "parent started\nchild started, write.1.1 initialized {\"text\":\"first\"}\n", m.show())
	for range 4 {
		require.NoError(t, doing(m, write, Draft{Body: "done"}))
	}
	require.Equal(t, "parent completed\n"+strings.Repeat("child completed\n", 4)+"empty completed\n", m.show())
}

func TestAChildCaseThatCannotBeWrittenIsRefused(t *testing.T) {
	cb := builder.New[func()]("child")
	require.Nil(t, func() any { w, _ := cb.Build(); return asAny(w) }(), "a function is no payload")

	type odd struct{ F any }
	ob := builder.New[odd]("odd")
	ob.Path(ob.Start(), ob.Routing("r", builder.Routing{}), ob.End())
	w := ob.MustBuild()
	n := w.Case(odd{F: func() {}})
	_, err := w.Accept(n.Input)
	require.ErrorContains(t, err, "unsupported type: func()")
}

func asAny[C any](w *builder.Workflow[C]) any {
	if w == nil {
		return nil
	}
	return w
}

func TestJobsRunLater(t *testing.T) {
	var sent []string
	b := builder.New[Prompt]("w")
	var remind *builder.JobRef[Prompt]
	task := builder.Task(b, "a", builder.Work[any, any]{
		OnEnabled: func(_ context.Context, a *activities.Activation) error {
			_, err := remind.After(a, time.Hour, Prompt{Text: "hurry"})
			return err
		},
	})
	remind = builder.Job(b, "remind", func(ctx context.Context, p Prompt) error {
		w, ok := builder.WorkFrom(ctx)
		sent = append(sent, fmt.Sprint(p.Text, " ", w.Name, " ", w.Attempt, " ", ok))
		if w.Attempt == 1 {
			return errors.New("no connection")
		}
		return nil
	}, builder.JobOptions{Queue: "mail", Retry: retry.Constant(3, time.Minute)})
	b.OnInitialized(func(_ context.Context, c *activities.Case) error {
		_, err := remind.Detached(c, 0, Prompt{Text: "new"})
		return err
	})
	b.Path(b.Start(), task, b.End())
	w := b.MustBuild()
	m := newProcess(w)
	defer m.close()
	_, err := w.Start(ctx, m, Prompt{Text: "x"})
	require.NoError(t, err)
	require.NoError(t, m.work(ctx))
	m.advance(2 * time.Hour)
	require.NoError(t, m.work(ctx))
	require.Equal(t, []string{"new remind 1 true", "new remind 2 true", "hurry remind 1 true"}, sent)

	_, err = (*builder.JobRef[Prompt])(nil).After(nil, 0, Prompt{})
	require.Error(t, err)
	_, err = remind.After(scheduler{}, 0, Prompt{})
	require.ErrorContains(t, err, "schedule job remind: invalid builder_test.Prompt: text: required")
}

type scheduler struct{}

func (scheduler) Schedule(activities.NewJob) (workitem.JobID, error) { return workitem.JobID{}, nil }

func TestCaseHooksAddUp(t *testing.T) {
	var log []string
	hook := func(name string) func(context.Context, *activities.Case) error {
		return func(context.Context, *activities.Case) error { log = append(log, name); return nil }
	}
	b := builder.New[any]("w", builder.Version("2"), builder.Describe("what it is for"), nil)
	b.OnInitialized(hook("initialized 1"))
	b.OnInitialized(hook("initialized 2"))
	b.OnStarted(hook("started"))
	b.OnCompleted(hook("completed"))
	b.OnFailed(hook("failed"))
	b.OnCanceled(hook("canceled"))
	b.Result(builder.FromCase(func(c *activities.Case) (string, error) { return "of " + c.Case().Workflow, nil }))
	b.Path(b.Start(), builder.Task(b, "a", builder.Work[any, any]{Auto: true}), b.End())
	w := b.MustBuild()
	require.Equal(t, "2", w.Version)
	require.Equal(t, "what it is for", w.Description)
	m := newProcess(w)
	defer m.close()
	_, err := w.Start(ctx, m, nil)
	require.NoError(t, err)
	require.Equal(t, []string{"initialized 1", "initialized 2", "started", "completed"}, log)
	require.Equal(t, "w completed, gave \"of w\"\n", m.show())
}

func TestTimeoutCancelsTheItem(t *testing.T) {
	b := builder.New[any]("w")
	b.Path(b.Start(), builder.Task(b, "a", builder.Work[any, any]{Timeout: time.Minute, Policy: workitem.All()}), b.End())
	w := b.MustBuild()
	m := newProcess(w)
	defer m.close()
	_, err := w.Start(ctx, m, nil)
	require.NoError(t, err)
	m.advance(time.Minute)
	require.NoError(t, m.work(ctx))
	require.Equal(t, "w failed\n", m.show())
}

func TestBuiltIsBuilt(t *testing.T) {
	b := builder.New[any]("w")
	b.Path(b.Start(), b.Routing("r", builder.Routing{}), b.End())
	w, err := b.Build()
	require.NoError(t, err)
	again, err := b.Build()
	require.NoError(t, err)
	require.Same(t, w, again)
	b.Condition("late")
	_, err = b.Build()
	require.ErrorContains(t, err, `already-built: condition late is declared after Build; workflow "w" cannot change`)
	require.Panics(t, func() { b.MustBuild() })
}
