package engine_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/internal/virtual"
	"github.com/tasq-dev/tasq/limit"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/store/sqlite"
)

// A ship takes a crane, then the dock, and a ship that leaves takes the dock, then a crane. With two cranes, three ships can wait for each other
// without end. Build refuses the workflow, and says how they come to that.
func ExampleEngine_holds() {
	crane, dock := limit.Resource("crane", 2), limit.Resource("dock", 1)
	b := builder.New[bool]("port")
	task := func(name string) *builder.TaskRef[bool, bool] {
		return builder.Task(b, name, builder.Work[bool, bool]{
			Input: builder.CaseInput(b), Run: func(_ context.Context, leaves bool) (bool, error) { return leaves, nil },
		})
	}
	call := builder.Task(b, "call", builder.Work[bool, bool]{
		Input: builder.CaseInput(b), Run: func(_ context.Context, leaves bool) (bool, error) { return leaves, nil }, Split: builder.Xor,
	})
	load, enter, release, lift := task("load"), task("enter"), task("release"), task("lift")
	b.Path(b.Start(), call, load, enter, b.End())
	b.Path(call, release, lift, b.End())
	builder.Flow(b, call, release).When(func(leaves bool) bool { return leaves })
	builder.Flow(b, call, load).Otherwise()
	b.Hold(builder.Takes(crane, 1), load, enter)
	b.Hold(builder.Takes(dock, 1), enter, enter)
	b.Hold(builder.Takes(dock, 1), release, lift)
	b.Hold(builder.Takes(crane, 1), lift, lift)
	_, err := b.Build()
	if unsound := (*builder.UnsoundError)(nil); errors.As(err, &unsound) {
		fmt.Println(unsound.Code)
		fmt.Println(unsound.Text)
	}
	// Output:
	// hold-deadlock
	// cases can wait for each other and never go on: each of the cases 1 to 2 of port holds 1 of crane (since load) and waits for 1 of dock (at enter); case 3 of port holds 1 of dock (since release) and waits for 1 of crane (at lift); run: case 1: call to load; load; case 2: call to load; load; case 3: call to release; release
}

// The payments of an account are done one by one, in the order of their starts: the second one waits though the first has failed and is tried
// again an hour later. Those of other accounts go on.
func ExampleEngine_lanes() {
	ctx, clock, failed := context.Background(), virtual.NewClock(), false
	begin := clock.Now()
	pay := builder.MustFunc("pay", func(_ context.Context, p Payment) (string, error) {
		if p.Cents == 500 && !failed {
			failed = true
			return "", errors.New("the bank is closed")
		}
		fmt.Printf("%s pays %d after %s\n", p.Account, p.Cents, clock.Now().Sub(begin).Round(time.Minute))
		return "paid", nil
	},
		builder.Holds(builder.TakesBy(limit.Resource("account", 1), 1, func(p Payment) string { return p.Account })),
		builder.Retry(func(p *retry.Policy) { *p = retry.Exponential(3, time.Hour) }))
	e, err := engine.Config{Clock: clock, Workers: 1}.Open(ctx, sqlite.Memory(), pay)
	if err != nil {
		panic(err)
	}
	defer e.Close()
	for _, p := range []Payment{{"ada", 500}, {"ada", 700}, {"bob", 300}} {
		if _, err := pay.Run(ctx, e, p); err != nil {
			panic(err)
		}
	}
	if err := clock.Advance(ctx, e, 2*time.Hour); err != nil {
		panic(err)
	}
	// Output:
	// bob pays 300 after 0s
	// ada pays 500 after 1h0m0s
	// ada pays 700 after 1h0m0s
}

// Payment is money of an account.
type Payment struct {
	Account string
	Cents   int
}
