package builder_test

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/sqlite"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// Two of three people have to approve within a day; otherwise the boss decides.
func Example_tooFewAnswers() {
	b := builder.New[string]("invoice")
	ask := builder.Task(b, "ask", builder.Work[string, bool]{
		Items: func(context.Context, *activities.Activation) ([]string, error) {
			return []string{"ann", "bob", "eve"}, nil
		},
		Split: builder.Xor,
		Policy: workitem.NewPolicy("two", func(o workitem.Outcome) (workitem.Verdict, error) {
			if o.State.Final() && (o.Tally.Completed >= 2 || o.Tally.Live() == 0) {
				return workitem.CompleteTask, nil
			}
			return workitem.Continue, nil
		}),
		Timers: []activities.Timer{activities.CancelTaskAfter(24 * time.Hour)},
	})
	boss := builder.Task(b, "boss", builder.Work[string, bool]{Input: builder.CaseInput(b), Queue: "boss"})
	pay := b.Routing("pay", builder.Routing{Join: builder.Xor})
	b.Path(b.Start(), ask)
	builder.Flow(b, ask, boss).If(builder.From(func(_ context.Context, a *activities.Activation) (bool, error) {
		return a.Tally().Completed < 2, nil
	}))
	builder.Flow(b, ask, pay).Otherwise()
	b.Path(boss, pay, b.End())
	invoice := b.MustBuild()

	ctx, clock := context.Background(), enginetest.NewClock()
	e, err := engine.Config{Clock: clock}.Open(ctx, sqlite.Memory(), invoice)
	if err != nil {
		panic(err)
	}
	defer e.Close()
	for _, answers := range []int{1, 2} {
		id, err := invoice.Start(ctx, e, "7")
		if err != nil {
			panic(err)
		}
		for it, err := range store.AllItems(ctx, e, store.ItemFilter{Case: id, Task: "ask"}) {
			if err != nil {
				panic(err)
			}
			if answers--; answers >= 0 {
				_, err = e.Do(ctx, workflow.Act(it.ID, workitem.Start, nil))
				if err == nil {
					_, err = e.Do(ctx, workflow.Act(it.ID, workitem.Complete, json.RawMessage("true")))
				}
				if err != nil {
					panic(err)
				}
			}
		}
		if err := clock.Advance(ctx, e, 25*time.Hour); err != nil {
			panic(err)
		}
		c, err := e.Case(ctx, id)
		if err != nil {
			panic(err)
		}
		fmt.Println(c.State)
	}
	// Output:
	// started
	// completed
}
