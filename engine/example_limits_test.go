package engine_test

import (
	"context"
	"fmt"
	"time"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/internal/virtual"
	"github.com/tasq-dev/tasq/limit"
	"github.com/tasq-dev/tasq/schedule"
	"github.com/tasq-dev/tasq/step"
	"github.com/tasq-dev/tasq/store/sqlite"
	"github.com/tasq-dev/tasq/workflow"
)

// Mail is one of many e-mails.
type Mail struct{ Customer, Text string }

// At most 100 mails a minute are sent in all, and five at once to each customer. A mail that waits for that holds no worker.
func ExampleEngine_limits() {
	ctx := context.Background()
	send := func(_ context.Context, m Mail) (string, error) { return "sent to " + m.Customer, nil }
	mail := builder.MustFunc("mail", send, builder.Limits(
		builder.Takes(limit.Calls(100, time.Minute), 0),
		builder.TakesBy(limit.Resource("customer", 5), 1, func(m Mail) string { return m.Customer }),
	))
	e, err := engine.Open(ctx, sqlite.Memory(), mail)
	if err != nil {
		panic(err)
	}
	defer e.Close()
	run, err := mail.Run(ctx, e, Mail{"ada", "hello"})
	if err != nil {
		panic(err)
	}
	fmt.Println(run.Result(ctx, e))
	// Output: sent to ada <nil>
}

// The handlers of a server call an API, and so do functions: both take of one limit, which all processes share.
func ExampleLimits() {
	ctx := context.Background()
	calls := limit.Calls(2, time.Minute).Shared()
	f := builder.MustFunc("ask", func(_ context.Context, question string) (string, error) { return "an answer", nil },
		builder.Limits(builder.Takes(calls, 0)))
	e, err := engine.Open(ctx, sqlite.Memory(), f)
	if err != nil {
		panic(err)
	}
	defer e.Close()
	run, err := f.Run(ctx, e, "What is a workflow?")
	if err != nil {
		panic(err)
	}
	fmt.Println(run.Result(ctx, e))

	api := engine.Limits(e, step.Takes(calls, 0))
	answer, err := limit.Do(ctx, api, func(context.Context, limit.Lease) (string, error) { return "another answer", nil })
	fmt.Println(answer, err)

	lease, err := api.TryAcquire()
	fmt.Println(lease, err)
	// Output:
	// an answer <nil>
	// another answer <nil>
	// <nil> <nil>
}

// A step takes 4000 tokens of a model's rate for its call, and gives back what the answer did not use.
func ExampleEngine_stepLimits() {
	ctx := context.Background()
	ask := func(string) (text string, used int64) { return "a net", 1200 }
	tokens := limit.Rate("tokens", 10_000, time.Minute, limit.SlidingWindow)
	answer := builder.MustFunc("answer", func(ctx context.Context, question string) (string, error) {
		return step.Do(ctx, "ask", func(ctx context.Context) (string, error) {
			text, used := ask(question)
			return text, limit.Commit(ctx, "tokens", used)
		}, step.Limits(step.Takes(tokens, 4000)))
	}, builder.Limits(builder.TakenBySteps(tokens)))
	e, err := engine.Open(ctx, sqlite.Memory(), answer)
	if err != nil {
		panic(err)
	}
	defer e.Close()
	run, err := answer.Run(ctx, e, "What is a workflow?")
	if err != nil {
		panic(err)
	}
	fmt.Println(run.Result(ctx, e))
	// Output: a net <nil>
}

// A model is asked with one of three API keys, whichever admits the call first: each admits 50 calls a minute, and 5 at once.
func ExampleEngine_pool() {
	ctx := context.Background()
	secrets := map[string]string{"key-1": "sk-1", "key-2": "sk-2", "key-3": "sk-3"}
	ask := func(secret, question string) string { return "a net" }
	keys := []string{"key-1", "key-2", "key-3"} // their names: the pages and tasq why show them
	answer := builder.MustFunc("answer", func(ctx context.Context, question string) (string, error) {
		return ask(secrets[limit.KeyOf(ctx, "calls")], question), nil
	}, builder.Limits(
		builder.Takes(limit.Calls(50, time.Minute), 1).AnyOf(keys...),
		builder.Takes(limit.Resource("running", 5), 1).AnyOf(keys...),
	))
	e, err := engine.Open(ctx, sqlite.Memory(), answer)
	if err != nil {
		panic(err)
	}
	defer e.Close()
	run, err := answer.Run(ctx, e, "What is a workflow?")
	if err != nil {
		panic(err)
	}
	fmt.Println(run.Result(ctx, e))
	// Output: a net <nil>
}

// A mail is sent in office hours. One of the night waits for the morning.
func ExampleEngine_hours() {
	ctx := context.Background()
	send := func(_ context.Context, m Mail) (string, error) { return "sent to " + m.Customer, nil }
	mail := builder.MustFunc("mail", send, builder.Hours(schedule.MustParseWindow("mon-fri 08:00-18:00", "Europe/Berlin")))
	clock := virtual.NewClock() // it is Tuesday, 1 January 2030, 01:00 in Berlin
	e, err := engine.Config{Clock: clock}.Open(ctx, sqlite.Memory(), mail)
	if err != nil {
		panic(err)
	}
	defer e.Close()
	run, err := mail.Run(ctx, e, Mail{"ada", "hello"})
	if err != nil {
		panic(err)
	}
	answer, err := e.Why(ctx, run.ID)
	if err != nil {
		panic(err)
	}
	fmt.Println(answer.Waits[0].Words(answer.At))
	if err := clock.Advance(ctx, e, 7*time.Hour); err != nil {
		panic(err)
	}
	fmt.Println(run.Result(ctx, e))
	// Output:
	// item run.1.1 waits until Tue 2030-01-01 08:00 Europe/Berlin, when its hours begin (mon-fri 08:00-18:00)
	// sent to ada <nil>
}

// One customer has many mails, and another one does not wait behind them.
func ExampleEngine_turns() {
	ctx := context.Background()
	send := func(_ context.Context, m Mail) (string, error) {
		fmt.Println(m.Customer, m.Text)
		return "sent", nil
	}
	mail := builder.MustFunc("mail", send, builder.FairBy(func(m Mail) string { return m.Customer }))
	e, err := engine.Config{Workers: 1}.Open(ctx, sqlite.Memory(), mail)
	if err != nil {
		panic(err)
	}
	defer e.Close()
	if _, err := e.Do(ctx, workflow.PauseQueue("")); err != nil { // until all are there
		panic(err)
	}
	var last builder.Run[string]
	for _, m := range []Mail{{"ada", "1"}, {"ada", "2"}, {"ada", "3"}, {"bob", "1"}, {"ada", "4"}} {
		if last, err = mail.Run(ctx, e, m); err != nil {
			panic(err)
		}
	}
	if _, err := e.Do(ctx, workflow.ResumeQueue("")); err != nil {
		panic(err)
	}
	if _, err := last.Result(ctx, e); err != nil {
		panic(err)
	}
	// Output:
	// ada 1
	// bob 1
	// ada 2
	// ada 3
	// ada 4
}
