package builder_test

import (
	"context"
	"fmt"
	"regexp"
	"time"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/retry"
)

// generate is the work of the task draft.
func generate(_ context.Context, p Prompt) (Draft, error) {
	return Draft{Body: p.Text + " Because!"}, nil
}

// A draft is written by a program, which is tried five times, and judged by a person.
func Example() {
	b := builder.New[Prompt]("article")
	draft := builder.Task(b, "draft", builder.Work[Prompt, Draft]{
		Input: builder.CaseInput(b),
		Run:   generate,
		Retry: retry.Exponential(5, time.Second), // a new item after a failure, at most five in all
	})
	review := builder.Task(b, "review", builder.Work[Draft, Verdict]{
		Input: builder.Output(draft), // the wrong source does not compile
		Queue: "editors",             // no Run: a person completes it
	})
	b.Path(b.Start(), draft, review, b.End())
	article, err := b.Build()
	if err != nil {
		fmt.Println(err)
		return
	}

	ctx := context.Background()
	e := newProcess(article) // in a program: engine.Open(ctx, sqlite.File("article.db"), article)
	defer e.close()
	if _, err := article.Start(ctx, e, Prompt{Text: "Why Petri nets?"}); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(e.show())
	fmt.Println(e.work(ctx)) // in a program: the engine does it
	fmt.Print(e.show())
	item := e.item("review")
	fmt.Println(review.Start(ctx, e, item.ID), review.Complete(ctx, e, item.ID, Verdict{OK: true}))
	fmt.Print(e.show())
	// Output:
	// article started, draft.1.1 initialized {"text":"Why Petri nets?"}
	// <nil>
	// article started, review.1.1 initialized {"body":"Why Petri nets? Because!"}
	// <nil> <nil>
	// article completed
}

// A draft is written again until somebody is content with it.
func ExampleFlowRef_When() {
	b := builder.New[Prompt]("loop")
	draft := builder.Task(b, "draft", builder.Work[Prompt, Draft]{
		Input: builder.CaseInput(b),
		Join:  builder.Xor, // from the start, or from the review
	})
	review := builder.Task(b, "review", builder.Work[Draft, Verdict]{
		Input: builder.Output(draft),
		Split: builder.Xor,
	})
	b.Path(b.Start(), draft, review)
	builder.Flow(b, review, b.End()).When(func(v Verdict) bool { return v.OK })
	builder.Flow(b, review, draft).Otherwise()
	loop := b.MustBuild()

	e := newProcess(loop)
	defer e.close()
	if _, err := loop.Start(context.Background(), e, Prompt{Text: "Why?"}); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(doing(e, draft, Draft{Body: "No idea."}), doing(e, review, Verdict{OK: false}))
	fmt.Print(e.show())
	fmt.Println(doing(e, draft, Draft{Body: "Because."}), doing(e, review, Verdict{OK: true}))
	fmt.Print(e.show())
	// Output:
	// <nil> <nil>
	// loop started, draft.2.1 initialized {"text":"Why?"}
	// <nil> <nil>
	// loop completed
}

// Build reports every problem at once, with the place of the call that is to blame.
func ExampleBuilder_Build() {
	b := builder.New[Prompt]("order")
	check := builder.Task(b, "check", builder.Work[any, Verdict]{RunTimeout: time.Minute})
	pack := builder.Task(b, "pack", builder.Work[any, any]{Timeout: -time.Hour})
	b.Path(b.Start(), check, pack, b.End())
	b.Path(check, b.End())

	_, err := b.Build()
	fmt.Println(regexp.MustCompile(`\w+.go:\d+`).ReplaceAllString(err.Error(), "f:N"))
	// Output:
	// order: 3 problems
	// f:N: conflict: task "check" has a RunTimeout but no Run; use Timeout to bound the work of others
	// f:N: missing-split: task "check" has 2 flows (check->pack, check->end) and no Split; give it And, Xor or Or (f:N)
	// f:N: negative-duration: the Timeout of task "pack" is -1h0m0s; give zero or more
}
