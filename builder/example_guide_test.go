package builder_test

import (
	"context"
	"fmt"
	"time"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/internal/virtual"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/sqlite"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// Parcel is what a case of the workflow parcel is about.
type Parcel struct {
	Content string `json:"content"`
}

// opened is an engine in memory, on a clock that the example moves.
func opened(workflows ...engine.Workflow) (*engine.Engine, *virtual.Clock) {
	clock := virtual.NewClock()
	return must(engine.Config{Clock: clock}.Open(ctx, sqlite.Memory(), workflows...)), clock
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// weighing is a workflow of one task, whose result is a weight.
func weighing() (*builder.Workflow[Parcel], *builder.ResultRef[Parcel, int]) {
	parcel := builder.New[Parcel]("parcel")
	weigh := builder.Task(parcel, "weigh", builder.Work[Parcel, int]{
		Input: builder.CaseInput(parcel),
		Run:   func(_ context.Context, p Parcel) (int, error) { return 100 * len(p.Content), nil },
	})
	parcel.Path(parcel.Start(), weigh, parcel.End())
	grams := builder.Result(parcel, builder.Output(weigh))
	return parcel.MustBuild(), grams
}

// A workflow's result has a type: the handle starts runs and reads what they gave.
func ExampleResult() {
	parcel, grams := weighing()
	e, _ := opened(parcel)
	defer e.Close()

	run, err := grams.Run(ctx, e, Parcel{Content: "books"})
	if err != nil {
		panic(err)
	}
	weight, err := run.Result(ctx, e)
	fmt.Println(weight, err)
	fmt.Println(grams.Of(run.ID).Result(ctx, e))
	// Output:
	// 500 <nil>
	// 500 <nil>
}

// A task of the parent reads the results of all child cases that completed.
func ExampleChildOutputs() {
	parcel, grams := weighing()
	b := builder.New[[]Parcel]("order")
	ship := builder.Composite(b, "ship", parcel, builder.Cases[Parcel]{
		Items: func(_ context.Context, a *activities.Activation) ([]Parcel, error) {
			return builder.CaseInputOf[[]Parcel](a.Case())
		},
	})
	bill := builder.Task(b, "bill", builder.Work[[]int, string]{
		Input: builder.ChildOutputs(ship, grams),
		Run: func(_ context.Context, grams []int) (string, error) {
			return fmt.Sprintf("%d parcels: %d g", len(grams), grams), nil
		},
	})
	b.Path(b.Start(), ship, bill, b.End())
	text := builder.Result(b, builder.Output(bill))
	e, _ := opened(b.MustBuild(), parcel)
	defer e.Close()

	run := must(text.Run(ctx, e, []Parcel{{Content: "books"}, {Content: "tea"}}))
	fmt.Println(run.Result(ctx, e))
	// Output: 2 parcels: [500 300] g <nil>
}

// The parent of one child case reads its result.
func ExampleChildOutput() {
	parcel, grams := weighing()
	b := builder.New[Parcel]("order")
	ship := builder.Composite(b, "ship", parcel, builder.Cases[Parcel]{Input: builder.CaseInput(b)})
	b.Path(b.Start(), ship, b.End())
	weight := builder.Result(b, builder.ChildOutput(ship, grams))
	e, _ := opened(b.MustBuild(), parcel)
	defer e.Close()

	run := must(weight.Run(ctx, e, Parcel{Content: "books"}))
	fmt.Println(run.Result(ctx, e))
	// Output: 500 <nil>
}

// An item that is not done in time is canceled, and the task completes without an output: what comes next must be able
// to do without one.
func ExampleOptionalOutput() {
	b := builder.New[Prompt]("article")
	draft := builder.Task(b, "draft", builder.Work[Prompt, Draft]{
		Input:       builder.CaseInput(b),
		CancelAfter: 48 * time.Hour,
	})
	publish := builder.Task(b, "publish", builder.Work[builder.Optional[Draft], string]{
		Input: builder.OptionalOutput(draft),
		Run: func(_ context.Context, o builder.Optional[Draft]) (string, error) {
			if d, ok := o.Get(); ok {
				return d.Body, nil
			}
			return "nothing in time", nil
		},
	})
	b.Path(b.Start(), draft, publish, b.End())
	text := builder.Result(b, builder.Output(publish))
	e, clock := opened(b.MustBuild())
	defer e.Close()

	run := must(text.Run(ctx, e, Prompt{Text: "Why?"}))
	if err := clock.Advance(ctx, e, 48*time.Hour); err != nil {
		panic(err)
	}
	fmt.Println(run.Result(ctx, e))
	// Output: nothing in time <nil>
}

// An item that is not done in time fails: the retry makes a fresh one, and the case fails with the second.
func Example_timeout() {
	b := builder.New[Prompt]("question")
	answer := builder.Task(b, "answer", builder.Work[Prompt, Draft]{
		Input:                  builder.CaseInput(b),
		Timeout:                24 * time.Hour,
		OnWorkItemStateChanged: activities.Retry(retry.Constant(2, time.Hour)),
	})
	b.Path(b.Start(), answer, b.End())
	text := builder.Result(b, builder.Output(answer))
	e, clock := opened(b.MustBuild())
	defer e.Close()

	run := must(text.Run(ctx, e, Prompt{Text: "Why?"}))
	if err := clock.Advance(ctx, e, 49*time.Hour); err != nil { // a day, an hour's wait, and another day
		panic(err)
	}
	s := must(run.Status(ctx, e))
	fmt.Println(s.State, s.Failure)
	for it := range store.AllItems(ctx, e, store.ItemFilter{Case: run.ID}) {
		fmt.Println(it.Label(), it.State, it.Failure)
	}
	// Output:
	// failed timeout: not done within 24h0m0s
	// answer.1.1 failed timeout: not done within 24h0m0s
	// answer.1.2 failed timeout: not done within 24h0m0s
}

// A person finds a work item, starts and completes it. The same key starts one case only.
func Example_acting() {
	b := builder.New[Prompt]("article")
	review := builder.Task(b, "review", builder.Work[Prompt, Verdict]{Input: builder.CaseInput(b), Queue: "editors"})
	b.Path(b.Start(), review, b.End())
	ok := builder.Result(b, builder.Output(review))
	article := b.MustBuild()
	e, _ := opened(article)
	defer e.Close()

	id, err := article.Start(ctx, e, Prompt{Text: "Why Petri nets?"}, workflow.Key("order-7"))
	if err != nil {
		panic(err)
	}
	fmt.Println(id == must(article.Start(ctx, e, Prompt{Text: "Why Petri nets?"}, workflow.Key("order-7"))))
	editors := "editors"
	var item workitem.ID
	for it, err := range store.AllItems(ctx, e, store.ItemFilter{Queue: &editors, States: []workitem.State{workitem.Initialized}}) {
		if err != nil {
			panic(err)
		}
		fmt.Println(it.Workflow, it.Task, string(it.Input))
		item = it.ID
	}
	if err := review.Start(ctx, e, item, workflow.By("ann")); err != nil {
		panic(err)
	}
	err = review.Complete(ctx, e, item, Verdict{OK: true}, workflow.By("ann"))
	if err != nil {
		panic(err)
	}
	fmt.Println(ok.Of(id).Result(ctx, e))
	// Output:
	// true
	// article review {"text":"Why Petri nets?"}
	// {true} <nil>
}
