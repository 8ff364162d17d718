package engine_test

import (
	"context"
	"fmt"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine/bulk"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

func Example_theSameAgain() {
	ctx := context.Background()
	sent := 0
	digest := builder.MustFunc("digest", func(_ context.Context, customer string) (string, error) {
		sent++
		return "to " + customer, nil
	})
	e := example(ctx, digest)
	defer e.Close()
	for range 3 {
		run, err := digest.Run(ctx, e, "ada", workflow.BusinessKey("ada"), workflow.OncePer(workflow.Day, "Europe/Berlin"),
			workflow.IfTaken(workflow.Return))
		if err != nil {
			panic(err)
		}
		if _, err := run.Result(ctx, e); err != nil {
			panic(err)
		}
	}
	fmt.Println("fewer than three:", sent < 3)
	// Output: fewer than three: true
}

func Example_deadLetters() {
	ctx, bank := context.Background(), &bank{fails: 1}
	letters := builder.MustLetters("letters")
	charge := builder.MustFunc("charge", bank.charge, builder.DeadLetter(letters),
		builder.Retry(func(p *retry.Policy) { p.Attempts = 1 }))
	e := example(ctx, charge)
	defer e.Close()
	run, err := charge.Run(ctx, e, Purchase{Order: "7", Amount: 100})
	if err != nil {
		panic(err)
	}
	_, err = run.Result(ctx, e)
	fmt.Println("given up:", err != nil)

	found, err := bulk.Letters(ctx, e, store.CaseFilter{}, "charge", "")
	if err != nil {
		panic(err)
	}
	id, err := workitem.ParseID(found[0])
	if err != nil {
		panic(err)
	}
	again, err := e.Do(ctx, workflow.Redrive(workitem.CaseID(id), workflow.By("ann"), workflow.Because("the bank is open")))
	if err != nil {
		panic(err)
	}
	receipt, err := charge.Of(again.Case).Result(ctx, e)
	fmt.Println(receipt.Number, err)
	// Output:
	// given up: true
	// R-7 <nil>
}
