package engine_test

import (
	"context"
	"fmt"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/store/sqlite"
)

// With one running job, and Drain behind each command, a script does everything inline: what a command has made due is done when Drain returns, one
// job at a time, in the same order each time.
func ExampleEngine_Drain() {
	ctx := context.Background()
	greet := builder.MustFunc("greet", func(_ context.Context, name string) (string, error) {
		fmt.Println("hello", name)
		return "greeted " + name, nil
	})
	e, err := engine.Config{Workers: 1, MaxRunning: 1, Steps: 1}.Open(ctx, sqlite.Memory(), greet)
	if err != nil {
		panic(err)
	}
	defer e.Close()
	for _, name := range []string{"ada", "bob"} {
		run, err := greet.Run(ctx, e, name)
		if err != nil {
			panic(err)
		}
		if err := e.Drain(ctx); err != nil {
			panic(err)
		}
		fmt.Println(run.Result(ctx, e))
	}
	// Output:
	// hello ada
	// greeted ada <nil>
	// hello bob
	// greeted bob <nil>
}
