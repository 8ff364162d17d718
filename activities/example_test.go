package activities_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/internal/virtual"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/sqlite"
	"github.com/tasq-dev/tasq/workitem"
)

// play runs one case of a workflow on a clock that advances only when it is set, and shows its work items after each
// of the given times. In a test of your own, the clock comes with enginetest.New.
func play(w *builder.Workflow[string], times ...time.Duration) {
	ctx, clock := context.Background(), virtual.NewClock()
	e, err := engine.Config{Clock: clock}.Open(ctx, sqlite.Memory(), w)
	if err != nil {
		log.Fatal(err)
	}
	defer e.Close()
	id, err := w.Start(ctx, e, "Why Petri nets?")
	if err != nil {
		log.Fatal(err)
	}
	for _, at := range times {
		if err := clock.Advance(ctx, e, virtual.Epoch.Add(at).Sub(clock.Now())); err != nil {
			log.Fatal(err)
		}
		fmt.Printf("after %s:", at)
		for it, err := range store.AllItems(ctx, e, store.ItemFilter{Case: id}) {
			if err != nil {
				log.Fatal(err)
			}
			fmt.Printf(" %s %s", it.Label(), it.State)
		}
		fmt.Println()
	}
}

func ExampleRetry() {
	calls := 0
	b := builder.New[string]("article")
	draft := builder.Task(b, "draft", builder.Work[string, string]{
		Input: builder.CaseInput(b),
		Run: func(context.Context, string) (string, error) {
			if calls++; calls < 3 {
				return "", errors.New("the model is busy")
			}
			return "Because they are drawn.", nil
		},
		OnWorkItemStateChanged: activities.Retry(retry.Exponential(5, time.Second)),
	})
	b.Path(b.Start(), draft, b.End())

	play(b.MustBuild(), 0, time.Second, 3*time.Second)
	// Output:
	// after 0s: draft.1.1 failed draft.1.2 initialized
	// after 1s: draft.1.1 failed draft.1.2 failed draft.1.3 initialized
	// after 3s: draft.1.1 failed draft.1.2 failed draft.1.3 completed
}

func ExampleEscalate() {
	b := builder.New[string]("question")
	answer := builder.Task(b, "answer", builder.Work[string, string]{ // no Run: a person completes it
		Input: builder.CaseInput(b),
		Timers: []activities.Timer{
			activities.Escalate("remind", 4*time.Hour, func(_ context.Context, it *activities.Item) error {
				fmt.Printf("(somebody should look at %s)\n", it.Label())
				return nil
			}),
			activities.Timeout(24 * time.Hour),
		},
	})
	b.Path(b.Start(), answer, b.End())

	play(b.MustBuild(), 3*time.Hour, 5*time.Hour, 25*time.Hour)
	// Output:
	// after 3h0m0s: answer.1.1 initialized
	// (somebody should look at answer.1.1)
	// after 5h0m0s: answer.1.1 initialized
	// after 25h0m0s: answer.1.1 failed
}

// An activity of one's own, beside a ready-made one: both answer every change, in the transaction of the change.
func ExampleAll() {
	b := builder.New[string]("article")
	draft := builder.Task(b, "draft", builder.Work[string, string]{
		Input: builder.CaseInput(b),
		Run: func(context.Context, string) (string, error) {
			return "", workitem.Fatal(workitem.Failf("no-such-model", "it was switched off"))
		},
		OnWorkItemStateChanged: activities.All(
			func(_ context.Context, c *activities.Change) error {
				if c.To == workitem.Failed {
					fmt.Printf("(%s: %s)\n", c.Item.Label(), c.Item.Failure)
				}
				return nil
			},
			activities.Retry(retry.Exponential(5, time.Second)),
		),
	})
	b.Path(b.Start(), draft, b.End())

	play(b.MustBuild(), 0, time.Hour)
	// Output:
	// (draft.1.1: no-such-model: it was switched off)
	// after 0s: draft.1.1 failed
	// after 1h0m0s: draft.1.1 failed
}
