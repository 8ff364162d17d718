package engine_test

import (
	"context"
	"fmt"
	"time"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/why"
	"github.com/tasq-dev/tasq/internal/virtual"
	"github.com/tasq-dev/tasq/store/sqlite"
)

// Two payments wait for the one worker of their queue.
func ExampleEngine_Overdue() {
	ctx, clock := context.Background(), virtual.NewClock()
	started, release := make(chan struct{}, 3), make(chan struct{})
	charge := builder.MustFunc("charge", func(_ context.Context, p Purchase) (Receipt, error) {
		started <- struct{}{}
		<-release
		return Receipt{Number: "R-" + p.Order}, nil
	}, builder.OnQueue("payments"))
	e, err := engine.Config{Clock: clock, Queues: map[string]int{"payments": 1}}.Open(ctx, sqlite.Memory(), charge)
	if err != nil {
		panic(err)
	}
	defer e.Close()

	for _, order := range []string{"7", "8", "9"} {
		if _, err := charge.Run(ctx, e, Purchase{Order: order, Amount: 100}); err != nil {
			panic(err)
		}
	}
	<-started
	clock.Set(clock.Now().Add(time.Minute))
	for _, b := range e.Overdue() {
		fmt.Printf("queue %q: %d due, the oldest since %s\n", b.Queue, b.Due, clock.Now().Sub(b.Oldest))
	}

	close(release)
	if err := e.Drain(ctx); err != nil {
		panic(err)
	}
	fmt.Println(len(e.Overdue()))
	// Output:
	// queue "payments": 2 due, the oldest since 1m0s
	// 0
}

// An order waits for a person, who has two days.
func ExampleEngine_Why() {
	ctx, clock := context.Background(), virtual.NewClock()
	b := builder.New[Purchase]("order")
	b.Path(b.Start(), builder.Task(b, "approve", builder.Work[any, any]{Queue: "managers", Timeout: 48 * time.Hour}), b.End())
	order := b.MustBuild()
	e, err := engine.Config{Clock: clock}.Open(ctx, sqlite.Memory(), order)
	if err != nil {
		panic(err)
	}
	defer e.Close()
	id, err := order.Start(ctx, e, Purchase{Order: "7", Amount: 100})
	if err != nil {
		panic(err)
	}

	clock.Set(clock.Now().Add(time.Hour))
	answer, err := e.Why(ctx, id)
	if err != nil {
		panic(err)
	}
	for _, w := range answer.Waits {
		switch w.Kind {
		case why.Person:
			fmt.Println(w.Label, "waits for a person, in queue", w.Queue)
		case why.Timer:
			fmt.Println(w.Name, "of", w.Label, "is due in", w.Until.Sub(answer.At))
		}
	}
	// Output:
	// approve.1.1 waits for a person, in queue managers
	// timeout of approve.1.1 is due in 47h0m0s
}
