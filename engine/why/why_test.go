package why_test

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
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/engine/why"
	"github.com/tasq-dev/tasq/net/verify"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/step"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/sqlite"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// ask asks the engine, and makes sure that a process which only reads gets the same, but for what it cannot know.
func ask(t *testing.T, e *enginetest.Engine, id workitem.CaseID) *why.Answer {
	t.Helper()
	answer, err := e.Why(t.Context(), id)
	require.NoError(t, err)
	require.NoError(t, e.View(t.Context(), func(r store.Reader) error {
		read, err := why.Read(t.Context(), r, id, e.Now(), why.Here{})
		require.NoError(t, err)
		require.Len(t, read.Waits, len(answer.Waits))
		for i, w := range answer.Waits {
			blocked := w.Blocked == why.NotLoaded || w.Blocked == why.NoWorkers || w.Blocked == why.Stopped
			w.Attempts, read.Waits[i].Attempts = 0, 0
			if blocked {
				w.Blocked, w.Ahead, read.Waits[i].Blocked, read.Waits[i].Ahead = "", 0, "", 0
			}
			w.Text, read.Waits[i].Text = "", ""
			require.Equal(t, w, read.Waits[i])
		}
		return nil
	}))
	_, err = json.Marshal(answer)
	require.NoError(t, err)
	return answer
}

// only is the one wait of an answer.
func only(t *testing.T, a *why.Answer) why.Wait {
	t.Helper()
	require.Len(t, a.Waits, 1, a.String())
	return a.Waits[0]
}

// desk is a workflow of one task for a person.
func desk(t *testing.T, name string, w builder.Work[any, any], opts ...builder.Option) *builder.Workflow[any] {
	t.Helper()
	b := builder.New[any](name, opts...)
	b.Path(b.Start(), builder.Task(b, "check", w), b.End())
	return b.MustBuild()
}

func start(t *testing.T, e *enginetest.Engine, w *builder.Workflow[any], opts ...workflow.Option) workitem.CaseID {
	t.Helper()
	id, err := w.Start(t.Context(), e, nil, opts...)
	require.NoError(t, err)
	return id
}

func TestAPersonMustAct(t *testing.T) {
	w := desk(t, "desk", builder.Work[any, any]{Queue: "office", Policy: workitem.ContinueOnFailure(),
		OnWorkItemStateChanged: activities.Retry(retry.Exponential(3, time.Hour))})
	e := enginetest.New(t, w)
	start(t, e, w)
	start(t, e, w)
	e.Advance(time.Second)
	id := start(t, e, w)
	urgent := start(t, e, w, workflow.Priority(5))
	e.Advance(3 * time.Minute)

	wait := only(t, ask(t, e, id))
	require.Equal(t, why.Person, wait.Kind)
	require.Equal(t, "check.1.1", wait.Label)
	require.Equal(t, "office", wait.Queue)
	require.Equal(t, 3*time.Minute, e.Now().Sub(wait.Since))
	require.Equal(t, why.Behind, wait.Blocked)
	require.Equal(t, 3, wait.Ahead, "two are older, and one goes first")
	require.Equal(t, "item check.1.1 (initialized, queue office) waits for a user to start it, since 3m; 3 others go first\n  "+
		wait.Item.String(), wait.Text)
	require.Zero(t, only(t, ask(t, e, urgent)).Ahead)

	require.NoError(t, enginetest.Do(t.Context(), e, workflow.Act(wait.Item, workitem.Start, nil, workflow.By("ann"))))
	e.Advance(time.Minute)
	wait = only(t, ask(t, e, id))
	require.Contains(t, wait.Text, "item check.1.1 (started, queue office) waits for a user to complete it: ann has it, since 1m")

	require.NoError(t, enginetest.Do(t.Context(), e, workflow.Act(wait.Item, workitem.Fail, []byte(`{"code":"busy","message":"later","retryable":true}`))))
	wait = only(t, ask(t, e, id))
	require.Equal(t, why.Retry, wait.Kind)
	require.Equal(t, 2, wait.Attempt)
	require.Equal(t, 3, wait.Attempts, "the policy of the task")
	require.Equal(t, "busy", wait.Failure.Code)
	require.Equal(t, time.Hour, wait.Until.Sub(e.Now()))
	require.Contains(t, wait.Text, "item check.1.2 goes on in 1h, at ")
	require.Contains(t, wait.Text, ", attempt 2 of 3 after busy: later, since 0s")
	e.Advance(2 * time.Hour)
	wait = only(t, ask(t, e, id))
	require.Equal(t, why.Person, wait.Kind)
	require.Contains(t, wait.Text, "waits for a user to start it, attempt 2 of 3 after busy: later")

	require.NoError(t, enginetest.Do(t.Context(), e, workflow.Cancel(id, nil)))
	answer := ask(t, e, id)
	require.Empty(t, answer.Waits)
	require.Contains(t, answer.String(), " is canceled, since 0s: nothing of it can be enabled any more")
}

func TestAWorkerMustAct(t *testing.T) {
	ctx := t.Context()
	work := func(context.Context, any) (any, error) { return nil, workitem.Failf("busy", "try later") }
	w := desk(t, "jobs", builder.Work[any, any]{Queue: "models", Run: work,
		OnWorkItemStateChanged: activities.Retry(retry.Exponential(5, time.Minute))})
	other := desk(t, "old", builder.Work[any, any]{}, builder.Version("1"))

	open := func(cfg engine.Config, workflows ...engine.Workflow) *enginetest.Engine {
		return enginetest.Open(t, sqlite.Memory(), cfg, workflows...)
	}
	e := open(engine.Config{Queues: map[string]int{"models": 0}}, w, other)
	first, id := start(t, e, w), start(t, e, w)
	wait := only(t, ask(t, e, id))
	require.Equal(t, why.Worker, wait.Kind)
	require.Equal(t, why.Stopped, wait.Blocked)
	require.Contains(t, wait.Text, "item check.1.1 waits for a worker of queue models, since 0s; this engine stops queue models: ")
	require.NoError(t, e.View(ctx, func(r store.Reader) error {
		read, err := why.Read(ctx, r, id, e.Now(), why.Here{})
		require.NoError(t, err)
		require.Equal(t, 1, read.Waits[0].Ahead)
		require.Contains(t, read.Waits[0].Text, "; 1 other goes first")
		return err
	}))
	require.Zero(t, only(t, ask(t, e, first)).Ahead)

	e = open(engine.Config{Workers: -1}, w)
	wait = only(t, ask(t, e, start(t, e, w)))
	require.Equal(t, why.NoWorkers, wait.Blocked)

	e = open(engine.Config{}, w)
	id = start(t, e, w)
	e.Drain()
	e.Advance(time.Minute)
	wait = only(t, ask(t, e, id))
	require.Equal(t, why.Retry, wait.Kind)
	require.Equal(t, "check.1.3", wait.Label)
	require.Equal(t, 3, wait.Attempt)
	require.Contains(t, wait.Text, "item check.1.3 goes on in 2m, at ")
	require.Contains(t, wait.Text, "attempt 3")
	require.Contains(t, wait.Text, "after busy: try later")
}

func TestADefinitionThatIsNotLoaded(t *testing.T) {
	w := desk(t, "desk", builder.Work[any, any]{}, builder.Version("1"))
	e := enginetest.New(t, w)
	id := start(t, e, w)
	e.Crash(desk(t, "desk", builder.Work[any, any]{Queue: "new"}, builder.Version("2")))
	wait := only(t, ask(t, e, id))
	require.Equal(t, why.NotLoaded, wait.Blocked)
	require.Contains(t, wait.Text, "; no open engine has workflow desk version 1")
	e.Crash(w)
}

// What a person may decide about an incident needs the definition of its case.
func TestAnIncidentWhoseDefinitionIsMissing(t *testing.T) {
	fail := func(context.Context, *activities.Activation) error { return errors.New("the printer is off") }
	w := desk(t, "timed", builder.Work[any, any]{Timers: []activities.Timer{{Name: "remind", After: time.Hour, Task: fail}}}, builder.Version("1"))
	e := enginetest.New(t, w)
	id := start(t, e, w)
	e.Advance(48 * time.Hour)
	wait := ask(t, e, id).Waits[1]
	require.Equal(t, why.Incident, wait.Kind)
	require.Empty(t, wait.Blocked)
	e.Crash(desk(t, "timed", builder.Work[any, any]{Queue: "new"}, builder.Version("2")))
	wait = ask(t, e, id).Waits[1]
	require.Equal(t, why.NotLoaded, wait.Blocked)
	require.Contains(t, wait.Text, "; no open engine has workflow timed version 1: open a program with it first")
	var repairs []string
	for s, err := range why.Stranded(t.Context(), e, why.Search{Here: e.Here(), Now: e.Now()}) {
		require.NoError(t, err)
		repairs = append(repairs, s.Repair)
	}
	require.Contains(t, repairs, "open an engine with workflow timed version 1, then tasq incident retry "+wait.Incident.String())
	e.Crash(w)
}

// A timer that fails is named with its error, and one that was given up is an incident.
func TestATimerThatFails(t *testing.T) {
	fail := func(context.Context, *activities.Activation) error { return errors.New("the printer is off") }
	w := desk(t, "timed", builder.Work[any, any]{Timers: []activities.Timer{{Name: "remind", After: time.Hour, Task: fail}}})
	e := enginetest.New(t, w)
	id := start(t, e, w)
	answer := ask(t, e, id)
	require.Len(t, answer.Waits, 2)
	require.Equal(t, why.Timer, answer.Waits[1].Kind)
	require.Contains(t, answer.Waits[1].Text, "timer remind of check is due in 1h, at ")

	e.Advance(time.Hour)
	answer = ask(t, e, id)
	require.Len(t, answer.Waits, 2)
	require.Equal(t, why.Timer, answer.Waits[1].Kind)
	require.Contains(t, answer.Waits[1].Text, ", attempt 2: the last one failed with error: ")
	require.Contains(t, answer.Waits[1].Text, "the printer is off")

	e.Advance(24 * time.Hour)
	answer = ask(t, e, id)
	require.Len(t, answer.Waits, 2, answer.String())
	require.Equal(t, why.Incident, answer.Waits[1].Kind)
	require.Contains(t, answer.Waits[1].Text, "timer remind of check was given up: ")
	require.Contains(t, answer.Waits[1].Text, "the printer is off")
	require.Len(t, answer.Of("check"), 2)
}

// The steps of a function are named, and the child cases that it waits for are explained too, as those of composite tasks.
func TestStepsAndChildCases(t *testing.T) {
	child := desk(t, "child", builder.Work[any, any]{Queue: "office"})
	b := builder.New[any]("parent")
	call := builder.Task(b, "call", builder.Work[any, any]{Run: func(ctx context.Context, _ any) (any, error) {
		_, err := step.Call[any](ctx, "ask", "child", nil)
		if err == nil {
			_, err = step.Await[string](ctx, "paid", step.Timeout(time.Hour))
		}
		if err == nil {
			err = step.Sleep(ctx, "pause", time.Minute)
		}
		return nil, err
	}})
	batch := builder.Composite(b, "batch", child, builder.Cases[any]{
		Items: func(context.Context, *activities.Activation) ([]any, error) { return []any{1, 2}, nil }})
	b.Path(b.Start(), call, batch, b.End())
	w := b.MustBuild()
	e := enginetest.New(t, w)
	id := start(t, e, w)
	e.Drain()
	answer := ask(t, e, id)
	require.Len(t, answer.Waits, 2, answer.String())
	require.Equal(t, why.Child, answer.Waits[0].Kind)
	require.Contains(t, answer.Waits[0].Text, "step ask of call.1.1 waits for case "+answer.Waits[1].Case.String()+" of child")
	require.Equal(t, "child.1", answer.Waits[1].Path)
	require.Contains(t, answer.Waits[1].Text, "child.1: item check.1.1 (initialized, queue office) waits for a user")
	require.Len(t, ask(t, e, answer.Waits[0].Child).Waits, 1)

	do := func(item workitem.ID) {
		require.NoError(t, enginetest.Do(t.Context(), e, workflow.Act(item, workitem.Start, nil)))
		require.NoError(t, enginetest.Do(t.Context(), e, workflow.Act(item, workitem.Complete, nil)))
		e.Drain()
	}
	do(answer.Waits[1].Item)
	wait := only(t, ask(t, e, id))
	require.Equal(t, why.Event, wait.Kind)
	require.Equal(t, "paid", wait.Name)
	require.Contains(t, wait.Text, "step paid of call.1.1 waits for event paid, since 0s, until ")
	require.NoError(t, enginetest.Do(t.Context(), e, workflow.Send(id, "paid", json.RawMessage(`"x"`))))
	e.Drain()
	wait = only(t, ask(t, e, id))
	require.Equal(t, why.Delay, wait.Kind)
	require.Contains(t, wait.Text, "step pause of call.1.1 goes on in 1m, at ")
	e.Advance(time.Minute)

	answer = ask(t, e, id)
	require.Len(t, answer.Waits, 2, answer.String())
	require.Equal(t, []string{"batch.1.1", "batch.1.2"}, []string{answer.Waits[0].Path, answer.Waits[1].Path})
	do(answer.Waits[0].Item)
	require.Equal(t, "batch.1.2", only(t, ask(t, e, id)).Path)
}

// An or-join says from where a token can still come; a case in which nothing can act says that.
func TestJoinsAndStuckCases(t *testing.T) {
	b := builder.New[any]("joins", builder.AllowUnsound(verify.NoOptionToComplete, verify.DeadTask))
	split := builder.Task(b, "split", builder.Work[any, any]{Split: builder.Xor, Queue: "a", RouteByCaller: true})
	left, right := builder.Task(b, "left", builder.Work[any, any]{}), builder.Task(b, "right", builder.Work[any, any]{})
	meet := builder.Task(b, "meet", builder.Work[any, any]{Join: builder.And})
	b.Path(b.Start(), split, left, meet, b.End())
	b.Path(split, right, meet)
	w := b.MustBuild()
	e := enginetest.New(t, w)
	id := start(t, e, w)
	do := func(opts ...workflow.Option) {
		wait := ask(t, e, id).Waits[0]
		require.NoError(t, enginetest.Do(t.Context(), e, workflow.Act(wait.Item, workitem.Start, nil)))
		require.NoError(t, enginetest.Do(t.Context(), e, workflow.Act(wait.Item, workitem.Complete, nil, opts...)))
	}
	do(workflow.Route("left"))
	do()
	answer := ask(t, e, id)
	require.Len(t, answer.Waits, 2, answer.String())
	require.Equal(t, why.Join, answer.Waits[0].Kind)
	require.Equal(t, []string{"right->meet"}, answer.Waits[0].Tokens.Empty)
	require.Equal(t, `and-join "meet" waits for a token in right->meet`, answer.Waits[0].Text)
	require.Equal(t, why.Stuck, answer.Waits[1].Kind)
	require.Equal(t, "nothing is under way, and no task can start: there are tokens in left->meet; move one to where the case can continue, or cancel the case",
		answer.Waits[1].Text)
	require.Equal(t, []string{fmt.Sprintf("tasq case move %s FROM TO", id), fmt.Sprintf("tasq case cancel %s", id)}, answer.Waits[1].Commands)
	require.NoError(t, enginetest.Do(t.Context(), e, workflow.Move(id, "left->meet", "meet")), "the repair that the text names")
	require.Equal(t, why.Person, only(t, ask(t, e, id)).Kind)
	task, ok := answer.Task("split")
	require.True(t, ok)
	require.Equal(t, "completed", task.State)
	_, ok = answer.Task("splat")
	require.False(t, ok)
}

func TestABeginThatIsLater(t *testing.T) {
	w := desk(t, "desk", builder.Work[any, any]{})
	e := enginetest.New(t, w)
	id := start(t, e, w, workflow.After(2*time.Hour))
	wait := only(t, ask(t, e, id))
	require.Equal(t, why.Delay, wait.Kind)
	require.Contains(t, wait.Text, "the case goes on in 2h, at ")
	_, err := e.Why(t.Context(), workitem.CaseID{1})
	require.ErrorIs(t, err, engine.ErrNotFound)
}

// The waits of a case of very many items are counted, not listed.
func TestManyWaitsAreCounted(t *testing.T) {
	w := desk(t, "desk", builder.Work[any, any]{
		Items: func(context.Context, *activities.Activation) ([]any, error) { return make([]any, why.MaxWaits+7), nil }})
	e := enginetest.New(t, w)
	answer := ask(t, e, start(t, e, w))
	require.Len(t, answer.Waits, why.MaxWaits)
	require.Equal(t, 7, answer.More)
	text := answer.String()
	require.Less(t, len(text), 3000)
	require.Equal(t, why.MaxAlike, strings.Count(text, "waits for a user"), text)
	require.Contains(t, text, fmt.Sprintf("\n  and %d more of task check of desk (person)\n  and 7 more\n  tasq why %s -o json lists them, up to %d",
		why.MaxWaits-why.MaxAlike, answer.Case, why.MaxWaits))
}

// What few child cases wait for is listed also behind the waits of a thousand others.
func TestARareWaitIsNotLostAmongMany(t *testing.T) {
	part := desk(t, "part", builder.Work[any, any]{})
	b := builder.New[any]("order")
	parts := builder.Composite(b, "parts", part, builder.Cases[any]{
		Items: func(context.Context, *activities.Activation) ([]any, error) { return make([]any, why.MaxWaits+20), nil }, Policy: workitem.ContinueOnFailure()})
	b.Path(b.Start(), parts, b.End())
	w := b.MustBuild()
	e := enginetest.New(t, w, part)
	id := start(t, e, w)
	c, err := e.Case(t.Context(), id)
	require.NoError(t, err)
	children := c.Children
	require.NoError(t, enginetest.Do(t.Context(), e, workflow.Suspend(children[len(children)-1])))
	answer := ask(t, e, id)
	require.Equal(t, 19, answer.More)
	last := answer.Waits[len(answer.Waits)-1]
	require.Equal(t, why.Suspended, last.Blocked)
	require.Contains(t, answer.String(), last.Path+": ")
	shown, others := answer.Brief(1)
	require.Len(t, shown, 2)
	require.Len(t, others, 1)
}

// A queue is listed in the order in which why counts those that go first.
func TestAQueueIsListedByPriorityThenAge(t *testing.T) {
	w := desk(t, "desk", builder.Work[any, any]{Queue: "office"})
	e := enginetest.New(t, w)
	for _, priority := range []int{0, 5, -3, 5, 0, 7} {
		start(t, e, w, workflow.Priority(priority))
		e.Advance(time.Second)
	}
	queue := "office"
	var got []int
	n := 0
	for it, err := range store.AllItems(t.Context(), e, store.ItemFilter{Queue: &queue, States: []workitem.State{workitem.Initialized}}) {
		require.NoError(t, err)
		got = append(got, it.Priority)
		require.Equal(t, n, only(t, ask(t, e, it.Case)).Ahead)
		n++
	}
	require.Equal(t, []int{7, 5, 5, 0, 0, -3}, got)
}
